"""`compare`: its numbers are those of the board."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.scores import read_scores, write_scores
from benchmarks.statistics.multiplicity import benjamini_hochberg, holm
from benchmarks.statistics.resampling import seed_of
from benchmarks.statistics.sign_flips import flip_tests
from benchmarks.ts2.protocol import Ts2
from evaluator.commands.compare_files import contenders, measured_field
from leaderboard.ranking.comparing import Match, compare_cells
from tests.evaluator.commands.rated import (
    GOLD,
    PAIRS,
    SCORES,
    Compare,
    judged,
    table,
)


def test_the_numbers_are_those_of_a_board_on_which_both_stand(
    compare: Compare, score_files: Path
) -> None:
    (first, *_) = compare(
        "rated", "--scores", score_files / "good.csv", score_files / "poor.csv", "--json"
    ).records
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


def test_for_a_mean_the_units_are_the_clusters_themselves(
    compare: Compare, score_files: Path
) -> None:
    records = compare(
        "rated", "--scores", score_files / "good.csv", score_files / "poor.csv", "--json"
    ).records
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


def test_published_scores_give_the_same_as_those_that_were_sent(
    compare: Compare, score_files: Path
) -> None:
    (score_files / "again.parquet").write_bytes(write_scores(table("poor")))
    sent = compare(
        "rated", "--scores", score_files / "good.csv", score_files / "poor.csv", "--json"
    ).records
    again = compare(
        "rated", "--scores", score_files / "good.csv", score_files / "again.parquet", "--json"
    ).records
    assert again == sent


def test_one_file_of_two_columns_is_the_same_pair(compare: Compare, score_files: Path) -> None:
    apart = compare(
        "rated", "--scores", score_files / "good.csv", score_files / "poor.csv", "--json"
    ).records
    words = ("--metric-a", "good", "--metric-b", "poor")
    assert compare("rated", "--scores", score_files / "all.csv", *words, "--json").records == apart
    twice = ("--scores", score_files / "good.csv", "--scores", score_files / "poor.csv")
    assert compare("rated", *twice, "--json").records == apart


def test_a_file_of_several_columns_gives_every_pair_corrected_by_holm(
    compare: Compare, score_files: Path
) -> None:
    records = compare("rated", "--scores", score_files / "all.csv", "--json").records
    assert [(r["metric_a"], r["metric_b"]) for r in records] == [
        ("good", "fair"),
        ("good", "poor"),
        ("fair", "poor"),
    ]
    expected = holm([r["p_value"] for r in records])
    assert [r["p_corrected"] for r in records] == expected.tolist()
    assert {(r["correction"], r["n_tests"]) for r in records} == {("holm", 3)}


def test_the_headline_does_not_depend_on_what_else_is_shown(
    compare: Compare, score_files: Path
) -> None:
    words = ("rated", "--scores", score_files / "good.csv", score_files / "fair.csv", "--json")
    few, many = compare(*words).records, compare(*words, "--all", "--skills").records
    assert many[0] == few[0]
    assert len(many) > len(few)
    assert many[0]["p_corrected"] == many[0]["p_value"]
    assert (many[0]["correction"], many[0]["n_tests"]) == ("holm", 1)


def test_skills_are_corrected_over_skills_and_measures_over_measures(
    compare: Compare, score_files: Path
) -> None:
    words = (
        "rated",
        "--scores",
        score_files / "good.csv",
        score_files / "fair.csv",
        "--all",
        "--skills",
    )
    records = compare(*words, "--json").records
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


def test_lower_is_better_turns_a_metric_round(compare: Compare, score_files: Path) -> None:
    pd.DataFrame({"pair_id": PAIRS, "error": -SCORES["good"]}).to_csv(
        score_files / "error.csv", index=False
    )
    words = ("rated", "--scores", score_files / "error.csv", score_files / "poor.csv", "--json")
    turned = compare(*words, "--lower-is-better", "error").records[0]
    plain = compare(
        "rated", "--scores", score_files / "good.csv", score_files / "poor.csv", "--json"
    ).records[0]
    assert {**turned, "metric_a": "good"} == plain
    assert compare(*words).records[0]["value_a"] == pytest.approx(-turned["value_a"])


@pytest.mark.parametrize("name", ["-error", "--json", "-"])
def test_a_name_that_begins_as_an_option_is_taken_as_a_name_and_refused_in_words(
    compare: Compare, score_files: Path, name: str
) -> None:
    words = ("rated", "--scores", score_files / "good.csv", score_files / "poor.csv")
    for given in (("--lower-is-better", name), (f"--lower-is-better={name}",)):
        for told in (compare(*words, *given), compare(words[0], *given, *words[1:])):
            assert told.code == 1 and f"'{name}'" in told.err and "good, poor" in told.err
    pd.DataFrame({"pair_id": PAIRS, name: SCORES["good"]}).to_csv(
        score_files / "dashed.csv", index=False
    )
    column = compare("rated", "--scores", score_files / "dashed.csv", score_files / "poor.csv")
    assert column.code == 1 and "bad_metric_name" in column.err


def test_the_mean_of_several_skills_is_compared_as_on_the_board(
    compare: Compare, score_files: Path
) -> None:
    words = ("rated", "--scores", score_files / "good.csv", score_files / "poor.csv", "--json")
    both = compare(*words, "--skill", "few", "--skill", "many").records[0]
    parts = [compare(*words, "--skill", skill).records[0] for skill in ("few", "many")]
    assert both["difference"] == pytest.approx(np.mean([p["difference"] for p in parts]))
    assert both["skill"] == "few+many"


@pytest.mark.slow
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
