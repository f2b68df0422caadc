"""`compare`: what is printed at any width, and every bad input in plain words with its code."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.statistics.resampling import seed_of
from tests.evaluator.commands.rated import (
    PAIRS,
    SCORES,
    Compare,
)


def test_the_first_lines_say_it_in_words(compare: Compare, score_files: Path) -> None:
    end = compare("rated", "--scores", score_files / "good.csv", score_files / "poor.csv")
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


def test_several_metrics_are_shown_as_a_matrix_best_first(
    compare: Compare, score_files: Path
) -> None:
    out = compare("rated", "--scores", score_files / "all.csv").out
    assert "after Holm's correction over 3 pairs" in out
    places = [out.index(name) for name in ("1 good", "2 fair", "3 poor")]
    assert places == sorted(places)


@pytest.mark.parametrize("width", [50, 80, 160])
@pytest.mark.parametrize("file", ["all.csv", "good.csv"])
def test_no_number_is_cut_at_any_width(
    compare: Compare, score_files: Path, width: int, file: str
) -> None:
    more = [score_files / "poor.csv"] if file == "good.csv" else []
    out = compare(
        "rated", "--scores", score_files / file, *more, "--all", "--skills", width=width
    ).out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= width


def test_unnamed_columns_are_called_by_their_files(compare: Compare, score_files: Path) -> None:
    record = compare(
        "rated", "--scores", score_files / "one.csv", score_files / "two.csv", "--json"
    ).records[0]
    assert (record["metric_a"], record["metric_b"]) == ("one", "two")
    named = ("--metric-a", "mine")
    end = compare(
        "rated", "--scores", score_files / "one.csv", score_files / "two.csv", *named, "--json"
    )
    assert end.records[0]["metric_a"] == "mine"


def test_equal_names_of_two_files_are_told_apart(compare: Compare, score_files: Path) -> None:
    (score_files / "good.csv").rename(score_files / "new.csv")
    pd.DataFrame({"pair_id": PAIRS, "good": SCORES["fair"]}).to_csv(
        score_files / "old.csv", index=False
    )
    record = compare(
        "rated", "--scores", score_files / "new.csv", score_files / "old.csv", "--json"
    ).records[0]
    assert (record["metric_a"], record["metric_b"]) == ("good (new.csv)", "good (old.csv)")


def test_equal_scores_are_equal_with_certainty(compare: Compare, score_files: Path) -> None:
    (score_files / "copy.csv").write_text((score_files / "good.csv").read_text())
    end = compare("rated", "--scores", score_files / "good.csv", score_files / "copy.csv")
    assert "are equal on every prompt" in end.out
    assert "p = 1" in end.out


def test_a_constant_metric_has_no_value_and_says_why(compare: Compare, score_files: Path) -> None:
    pd.DataFrame({"pair_id": PAIRS, "flat": 0.5}).to_csv(score_files / "flat.csv", index=False)
    end = compare("rated", "--scores", score_files / "good.csv", score_files / "flat.csv")
    assert end.code == 0
    assert "flat has no value here" in end.out
    assert "same score" in end.out
    assert ".." not in end.out
    assert (
        "nan"
        not in compare("rated", "--scores", score_files / "all.csv", score_files / "flat.csv").out
    )


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
    compare: Compare, score_files: Path, words: list[str], code: int, said: str
) -> None:
    (score_files / "other.csv").write_text("pair_id,score\nelsewhere,1\n")
    given = [score_files / word if word.endswith(".csv") else word for word in words]
    end = compare("rated", "--scores", *given)
    assert end.code == code
    assert said in " ".join(end.err.replace("│", " ").split())
    assert end.out == ""


def test_without_scores_it_is_wrong_usage_and_an_unknown_benchmark_is_named(
    compare: Compare, score_files: Path
) -> None:
    assert compare("rated").code == 2
    end = compare("unheard", "--scores", score_files / "all.csv")
    assert end.code == 1
    assert "unheard" in end.err


def test_help_shows_an_example(compare: Compare) -> None:
    out = " ".join(compare("--help").out.split())
    assert "python -m evaluator compare ts2 --scores a.csv b.csv --data data" in out
