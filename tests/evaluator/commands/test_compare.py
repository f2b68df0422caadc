"""`compare`: who is better, by the board's test; every bad input in plain words with its code."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.arrays import FloatArray
from benchmarks.comparison import Compared, corrected
from benchmarks.comparison_words import (
    dominance_words,
    effect_words,
    evidence_words,
    figures,
    p_words,
    paired_words,
    plural,
    units_of,
    verdict,
)
from benchmarks.inference import IN_STEPS
from benchmarks.pooled import PooledImages
from benchmarks.rows import Measured, MeasuredBuilder, Row
from benchmarks.schema import Answers, Benchmark, Card, MeasureInfo, ScoreTable, Selector
from benchmarks.scores import read_scores, write_scores
from benchmarks.statistics.multiplicity import benjamini_hochberg, holm
from benchmarks.statistics.permutation.perm_both import perm_both
from benchmarks.statistics.resampling import ResamplingPlan, resampled_mean, seed_of
from benchmarks.statistics.sign_flips import flip_tests
from benchmarks.ts2.benchmark import Ts2
from evaluator.__main__ import main
from evaluator.commands.compare_files import contenders, measured_field
from evaluator.commands.compare_permuted import NO_POOL
from leaderboard.cells import Cell
from leaderboard.comparing import Match, compare_cells, why_uncounted, why_untested

PAIRS = tuple(f"p{n:02d}" for n in range(60))
CLUSTERS = tuple(f"c{n:02d}" for n in range(20))
OF_PAIR = np.repeat(np.arange(20), 3)
GOLD = np.random.default_rng(0).normal(0.0, 1.0, 60)


class Rated(Benchmark):
    """Twenty prompts with three images each; the first six make a skill too small to order.

    Its measures: the correlation with a rating (headline), the share of images whose score and
    rating are on one side of zero, and the mean distance, of which less is better.
    """

    card = Card(
        name="rated",
        title="Rated",
        family="rated",
        summary="Rated.",
        description="",
        revision="1",
        cluster="prompt",
        headline=Selector(measure="srcc", variant="paper"),
        measures={
            "srcc": MeasureInfo(title="Spearman", meaning="."),
            "side": MeasureInfo(title="Side", meaning="."),
            "distance": MeasureInfo(title="Distance", meaning=".", higher_is_better=False),
        },
        skills={"few": "Few prompts", "many": "Many prompts"},
    )

    def answers(self, data: Path | None) -> Answers:
        return Answers(pair_ids=PAIRS, clusters=CLUSTERS)

    def known_directions(self) -> Mapping[str, Literal[1, -1]]:
        return {}

    def measure(self, scores: ScoreTable, answers: Any, plan: ResamplingPlan) -> Measured:
        built = MeasuredBuilder(plan.n_resamples)
        for name in scores.metrics:
            values = scores.oriented()[name].to_numpy()
            for skill, inside in (
                (None, OF_PAIR >= 0),
                ("few", OF_PAIR < 6),
                ("many", OF_PAIR >= 6),
            ):
                self._slice(built, plan, Row("rated", "1", name, "srcc", math.nan, skill=skill),
                            values, inside)  # fmt: skip
        return built.build()

    @staticmethod
    def _slice(
        built: MeasuredBuilder, plan: ResamplingPlan, row: Row, values: FloatArray, inside: Any
    ) -> None:
        pool = PooledImages.of(values, GOLD, OF_PAIR, plan, inside)
        found = pool.correlation("srcc")
        srcc = replace(pool.counted(row), value=found.value, variant="paper", note=found.note)
        built.add(srcc, found.resamples, members=pool.members, pool=pool.sample)
        if row.skill is None:
            side = np.nanmean(((values > 0) == (GOLD > 0)).reshape(20, 3), axis=1)
            distance = np.nan_to_num(np.abs(values - GOLD)).reshape(20, 3).mean(axis=1)
            for measure, of in (("side", side), ("distance", distance)):
                of_measure = replace(srcc, measure=measure, variant=None, value=float(of.mean()),
                                     note="")  # fmt: skip
                built.add(of_measure, resampled_mean(of, plan.counts), CLUSTERS, of)


@dataclass
class Ended:
    code: int
    out: str
    err: str

    @property
    def records(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.out)
        return found


Run = Callable[..., Ended]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    def compare(*words: object, width: int = 160) -> Ended:
        monkeypatch.setattr("evaluator.commands.compare.load_registry", lambda: {"rated": Rated()})
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setattr("sys.argv", ["x", "compare", *map(str, words)])
        try:
            code = main()
        except SystemExit as end:
            code = int(end.code or 0)
        return Ended(code, *capfd.readouterr())

    return compare


def noisy(noise: float, seed: int) -> FloatArray:
    return GOLD + noise * np.random.default_rng(seed).normal(0.0, 1.0, 60)


SCORES = {"good": noisy(0.3, 1), "fair": noisy(0.9, 2), "poor": noisy(4.0, 3)}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """`<metric>.csv` each, all three in `all.csv`, and unnamed columns in `one.csv` and `two.csv`."""
    frame = pd.DataFrame(SCORES, index=pd.Index(PAIRS, name="pair_id"))
    for name in SCORES:
        frame[[name]].to_csv(tmp_path / f"{name}.csv")
    frame.to_csv(tmp_path / "all.csv")
    for name, column in (("one", "good"), ("two", "poor")):
        frame[[column]].set_axis(["score"], axis=1).to_csv(tmp_path / f"{name}.csv")
    return tmp_path


def table(*names: str) -> ScoreTable:
    frame = pd.DataFrame({n: SCORES[n] for n in names}, index=pd.Index(PAIRS, name="pair_id"))
    return ScoreTable(frame)


def judged(*names: str) -> Measured:
    return Rated().evaluate(table(*names), Rated().answers(None))


# The numbers.


def test_the_numbers_are_those_of_a_board_on_which_both_stand(run: Run, files: Path) -> None:
    (first, *_) = run("rated", "--scores", files / "good.csv", files / "poor.csv", "--json").records
    board = judged("good", "fair", "poor")
    at = [i for i, row in enumerate(board.rows) if row.measure == "srcc" and row.skill is None]
    tests = flip_tests(board.contributions[at], seed_of("rated", "1"))
    assert first["p_value"] == tests.p_value[0, 2]
    assert first["n_differing"] == tests.n_units[0, 2]
    assert first["difference"] == board.rows[at[0]].value - board.rows[at[2]].value
    drawn = board.resamples[at[0]].astype(float) - board.resamples[at[2]]
    assert first["percentile_low"] == pytest.approx(np.quantile(drawn, 0.025))
    assert first["ci_low"] < first["difference"] < first["ci_high"]
    assert (first["seed"], first["n_resamples"]) == (seed_of("rated", "1"), 1000)
    assert first["plan"] == board.rows[0].plan
    assert first["versions"] == board.rows[0].versions


def test_for_a_mean_the_units_are_the_clusters_themselves(run: Run, files: Path) -> None:
    records = run("rated", "--scores", files / "good.csv", files / "poor.csv", "--json").records
    record = next(r for r in records if r["measure"] == "distance")
    clusters = {
        name: np.abs(SCORES[name] - GOLD).reshape(20, 3).mean(axis=1) for name in ("good", "poor")
    }
    d = clusters["good"] - clusters["poor"]
    assert (record["n_better_a"], record["n_tied"], record["n_better_b"]) == (
        (d < 0).sum(),
        (d == 0).sum(),
        (d > 0).sum(),
    )
    assert record["t"] == pytest.approx(stats.ttest_1samp(d, 0.0).statistic)
    assert record["wilcoxon_p"] == pytest.approx(stats.wilcoxon(d).pvalue)
    assert record["effect"] == pytest.approx(d.mean() / d.std(ddof=1))


def test_published_scores_give_the_same_as_those_that_were_sent(run: Run, files: Path) -> None:
    (files / "again.parquet").write_bytes(write_scores(table("poor")))
    sent = run("rated", "--scores", files / "good.csv", files / "poor.csv", "--json").records
    again = run("rated", "--scores", files / "good.csv", files / "again.parquet", "--json").records
    assert again == sent


def test_one_file_of_two_columns_is_the_same_pair(run: Run, files: Path) -> None:
    apart = run("rated", "--scores", files / "good.csv", files / "poor.csv", "--json").records
    words = ("--metric-a", "good", "--metric-b", "poor")
    assert run("rated", "--scores", files / "all.csv", *words, "--json").records == apart
    twice = ("--scores", files / "good.csv", "--scores", files / "poor.csv")
    assert run("rated", *twice, "--json").records == apart


def test_a_file_of_several_columns_gives_every_pair_corrected_by_holm(
    run: Run, files: Path
) -> None:
    records = run("rated", "--scores", files / "all.csv", "--json").records
    assert [(r["metric_a"], r["metric_b"]) for r in records] == [
        ("good", "fair"),
        ("good", "poor"),
        ("fair", "poor"),
    ]
    expected = holm([r["p_value"] for r in records])
    assert [r["p_corrected"] for r in records] == expected.tolist()
    assert {(r["correction"], r["n_tests"]) for r in records} == {("holm", 3)}


def test_the_headline_does_not_depend_on_what_else_is_shown(run: Run, files: Path) -> None:
    words = ("rated", "--scores", files / "good.csv", files / "fair.csv", "--json")
    few, many = run(*words).records, run(*words, "--all", "--skills").records
    assert many[0] == few[0]
    assert len(many) > len(few)
    assert many[0]["p_corrected"] == many[0]["p_value"]
    assert (many[0]["correction"], many[0]["n_tests"]) == ("holm", 1)


def test_skills_are_corrected_over_skills_and_measures_over_measures(run: Run, files: Path) -> None:
    words = ("rated", "--scores", files / "good.csv", files / "fair.csv", "--all", "--skills")
    records = run(*words, "--json").records
    places = [(r["measure"], r["skill"]) for r in records]
    assert places == [("srcc", None), ("side", None), ("distance", None), ("srcc", "few"),
                      ("srcc", "many")]  # fmt: skip
    for part in (records[1:3], records[3:]):
        tested = [r for r in part if r["p_value"] is not None]
        expected = benjamini_hochberg([r["p_value"] for r in tested])
        assert [r["p_corrected"] for r in tested] == expected.tolist()
        assert {(r["correction"], r["n_tests"]) for r in part} == {
            ("benjamini_hochberg", len(tested))
        }


def with_gaps(folder: Path, n: int, of: str = "good") -> Path:
    """A copy of a metric whose first n scores are empty."""
    gaps = np.where(np.arange(60) < n, math.nan, SCORES[of])
    path = folder / "gaps.csv"
    pd.DataFrame({"pair_id": PAIRS, "gaps": gaps}).to_csv(path, index=False)
    return path


def test_with_missing_scores_the_pair_is_tested_and_its_clusters_are_not_counted(
    run: Run, files: Path
) -> None:
    words = ("rated", "--scores", files / "good.csv", with_gaps(files, 1))
    first = run(*words, "--json").records[0]
    assert first["uncounted"] == "not counted: 1 score of gaps is missing"
    left_out = ("n_better_a", "n_tied", "n_better_b", "t", "t_p", "wilcoxon_w", "wilcoxon_p",
                "effect", "effect_low", "effect_high")  # fmt: skip
    assert [first[name] for name in left_out] == [None] * len(left_out)
    for name in ("difference", "ci_low", "ci_high", "p_value", "p_corrected"):
        assert first[name] is not None
    out = " ".join(run(*words).out.split())
    assert "better, tied, worse, paired tests and d_z: not counted: 1 score of gaps" in out
    assert "paired t" not in out.replace("paired tests", "")


def cell(name: str, *, value: float | None = 0.5, n_missing: int = 0, note: str = "") -> Cell:
    return Cell.of(name, 0, Row("rated", "1", name, "srcc", math.nan)).model_copy(
        update={"value": value, "n_items": 2840 - n_missing, "n_clusters": 100,
                "n_missing": n_missing, "note": note}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("lacking", "words"),
    [
        ((0, 0), ""),
        ((12, 0), "not counted: 12 scores of A are missing"),
        ((0, 1), "not counted: 1 score of B is missing"),
        ((3, 3), "not counted: 3 scores of A and 3 of B are missing"),
    ],
)
def test_clusters_are_counted_only_where_every_score_is_there(
    lacking: tuple[int, int], words: str
) -> None:
    cells = [cell(name, n_missing=n) for name, n in zip("ab", lacking, strict=True)]
    assert why_uncounted(cells, {"a": "A", "b": "B"}) == words


def test_why_there_is_no_test_is_said_once_and_with_its_figures() -> None:
    names = {"a": "A", "b": "B"}
    undefined = cell("b", value=None, note="Undefined: too few different scores.")
    assert why_untested([cell("a"), undefined], names) == (
        "value undefined: too few different scores"
    )
    assert why_untested([cell("a"), cell("b", n_missing=201)], names) == (
        "B lacks 201 of 2,840 scores; the limit is 2 %"
    )
    assert why_untested([cell("a"), cell("b", n_missing=12)], names) == ""


def test_a_measure_that_moves_in_steps_says_so_and_not_that_something_is_unpublished(
    run: Run, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measures = Rated.card.measures
    stepping = measures | {"side": measures["side"].model_copy(update={"in_steps": True})}
    monkeypatch.setattr(Rated, "card", Rated.card.model_copy(update={"measures": stepping}))
    words = ("rated", "--scores", files / "good.csv", files / "poor.csv", "--measure", "side")
    first = run(*words, "--json").records[0]
    assert (first["untested"], first["p_value"]) == (IN_STEPS, None)


def test_too_many_missing_scores_are_named_with_how_many_and_the_limit(
    run: Run, files: Path
) -> None:
    words = ("rated", "--scores", files / "good.csv", with_gaps(files, 6, "poor"))
    said = "gaps lacks 6 of 60 scores; the limit is 2 %"
    first = run(*words, "--json").records[0]
    assert (first["untested"], first["p_value"]) == (said, None)
    assert said in run(*words).out


def test_too_few_clusters_are_shown_and_not_tested_as_on_the_board(run: Run, files: Path) -> None:
    words = ("rated", "--scores", files / "good.csv", files / "poor.csv", "--skill", "few")
    (first,) = run(*words, "--json").records
    assert first["p_value"] is None
    assert first["difference"] > 0
    assert "too few items to order" in run(*words).out


def test_lower_is_better_turns_a_metric_round(run: Run, files: Path) -> None:
    pd.DataFrame({"pair_id": PAIRS, "error": -SCORES["good"]}).to_csv(
        files / "error.csv", index=False
    )
    words = ("rated", "--scores", files / "error.csv", files / "poor.csv", "--json")
    turned = run(*words, "--lower-is-better", "error").records[0]
    plain = run("rated", "--scores", files / "good.csv", files / "poor.csv", "--json").records[0]
    assert {**turned, "metric_a": "good"} == plain
    assert run(*words).records[0]["value_a"] == pytest.approx(-turned["value_a"])


def test_the_mean_of_several_skills_is_compared_as_on_the_board(run: Run, files: Path) -> None:
    words = ("rated", "--scores", files / "good.csv", files / "poor.csv", "--json")
    both = run(*words, "--skill", "few", "--skill", "many").records[0]
    parts = [run(*words, "--skill", skill).records[0] for skill in ("few", "many")]
    assert both["difference"] == pytest.approx(np.mean([p["difference"] for p in parts]))
    assert both["skill"] == "few+many"


# What is printed.


def test_the_first_lines_say_it_in_words(run: Run, files: Path) -> None:
    end = run("rated", "--scores", files / "good.csv", files / "poor.csv")
    assert end.code == 0
    assert re.search(r"good is better than poor by 0\.\d{3} \[0\.\d{3}, 0\.\d{3}\]\.", end.out)
    assert re.search(r"p (=|<) 0\.\d+ \(sign flips of 20 prompts, ", end.out)
    assert re.search(r"good better on \d+ prompts, poor on \d+, tied on \d+", end.out)
    assert "paired t = " in end.out
    assert "d_z = " in end.out
    said = " ".join(end.out.split())
    assert "Benjamini-Hochberg over 2 measures, without the first line" in said
    assert "they count contributions to its value (influences), not scores" in said
    assert f"Seed {seed_of('rated', '1')}" in end.out
    assert "Lower is better: distance" in end.out


def test_several_metrics_are_shown_as_a_matrix_best_first(run: Run, files: Path) -> None:
    out = run("rated", "--scores", files / "all.csv").out
    assert "after Holm's correction over 3 pairs" in out
    places = [out.index(name) for name in ("1 good", "2 fair", "3 poor")]
    assert places == sorted(places)


@pytest.mark.parametrize("width", [50, 80, 160])
@pytest.mark.parametrize("file", ["all.csv", "good.csv"])
def test_no_number_is_cut_at_any_width(run: Run, files: Path, width: int, file: str) -> None:
    more = [files / "poor.csv"] if file == "good.csv" else []
    out = run("rated", "--scores", files / file, *more, "--all", "--skills", width=width).out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= width


def test_unnamed_columns_are_called_by_their_files(run: Run, files: Path) -> None:
    record = run("rated", "--scores", files / "one.csv", files / "two.csv", "--json").records[0]
    assert (record["metric_a"], record["metric_b"]) == ("one", "two")
    named = ("--metric-a", "mine")
    end = run("rated", "--scores", files / "one.csv", files / "two.csv", *named, "--json")
    assert end.records[0]["metric_a"] == "mine"


def test_equal_names_of_two_files_are_told_apart(run: Run, files: Path) -> None:
    (files / "good.csv").rename(files / "new.csv")
    pd.DataFrame({"pair_id": PAIRS, "good": SCORES["fair"]}).to_csv(files / "old.csv", index=False)
    record = run("rated", "--scores", files / "new.csv", files / "old.csv", "--json").records[0]
    assert (record["metric_a"], record["metric_b"]) == ("good (new.csv)", "good (old.csv)")


def test_equal_scores_are_equal_with_certainty(run: Run, files: Path) -> None:
    (files / "copy.csv").write_text((files / "good.csv").read_text())
    end = run("rated", "--scores", files / "good.csv", files / "copy.csv")
    assert "are equal on every prompt" in end.out
    assert "p = 1" in end.out


def test_a_constant_metric_has_no_value_and_says_why(run: Run, files: Path) -> None:
    pd.DataFrame({"pair_id": PAIRS, "flat": 0.5}).to_csv(files / "flat.csv", index=False)
    end = run("rated", "--scores", files / "good.csv", files / "flat.csv")
    assert end.code == 0
    assert "flat has no value here" in end.out
    assert "same score" in end.out
    assert ".." not in end.out
    assert "nan" not in run("rated", "--scores", files / "all.csv", files / "flat.csv").out


# Bad input.


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["good.csv", "nowhere.csv"], 1, "nowhere.csv"),
        (["good.csv"], 1, "holds one metric only"),
        (["good.csv", "good.csv"], 1, "given twice"),
        (["all.csv", "--metric-a", "good", "--metric-b", "good"], 1, "given twice"),
        (["all.csv", "--metric-a", "good", "--metric-b", "best"], 1, "no metric 'best'"),
        (["one.csv", "one.csv", "--metric-a", "x", "--metric-b", "y"], 1, "no metric 'y'"),
        (["all.csv", "--metric-a", "good"], 2, "both --metric-a"),
        (["good.csv", "fair.csv", "poor.csv", "--metric-a", "good"], 2, "one file or two"),
        (["good.csv", "poor.csv", "--measure", "krcc"], 1, "srcc, side, distance"),
        (["good.csv", "poor.csv", "--variant", "code"], 1, "paper"),
        (["good.csv", "poor.csv", "--skill", "none"], 1, "few, many"),
        (["good.csv", "poor.csv", "--lower-is-better", "best"], 1, "good, poor"),
        (["good.csv", "other.csv"], 1, "rated does not have"),
    ],
)
def test_bad_input_is_one_message_and_a_code(
    run: Run, files: Path, words: list[str], code: int, said: str
) -> None:
    (files / "other.csv").write_text("pair_id,score\nelsewhere,1\n")
    given = [files / word if word.endswith(".csv") else word for word in words]
    end = run("rated", "--scores", *given)
    assert end.code == code
    assert said in " ".join(end.err.replace("│", " ").split())
    assert end.out == ""


def test_without_scores_it_is_wrong_usage_and_an_unknown_benchmark_is_named(
    run: Run, files: Path
) -> None:
    assert run("rated").code == 2
    end = run("unheard", "--scores", files / "all.csv")
    assert end.code == 1
    assert "unheard" in end.err


def test_help_shows_an_example(run: Run) -> None:
    out = " ".join(run("--help").out.split())
    assert "python -m evaluator compare ts2 --scores a.csv b.csv --data data" in out


# PERM-BOTH on raw scores.


def test_pooled_correlations_are_tested_by_swapped_scores_too(run: Run, files: Path) -> None:
    words = ("rated", "--scores", files / "good.csv", files / "poor.csv")
    plain = run(*words, "--json").records
    (srcc, *others) = run(*words, "--permute-scores", "--json").records
    both = np.column_stack([SCORES["good"], SCORES["poor"]])
    expected = perm_both(
        both, GOLD, "spearman", clusters=OF_PAIR, n_draws=9999, seed=seed_of("rated", "1")
    )
    assert srcc == plain[0] | {
        "permute_scores_p": expected.p_values[0, 1],
        "permute_scores_draws": 9999,
        "permute_scores_exact": False,
        "permute_scores_note": "",
    }
    for record, before in zip(others, plain[1:], strict=True):
        assert record == before | {
            "permute_scores_p": None,
            "permute_scores_draws": None,
            "permute_scores_exact": None,
            "permute_scores_note": NO_POOL,
        }


def test_every_pair_of_a_file_is_tested_as_it_would_be_alone(run: Run, files: Path) -> None:
    every = run("rated", "--scores", files / "all.csv", "--permute-scores", "--json").records
    pair = ("--metric-a", "fair", "--metric-b", "poor", "--permute-scores", "--json")
    (alone, *_) = run("rated", "--scores", files / "all.csv", *pair).records
    assert every[2]["permute_scores_p"] == alone["permute_scores_p"]
    out = run("rated", "--scores", files / "all.csv", "--permute-scores").out
    assert "good, fair" in out
    assert "p: sign flips. p (scores): PERM-BOTH" in out


def test_a_field_without_a_pool_says_so_once(run: Run, files: Path) -> None:
    words = ("rated", "--scores", files / "all.csv", "--permute-scores", "--measure", "side")
    said = f"PERM-BOTH on raw scores: not tested, {NO_POOL}."
    assert run(*words).out.count(said) == 1


def test_few_clusters_are_swapped_in_every_way(run: Run, files: Path) -> None:
    words = ("rated", "--scores", files / "good.csv", files / "poor.csv", "--permute-scores")
    (few, *_) = run(*words, "--skill", "few", "--json").records
    assert (few["permute_scores_exact"], few["permute_scores_draws"]) == (True, 2**5)
    assert few["permute_scores_p"] in np.arange(1, 33) / 32
    assert (
        "(standardised scores swapped by prompt, all 32 patterns)"
        in run(*words, "--skill", "few").out
    )


def test_the_mean_of_several_skills_is_no_pool(run: Run, files: Path) -> None:
    words = ("rated", "--scores", files / "good.csv", files / "poor.csv", "--permute-scores")
    (both, *_) = run(*words, "--skill", "few", "--skill", "many", "--json").records
    assert both["permute_scores_p"] is None
    assert both["permute_scores_note"].startswith("a mean over several skills")


def test_a_constant_metric_is_not_permuted(run: Run, files: Path) -> None:
    pd.DataFrame({"pair_id": PAIRS, "flat": 0.5}).to_csv(files / "flat.csv", index=False)
    words = ("rated", "--scores", files / "good.csv", files / "flat.csv", "--permute-scores")
    (first, *_) = run(*words, "--json").records
    assert first["permute_scores_p"] is None
    assert first["permute_scores_note"] == "a metric has constant scores"


def test_images_without_one_of_the_scores_are_left_out_and_this_is_said(
    run: Run, files: Path
) -> None:
    gaps = np.where(np.arange(60) < 2, math.nan, SCORES["poor"])
    pd.DataFrame({"pair_id": PAIRS, "gaps": gaps}).to_csv(files / "gaps.csv", index=False)
    words = ("rated", "--scores", files / "good.csv", files / "gaps.csv", "--permute-scores")
    (first, *_) = run(*words, "--json").records
    both = np.column_stack([SCORES["good"], gaps])
    expected = perm_both(
        both, GOLD, "spearman", clusters=OF_PAIR, n_draws=9999, seed=seed_of("rated", "1")
    )
    assert first["permute_scores_p"] == expected.p_values[0, 1]
    assert first["permute_scores_note"] == "tested on the 58 images that both have scores for"


def test_both_tests_stand_beside_each_other(run: Run, files: Path) -> None:
    words = ("rated", "--scores", files / "good.csv", files / "fair.csv", "--permute-scores")
    out = run(*words).out
    assert re.search(r"PERM-BOTH on raw scores: p = 0\.\d+ \(standardised .* 9,999 draws\)", out)
    text = " ".join(out.split())
    assert "p (scores): PERM-BOTH, standardised scores swapped by prompt" in text
    assert f"side, distance: {NO_POOL}." in text
    assert "PERM-BOTH" not in run(*words[:-1]).out


@pytest.mark.parametrize("width", [50, 80, 160])
@pytest.mark.parametrize("file", ["all.csv", "good.csv"])
def test_no_number_of_either_test_is_cut(run: Run, files: Path, width: int, file: str) -> None:
    more = [files / "poor.csv"] if file == "good.csv" else []
    words = ("rated", "--scores", files / file, *more, "--all", "--skills", "--permute-scores")
    out = run(*words, width=width).out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= width


# In words.


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
        ({"p_value": 0.3, "ci_low": -0.02},
         "A and B are not told apart: A has 0.100 [−0.020, 0.180] over B"),
        ({"p_value": math.nan},
         "A has 0.100 [0.020, 0.180] over B, but the two were not tested"),
        ({"p_value": 0.011, "p_corrected": 0.053, "correction": "holm", "n_tests": 10},
         "A and B are not told apart: A has 0.100 [0.020, 0.180] over B "
         "(p = 0.011 alone, 0.053 once corrected for 10 pairs)"),
        ({"p_value": 0.2, "p_corrected": 0.4, "correction": "holm", "n_tests": 10},
         "A and B are not told apart: A has 0.100 [0.020, 0.180] over B"),
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
def test_the_verdict_says_what_the_test_says(more: dict[str, Any], words: str) -> None:
    assert verdict(found(**more), "A", "B") == words


def test_small_p_values_are_neither_zero_nor_in_powers() -> None:
    assert [p_words(p) for p in (1.0, 0.999, 0.61, 0.0496, 0.0004, 3e-7, math.nan)] == [
        "p = 1", "p = 1", "p = 0.61", "p = 0.0496", "p = 0.00040", "p < 0.00001", "p –",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("p", "said"),
    [
        (0.0494, "0.049"), (0.0495, "0.0495"), (0.04998, "0.04998"), (0.05, "0.050"),
        (0.0502, "0.0502"), (0.0507, "0.051"),
    ],
)  # fmt: skip
def test_a_p_value_beside_the_level_is_never_rounded_to_it(p: float, said: str) -> None:
    assert p_words(p) == f"p = {said}"


def test_the_test_says_how_many_patterns_it_saw() -> None:
    assert evidence_words(found()) == "p = 0.010 (sign flips of 12 graphs, 9,999 draws)"
    assert evidence_words(found(exact=True, n_patterns=4096)).endswith("all 4,096 patterns)")
    assert evidence_words(found(n_patterns=0, p_value=1.2e-5)) == (
        "p ≤ 0.000012 (sign flips of 12 graphs, an upper bound)"
    )
    assert evidence_words(found(p_value=math.nan, untested="because")) == "because"


def test_words_for_numbers_and_units() -> None:
    assert figures(-0.0001, 0.5) == ["−0.00010", "0.50000"]
    assert plural("block of prompts", 250) == "250 blocks of prompts"
    assert plural("graph", 1) == "1 graph"
    assert units_of("block of prompts") == "blocks of prompts"
    assert figures(math.nan) == ["–"]
    assert dominance_words(found(), "A", "B") == "A better on 9 graphs, B on 3, tied on 3"
    assert effect_words(found(effect=math.inf)).startswith("d_z is infinite")
    assert effect_words(found()) == paired_words(found()) == ""
    assert found(effect=math.inf).to_json()["effect"] is None


def test_rows_without_a_test_do_not_count_in_a_correction() -> None:
    rows = corrected([found(), found(p_value=math.nan), found(p_value=0.04)], "holm")
    assert [row.n_tests for row in rows] == [2, 2, 2]
    assert rows[0].p_corrected == pytest.approx(0.02)
    assert math.isnan(rows[1].p_corrected)


@pytest.mark.paper
def test_on_ts2_every_bit_is_that_of_the_judged_file_of_all_twelve(
    assay_data: Path,
) -> None:
    """Graph ranks of the released scores; the file of all metrics is judged at once."""
    ts2, path = Ts2(), assay_data / "ts2" / "scores.csv"
    answers = ts2.answers(assay_data)
    every = ts2.evaluate(read_scores(path, ts2, answers), answers)
    at = [
        i
        for i, row in enumerate(every.rows)
        if ts2.card.headline.matches(row) and row.skill is None
    ]
    names = [every.rows[i].metric for i in at]
    tests = flip_tests(every.contributions[at], seed_of(ts2.name, ts2.card.revision))
    pair = [names.index(name) for name in ("alignscore", "fuyu_dsg")]
    found = contenders([path], ("alignscore", "fuyu_dsg"), ts2, answers)
    field = measured_field(found, ts2, answers)
    (row,) = compare_cells(
        [Match(field.slices[ts2.card.headline, None], 0, 1)], ts2.card, field.names
    )
    assert row.p_value == tests.p_value[pair[0], pair[1]]
    assert row.n_units == 164
    assert row.difference == every.rows[at[pair[0]]].value - every.rows[at[pair[1]]].value


@pytest.mark.paper
def test_on_ts2_a_copy_without_one_graph_neither_wins_nor_loses_the_others(
    assay_data: Path, tmp_path: Path
) -> None:
    """The copy has the scores of the metric wherever it has any."""
    ts2, path = Ts2(), assay_data / "ts2" / "scores.csv"
    answers = ts2.answers(assay_data)
    both = (
        read_scores(path, ts2, answers)
        .overall[["clipscore"]]
        .assign(copy=lambda frame: frame["clipscore"].mask(frame.index.str.startswith("000-")))
    )
    assert 0 < both["copy"].isna().mean() < 0.02
    both.to_csv(tmp_path / "both.csv")
    field = measured_field(
        contenders([tmp_path / "both.csv"], (None, None), ts2, answers), ts2, answers
    )
    (row,) = compare_cells(
        [Match(field.slices[ts2.card.headline, None], 0, 1)], ts2.card, field.names
    )
    lacking = int(both["copy"].isna().sum())
    assert row.uncounted == f"not counted: {lacking} scores of copy are missing"
    assert row.tally is None
    assert [row.t, row.wilcoxon_w, row.effect] == pytest.approx([math.nan] * 3, nan_ok=True)
    assert math.isfinite(row.p_value)
    assert row.ci_low <= row.difference <= row.ci_high
