"""FLOPs that authors declare: kept from the manifest on, shown as declared, never as measured."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from leaderboard.pages.boards.columns import FLOPS as COLUMN
from leaderboard.pages.boards.columns import columns_of, values_of
from leaderboard.pages.metric.query import Shown
from leaderboard.pages.metric.view import _costs
from leaderboard.pages.reading import View
from leaderboard.pages.shown.flops import gigaflops_text
from leaderboard.publication.entries import Entry, entries_of
from leaderboard.records import Submission
from tests.leaderboard.pages.skills.skills_fixture import FLOPS, runs_of, skills_view_of


@pytest.fixture(scope="module")
def view() -> View:
    return skills_view_of()


def entry_of(view: View, metric: str) -> Entry:
    return next(entry for entry in view.entries.values() if entry.metric == metric)


def test_an_entry_has_what_its_submission_declares_of_its_metric(view: View) -> None:
    for entry in view.entries.values():
        assert entry.flops_per_pair == FLOPS.get(entry.metric)
    run = runs_of()[0]
    two = run.submission.model_copy(update={"metrics": ("a", "b"), "flops_per_pair": {"b": 7e9}})
    found = entries_of(two, [run.result])
    assert [entry.flops_per_pair for entry in found.values()] == [None, 7e9]


def test_an_entry_written_before_there_were_any_declares_none(view: View) -> None:
    kept = entry_of(view, "CLIPScore").model_dump(mode="json")
    del kept["flops_per_pair"]
    assert Entry.model_validate(kept).flops_per_pair is None


@pytest.mark.parametrize("flops", [0.0, -1.0, float("inf"), float("nan")])
def test_no_record_holds_flops_that_are_no_cost(view: View, flops: float) -> None:
    own = runs_of()[0].submission.model_dump()
    with pytest.raises(ValidationError, match="flops_per_pair"):
        Submission.model_validate({**own, "flops_per_pair": {"m": flops}})
    with pytest.raises(ValidationError, match="flops_per_pair"):
        Entry.model_validate({**entry_of(view, "CLIPScore").model_dump(), "flops_per_pair": flops})


def test_the_page_of_a_metric_says_declared_or_not_declared(view: View) -> None:
    declared = _costs(Shown(entry_of(view, "CLIPScore"), None, ()), {})
    assert "16.0 GFLOPs, declared by its author, not measured" in declared
    assert "FLOPs per pair: not declared" in _costs(
        Shown(entry_of(view, "PickScore"), None, ()), {}
    )
    # Scores files are not run, so nothing is measured, but their authors may say what they took.
    assert "800,000 GFLOPs" in _costs(Shown(entry_of(view, "Closed-API"), None, ()), {})


def test_a_board_has_a_column_of_them(view: View) -> None:
    board = view.boards["croc"]
    (column,) = columns_of(board, [COLUMN])
    assert "declared" in column.title and "not measured" in column.meaning
    values = values_of(board, column, view.entries)
    known = {view.entries[name].metric: value for name, value in values.costs.items()}
    assert known == pytest.approx({name: flops / 1e9 for name, flops in FLOPS.items()})


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1e-9, "1.0e-09 GFLOPs"), (0.5, "0.50 GFLOPs"), (16.0, "16.0 GFLOPs"),
     (1e12, "1,000,000,000,000 GFLOPs")],
)  # fmt: skip
def test_they_are_shown_with_about_three_digits(value: float, shown: str) -> None:
    assert gigaflops_text(value) == shown
