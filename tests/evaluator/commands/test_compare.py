"""`compare`: its numbers are those of the board, it says why there is none, and bad input is named."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.comparison import (
    Compared,
    evidence_words,
    p_words,
    verdict,
)
from benchmarks.rows import PooledSample
from benchmarks.schema import ScoreTable, Selector
from benchmarks.scores import write_scores
from benchmarks.statistics.joint_tests import JointTests
from benchmarks.statistics.multiplicity import benjamini_hochberg
from benchmarks.statistics.perm_both import perm_both
from benchmarks.statistics.resampling import seed_of
from benchmarks.statistics.sign_flips import pair_tests
from benchmarks.tifa160.protocol import HUMAN, TIFA160
from evaluator.commands.compare_metrics import (
    NO_POOL,
    Field,
    Permuted,
    Pools,
    SliceKey,
    contenders,
    measured_field,
    permuted,
)
from leaderboard.ranking.comparing import Match, compare_cells
from tests.evaluator.commands.rated import (
    GOLD,
    OF_PAIR,
    PAIRS,
    SCORES,
    Rated,
    scores_file,
    with_gaps,
)
from tests.evaluator.commands.submitting import Run

BOTH = ("good.csv", "poor.csv")


def records(compare: Run, *words: str) -> list[dict[str, Any]]:
    told = compare(*words, "--json")
    assert told.code == 0, told.err
    found: list[dict[str, Any]] = told.json
    return found


# Numbers ----------------------------------------------------------------------------------------


def test_the_numbers_are_those_of_a_board_on_which_both_stand(compare: Run) -> None:
    first = records(compare, *BOTH)[0]
    frame = pd.DataFrame(SCORES, index=pd.Index(PAIRS, name="pair_id"))
    board = Rated().evaluate(ScoreTable(frame), Rated().answers(None))
    at = [i for i, row in enumerate(board.rows) if row.measure == "srcc" and row.skill is None]
    ends = np.array([at[0]]), np.array([at[2]])
    tests = pair_tests(board.contributions, *ends, seed_of("rated", "1"))
    assert first["p_value"] == tests.p_value[0]
    assert first["n_differing"] == tests.n_units[0]
    assert first["difference"] == board.rows[at[0]].value - board.rows[at[2]].value
    drawn = board.resamples[at[0]].astype(float) - board.resamples[at[2]]
    assert first["percentile_low"] == pytest.approx(np.quantile(drawn, 0.025))
    assert first["ci_low"] < first["difference"] < first["ci_high"]
    assert (first["seed"], first["n_resamples"]) == (seed_of("rated", "1"), 1000)
    assert (first["plan"], first["versions"]) == (board.rows[0].plan, board.rows[0].versions)
    mean = records(compare, *BOTH, "--measure", "distance")[0]  # of which less is better
    good, poor = (np.abs(SCORES[n] - GOLD).reshape(20, 3).mean(axis=1) for n in ("good", "poor"))
    counts = [mean[name] for name in ("n_better_a", "n_tied", "n_better_b")]
    assert counts == [(good < poor).sum(), (good == poor).sum(), (good > poor).sum()]


def test_the_same_pair_comes_in_any_files(compare: Run, tmp_path: Path) -> None:
    frame = pd.DataFrame({"poor": SCORES["poor"]}, index=pd.Index(PAIRS, name="pair_id"))
    (tmp_path / "again.parquet").write_bytes(write_scores(ScoreTable(frame)))
    apart = records(compare, *BOTH)
    for words in (
        ("good.csv", "again.parquet"),
        ("all.csv", "--metric-a", "good", "--metric-b", "poor"),
        ("good.csv", "--scores", "poor.csv"),
    ):
        assert records(compare, *words) == apart


def test_the_pairs_of_a_file_are_tested_together(compare: Run) -> None:
    found = records(compare, "all.csv")
    pairs = [("good", "fair"), ("good", "poor"), ("fair", "poor")]
    assert [(r["metric_a"], r["metric_b"]) for r in found] == pairs
    frame = pd.DataFrame(SCORES, index=pd.Index(PAIRS, name="pair_id"))
    board = Rated().evaluate(ScoreTable(frame), Rated().answers(None))
    at = [i for i, row in enumerate(board.rows) if row.measure == "srcc" and row.skill is None]
    tests = JointTests.of(board.contributions[at], seed_of("rated", "1"))
    expected = tests.p_value[np.triu_indices(3, 1)].tolist()
    assert sorted(r["p_corrected"] for r in found) == pytest.approx(sorted(expected))
    assert {(r["correction"], r["n_tests"]) for r in found} == {("joint", 3)}
    out = compare("all.csv").out
    places = [out.index(name) for name in ("1 good", "2 fair", "3 poor")]
    assert "joint" in out and places == sorted(places)


def test_skills_and_measures_are_corrected_apart_and_never_the_headline(compare: Run) -> None:
    words = ("good.csv", "fair.csv")
    found = records(compare, *words, "--all", "--skills")
    assert found[0] == records(compare, *words)[0]
    assert (found[0]["p_corrected"], found[0]["correction"]) == (None, None)  # tested alone
    assert [(r["measure"], r["skill"]) for r in found] == [
        ("srcc", None), ("side", None), ("distance", None), ("srcc", "few"), ("srcc", "many"),
    ]  # fmt: skip
    for part in (found[1:3], found[3:]):
        tested = [r for r in part if r["p_value"] is not None]
        expected = benjamini_hochberg([r["p_value"] for r in tested])
        assert [r["p_corrected"] for r in tested] == expected.tolist()
        corrections = {(r["correction"], r["n_tests"]) for r in part}
        assert corrections == {("benjamini_hochberg", len(tested))}


def test_the_mean_of_several_skills_is_compared_as_on_the_board(compare: Run) -> None:
    both = records(compare, *BOTH, "--skill", "few", "--skill", "many")[0]
    parts = [records(compare, *BOTH, "--skill", skill)[0] for skill in ("few", "many")]
    assert both["difference"] == pytest.approx(np.mean([p["difference"] for p in parts]))
    assert both["skill"] == "few+many"


def test_lower_is_better_turns_a_metric_round(compare: Run, tmp_path: Path) -> None:
    scores_file(tmp_path / "error.csv", "error", -SCORES["good"])
    words = ("error.csv", "poor.csv")
    turned = records(compare, *words, "--lower-is-better", "error")[0]
    assert {**turned, "metric_a": "good"} == records(compare, *BOTH)[0]
    assert records(compare, *words)[0]["value_a"] == pytest.approx(-turned["value_a"])


# What is not tested or counted, and why -----------------------------------------------------------


def test_with_missing_scores_the_clusters_are_not_counted(compare: Run, tmp_path: Path) -> None:
    scores_file(tmp_path / "gaps.csv", "gaps", with_gaps(1, "good"))
    first = records(compare, "good.csv", "gaps.csv")[0]
    assert first["uncounted"] in compare("good.csv", "gaps.csv").told
    left_out = {"n_better_a", "n_tied", "n_better_b", "t", "t_p", "wilcoxon_w", "wilcoxon_p",
                "effect", "effect_low", "effect_high"}  # fmt: skip
    kept = {"difference", "ci_low", "ci_high", "p_value"}
    assert {name for name in left_out | kept if first[name] is None} == left_out


def test_many_missing_scores_or_few_clusters_are_not_tested(compare: Run, tmp_path: Path) -> None:
    scores_file(tmp_path / "gaps.csv", "gaps", with_gaps(6, "poor"))
    first = records(compare, "good.csv", "gaps.csv")[0]
    assert (first["untested"], first["p_value"]) == (
        "gaps lacks 6 of 60 scores; the limit is 2 %", None,
    )  # fmt: skip
    assert first["untested"] in compare("good.csv", "gaps.csv").out
    (few,) = records(compare, *BOTH, "--skill", "few")
    assert few["p_value"] is None and few["difference"] > 0


# What is printed ----------------------------------------------------------------------------------


def test_the_first_lines_say_it_in_words(compare: Run) -> None:
    out = compare(*BOTH).out
    assert re.search(r"good is better than poor by 0\.\d{3} \[0\.\d{3}, 0\.\d{3}\]\.", out)
    assert re.search(r"p (=|<) 0\.\d+ \(sign flips of 20 prompts, ", out)
    for said in ("paired t = ", "d_z = ", "influences", "Benjamini-Hochberg"):
        assert said in out
    assert f"Seed {seed_of('rated', '1')}" in out


@pytest.mark.first_quick
@pytest.mark.parametrize("width", [50, 80, 160])
@pytest.mark.parametrize("files", [("all.csv",), BOTH])
def test_no_number_is_cut_at_any_width(compare: Run, width: int, files: tuple[str, ...]) -> None:
    for more in ((), ("--permute-scores",)):
        out = compare(*files, "--all", "--skills", *more, width=width).out
        assert "…" not in out
        assert max(map(len, out.splitlines())) <= width


def test_columns_are_called_by_their_files_where_they_need_it(compare: Run, tmp_path: Path) -> None:
    for name in ("good", "fair"):
        scores_file(tmp_path / f"new-{name}.csv", "score", SCORES[name])
        scores_file(tmp_path / f"good-{name}.csv", "good", SCORES[name])

    def names(*words: str) -> tuple[str, str]:
        record = records(compare, *words)[0]
        return record["metric_a"], record["metric_b"]

    unnamed = ("new-good.csv", "new-fair.csv")
    assert names(*unnamed) == ("new-good", "new-fair")
    assert names(*unnamed, "--metric-a", "mine") == ("mine", "new-fair")
    assert names("good-good.csv", "good-fair.csv") == (
        "good (good-good.csv)", "good (good-fair.csv)",
    )  # fmt: skip


def test_equal_and_constant_scores_are_said_to_be(compare: Run, tmp_path: Path) -> None:
    (tmp_path / "copy.csv").write_text((tmp_path / "good.csv").read_text())
    scores_file(tmp_path / "flat.csv", "flat", 0.5)
    equal = compare("good.csv", "copy.csv").out
    assert "equal on every prompt" in equal and "p = 1" in equal
    constant = compare("good.csv", "flat.csv")
    assert constant.code == 0 and "flat has no value" in constant.out
    assert ".." not in constant.out
    assert "nan" not in compare("all.csv", "flat.csv").out


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("good.csv nowhere.csv", 1, "nowhere.csv"),
        ("good.csv", 1, "one metric"),
        ("good.csv good.csv", 1, "twice"),
        ("all.csv --metric-a good --metric-b good", 1, "twice"),
        ("all.csv --metric-a good --metric-b best", 1, "'best'"),
        ("one.csv one.csv --metric-a x --metric-b y", 1, "'y'"),
        ("all.csv --metric-a good", 2, "--metric-a"),
        ("good.csv fair.csv poor.csv --metric-a good", 2, "two"),
        ("good.csv poor.csv --measure krcc", 1, "srcc, side, distance"),
        ("good.csv poor.csv --variant code", 1, "paper"),
        ("good.csv poor.csv --skill none", 1, "few, many"),
        ("good.csv poor.csv --lower-is-better best", 1, "good, poor"),
        ("good.csv poor.csv --lower-is-better -error", 1, "'-error'"),
        ("good.csv poor.csv --lower-is-better=-error", 1, "'-error'"),
        ("good.csv poor.csv --lower-is-better --json", 1, "'--json'"),
        ("good.csv poor.csv --lower-is-better=-", 1, "'-'"),
        ("dashed.csv poor.csv", 1, "bad_metric_name"),
        ("good.csv other.csv", 1, "rated"),
    ],
)
def test_bad_input_is_one_message(
    compare: Run, tmp_path: Path, words: str, code: int, said: str
) -> None:
    (tmp_path / "other.csv").write_text("pair_id,score\nelsewhere,1\n")
    scores_file(tmp_path / "dashed.csv", "-error", SCORES["good"])
    scores_file(tmp_path / "one.csv", "score", SCORES["good"])
    end = compare(*words.split())
    assert (end.code, end.out) == (code, "")
    assert said in end.told


def test_scores_and_a_known_benchmark_are_needed(compare: Run, run: Run, tmp_path: Path) -> None:
    assert run("compare", "rated").code == 2
    for words, said in ((("unheard",), "unheard"), (("rated", "--lower-is-better", "-e"), "'-e'")):
        end = run("compare", *words, "--scores", tmp_path / "all.csv")
        assert end.code == 1 and said in end.err


# Figures, p-values and verdicts as sentences -------------------------------------------------------


def found(**more: Any) -> Compared:
    fields: dict[str, Any] = {
        "metric_a": "A", "metric_b": "B", "measure": "m", "variant": None, "split": None,
        "facet": None, "skill": None, "higher_is_better": True, "value_a": 0.5, "value_b": 0.4,
        "difference": 0.1, "ci_low": 0.02, "ci_high": 0.18, "p_value": 0.01, "n_patterns": 9999,
        "n_differing": 12, "unit": "graph", "n_units": 15, "n_better_a": 9, "n_tied": 3,
        "n_better_b": 3,
    }  # fmt: skip
    return Compared(**{**fields, **more})


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "A is better than B by 0.100 [0.020, 0.180]"),
        ({"difference": -0.1, "ci_low": -0.18, "ci_high": -0.02},
         "B is better than A by 0.100 [0.020, 0.180]"),
        ({"higher_is_better": False}, "B is better than A by 0.100 [0.020, 0.180]"),
        ({"p_value": math.nan}, "A has 0.100 [0.020, 0.180] over B, but the two were not tested"),
        ({"p_value": 0.011, "p_corrected": 0.053, "correction": "holm", "n_tests": 10},
         "No significant difference between A and B: A has 0.100 [0.020, 0.180] over B "
         "(p = 0.011 alone, 0.053 once corrected for 10 pairs)"),
        ({"p_value": 0.2, "p_corrected": 0.4, "ci_low": -0.02, "correction": "holm", "n_tests": 10},
         "No significant difference between A and B: A has 0.100 [−0.020, 0.180] over B"),
        ({"difference": 0.0, "n_differing": 0, "p_value": 1.0}, "A and B are equal on every graph"),
        ({"difference": 0.0, "p_value": 1.0, "ci_low": -0.1, "ci_high": 0.1},
         "A and B have the same value [−0.100, 0.100]"),
        ({"value_a": math.nan, "difference": math.nan}, "A has no value here"),
        ({"value_a": math.nan, "value_b": math.nan}, "A and B have no value here"),
        ({"ci_low": math.nan, "ci_high": math.nan}, "A is better than B by 0.100"),
        ({"difference": 0.00042, "ci_low": 0.0001, "ci_high": 0.0008},
         "A is better than B by 0.00042 [0.00010, 0.00080]"),
    ],
)  # fmt: skip
def test_the_verdict_says_what_the_test_says(more: Mapping[str, Any], words: str) -> None:
    assert verdict(found(**more), "A", "B") == words


def test_p_values_are_neither_zero_nor_in_powers_nor_rounded_to_the_level() -> None:
    values = {
        1.0: "= 1", 0.999: "= 1", 0.61: "= 0.61", 0.0004: "= 0.00040", 3e-7: "< 0.00001",
        0.0494: "= 0.049", 0.0495: "= 0.0495", 0.0496: "= 0.0496", 0.04998: "= 0.04998",
        0.05: "= 0.050", 0.0502: "= 0.0502", 0.0507: "= 0.051", math.nan: "–",
    }  # fmt: skip
    assert {p: p_words(p) for p in values} == {p: f"p {words}" for p, words in values.items()}


def test_the_test_says_how_many_patterns_it_saw() -> None:
    assert evidence_words(found()) == "p = 0.010 (sign flips of 12 graphs, 9,999 draws)"
    assert evidence_words(found(exact=True, n_patterns=4096)).endswith("all 4,096 patterns)")
    bound = evidence_words(found(n_patterns=0, p_value=1.2e-5))
    assert bound.startswith("p ≤ 0.000012 ") and "bound" in bound
    assert evidence_words(found(p_value=math.nan, untested="because")) == "because"


# PERM-BOTH on raw scores, beside the test of the boards ------------------------------------------


FACTS = ("p", "draws", "exact", "note")


def facts(record: dict[str, Any]) -> list[Any]:
    return [record[f"permute_scores_{name}"] for name in FACTS]


def expected_p(one: Any, other: Any) -> float:
    both, seed = np.column_stack([one, other]), seed_of("rated", "1")
    tests = perm_both(both, GOLD, "spearman", clusters=OF_PAIR, n_draws=9999, seed=seed)
    return float(tests.p_values[0, 1])


def test_pooled_correlations_are_tested_by_swapped_scores_too(compare: Run) -> None:
    words = ("good.csv", "poor.csv")
    plain = compare(*words, "--json").json
    found = compare(*words, "--permute-scores", "--json").json
    p = expected_p(SCORES["good"], SCORES["poor"])
    without = [None, None, None, NO_POOL]
    assert [facts(one) for one in found] == [[p, 9999, False, ""], *[without] * (len(found) - 1)]
    assert [before.items() <= one.items() for before, one in zip(plain, found, strict=True)]
    told = compare(*words, "--permute-scores").told
    assert re.search(r"PERM-BOTH on raw scores: p = 0\.\d+ \(standardised .* 9,999 draws\)", told)
    assert f"side, distance: {NO_POOL}." in told
    assert "PERM-BOTH" not in compare(*words).out


def test_every_pair_of_a_file_is_tested_as_it_would_be_alone(compare: Run) -> None:
    words = ("all.csv", "--permute-scores")
    every = compare(*words, "--json").json
    alone = compare(*words, "--metric-a", "fair", "--metric-b", "poor", "--json").json
    assert facts(every[2]) == facts(alone[0])
    assert "p (scores)" in compare(*words).out
    assert compare(*words, "--measure", "side").out.count(NO_POOL) == 1


def test_few_clusters_are_swapped_in_every_way_and_skills_are_no_pool(compare: Run) -> None:
    words = ("good.csv", "poor.csv", "--permute-scores", "--skill", "few")
    (few, *_) = compare(*words, "--json").json
    p, draws, exact, _ = facts(few)
    assert (exact, draws) == (True, 2**5) and p in np.arange(1, 33) / 32
    assert "all 32 patterns" in compare(*words).out
    (both, *_) = compare(*words, "--skill", "many", "--json").json
    assert facts(both)[0] is None and "skills" in facts(both)[3]


def test_constant_scores_are_not_permuted_nor_missing_ones(compare: Run, tmp_path: Path) -> None:
    scores_file(tmp_path / "flat.csv", "flat", 0.5)
    (flat, *_) = compare("good.csv", "flat.csv", "--permute-scores", "--json").json
    assert facts(flat)[0] is None and "constant" in facts(flat)[3]
    gaps = with_gaps(2, "poor")
    scores_file(tmp_path / "gaps.csv", "gaps", gaps)
    (first, *_) = compare("good.csv", "gaps.csv", "--permute-scores", "--json").json
    assert facts(first)[0] == expected_p(SCORES["good"], gaps) and "58" in facts(first)[3]


# On TIFA160, where both tests look at the same differences ----------------------------------------

SEED = seed_of(TIFA160.name, TIFA160.card.revision)
RELEASED = ("meteor", "spice", "clipscore_vitb32", "tifa_mplug-large")


@pytest.fixture(scope="module")
def field(assay_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Field:
    """Metrics released with the ratings, in one file."""
    answers = TIFA160.answers(assay_data)
    released = json.loads((assay_data / HUMAN).read_text(encoding="utf-8"))
    table = pd.DataFrame({key: released[key] for key in answers.pair_ids}).T[list(RELEASED)]
    path = tmp_path_factory.mktemp("scores") / "released.csv"
    table.rename_axis("pair_id").to_csv(path)
    return measured_field(contenders([path], (None, None), TIFA160, answers), TIFA160, answers)


def compared(field: Field, measure: str, facet: str) -> tuple[SliceKey, tuple[Compared, ...]]:
    key = Selector(measure=measure, split="all", variant="paper", facet=facet), None
    pairs = combinations(range(len(field.names)), 2)
    matches = [Match(field.slices[key], a, b) for a, b in pairs]
    return key, compare_cells(matches, TIFA160.card, field.names)


@pytest.mark.slow
@pytest.mark.paper
@pytest.mark.parametrize(
    ("measure", "facet"),
    [("srcc", "dsg_likert"), ("pearson", "dsg_likert"), ("pearson", "human_avg")],
)
def test_on_released_scores_both_tests_agree(field: Field, measure: str, facet: str) -> None:
    _, rows = compared(field, measure, facet)
    found = permuted(rows, field, SEED)
    assert {(one.n_draws, one.exact, one.note) for one in found} == {(9999, False, "")}
    of_board, of_scores = [row.p_value for row in rows], [one.p_value for one in found]
    np.testing.assert_allclose(of_scores, of_board, atol=0.03)


# Without data ---------------------------------------------------------------------------------------


def made_up(*, other_images: bool = False) -> tuple[Compared, Field]:
    rng = np.random.default_rng(3)
    ratings, clusters = rng.normal(size=80), np.repeat(np.arange(20), 4)
    one, other = (
        PooledSample(ratings + noise * rng.normal(size=80), ratings, clusters)
        for noise in (0.5, 0.7)
    )
    if other_images:
        other = replace(other, ratings=ratings[::-1])
    row = Compared("a", "b", "srcc", None, None, None, None, True, 0.5, 0.4, 0.1)
    pools: dict[SliceKey, Pools] = {(Selector(measure="srcc"), None): (lambda: one, lambda: other)}
    return row, Field({}, {"0/a": "a", "1/b": "b"}, {}, pools)


def test_only_metrics_with_values_on_the_same_images_are_tested_in_any_order() -> None:
    row, field = made_up()
    one, other, none = permuted(
        [row, replace(row, metric_a="b", metric_b="a"), replace(row, difference=math.nan)], field, 0
    )
    assert one == other and one.p_value is not None
    assert none == Permuted(note=none.note) and "value" in none.note
    row, field = made_up(other_images=True)
    with pytest.raises(ValueError, match="srcc"):
        permuted([row], field, 0)
