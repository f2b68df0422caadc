"""`compare`: why there is no test or no count, with missing scores and few clusters."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from benchmarks.inference import IN_STEPS
from benchmarks.rows import Row
from benchmarks.scores import read_scores
from benchmarks.ts2.protocol import Ts2
from evaluator.commands.compare_files import contenders, measured_field
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.comparing import Match, compare_cells, why_uncounted, why_untested
from tests.evaluator.commands.rated import (
    Compare,
    Rated,
    with_gaps,
)


def test_with_missing_scores_the_pair_is_tested_and_its_clusters_are_not_counted(
    compare: Compare, score_files: Path
) -> None:
    words = ("rated", "--scores", score_files / "good.csv", with_gaps(score_files, 1))
    first = compare(*words, "--json").records[0]
    assert first["uncounted"] == "not counted: 1 score of gaps is missing"
    left_out = ("n_better_a", "n_tied", "n_better_b", "t", "t_p", "wilcoxon_w", "wilcoxon_p",
                "effect", "effect_low", "effect_high")  # fmt: skip
    assert [first[name] for name in left_out] == [None] * len(left_out)
    for name in ("difference", "ci_low", "ci_high", "p_value", "p_corrected"):
        assert first[name] is not None
    out = " ".join(compare(*words).out.split())
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
    compare: Compare, score_files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measures = Rated.card.measures
    stepping = measures | {"side": measures["side"].model_copy(update={"in_steps": True})}
    monkeypatch.setattr(Rated, "card", Rated.card.model_copy(update={"measures": stepping}))
    words = (
        "rated",
        "--scores",
        score_files / "good.csv",
        score_files / "poor.csv",
        "--measure",
        "side",
    )
    first = compare(*words, "--json").records[0]
    assert (first["untested"], first["p_value"]) == (IN_STEPS, None)


def test_too_many_missing_scores_are_named_with_how_many_and_the_limit(
    compare: Compare, score_files: Path
) -> None:
    words = ("rated", "--scores", score_files / "good.csv", with_gaps(score_files, 6, "poor"))
    said = "gaps lacks 6 of 60 scores; the limit is 2 %"
    first = compare(*words, "--json").records[0]
    assert (first["untested"], first["p_value"]) == (said, None)
    assert said in compare(*words).out


def test_too_few_clusters_are_shown_and_not_tested_as_on_the_board(
    compare: Compare, score_files: Path
) -> None:
    words = (
        "rated",
        "--scores",
        score_files / "good.csv",
        score_files / "poor.csv",
        "--skill",
        "few",
    )
    (first,) = compare(*words, "--json").records
    assert first["p_value"] is None
    assert first["difference"] > 0
    assert "too few items to order" in compare(*words).out


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
