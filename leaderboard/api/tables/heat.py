"""Values by skill: the heatmap of a board, one row for each of its values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from leaderboard.publication.measure_names import nearest, skill_title
from leaderboard.publication.reader import View
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.skill_tests import TestedColumn
from leaderboard.tables import Table, Type, Value, columns_of
from leaderboard.views.boards import Choice

COLUMNS = (
    "metric", "version", "entry_id", "skill", "skill_title", "measure", "variant", "split", "facet",
    "value", "ci_low", "ci_high", "n_items", "n_clusters", "n_missing", "rank_low", "rank",
    "rank_high", "maybe_best", "p_against_best", "note", "kind",
)  # fmt: skip
_TYPES = {
    Type.NUMBER: "value ci_low ci_high p_against_best",
    Type.COUNT: "n_items n_clusters n_missing rank_low rank rank_high",
    Type.FLAG: "maybe_best",
}
_MEANINGS = {
    "skill": "Missing: all skills.",
    "kind": "metric: run by Assay; scores: as submitted or released, not re-run.",
    "variant": "Skills may have another variant of the measure than the whole.",
    "maybe_best": "The best of its skill, or no significant difference from it at 5%.",
    "p_against_best": "After Benjamini and Hochberg's correction over all pairs of all columns.",
}


def heat_table(
    choice: Choice,
    view: View,
    entry_ids: Collection[str] | None,
    about: Mapping[str, Any],
    *,
    tested: bool = True,
    within: bool = False,
) -> Table:
    """Metrics by skills for one measure; skills without the measure have no rows.

    Args:
        choice: board and measure.
        view: has the entries and makes the tests.
        entry_ids: those that are shown; None: all.
        about: what the table is of.
        tested: whether to test the metrics of each skill; else the published rank ranges say which
            may be best, which takes no time however many there are.
        within: whether to test only those that are shown, among themselves.
    """
    board, selector = choice.board, choice.selector
    slices: list[tuple[str | None, tuple[Cell, ...]]] = []
    for skill in (None, *(skill for skill in board.skills() if ":" not in skill)):
        same = [s for s in board.selectors(skill) if selector and s.measure == selector.measure]
        if selector and same:
            slices.append((skill, board.cells(nearest(selector, same, board.card), skill)))
    columns = [cells for _, cells in slices]
    # A board without results has no columns, and nothing to test.
    tests: Sequence[TestedColumn] = [TestedColumn(None, {})] * len(columns)
    if tested and columns:
        only = entry_ids if within else None
        tests = view.skill_tests.columns(view.orders, board.card, columns, only)
    rows = [
        {**_row(cell, column, view), "skill_title": skill_title(board.card, skill)}
        for (skill, cells), column in zip(slices, tests, strict=True)
        for cell in cells
        if entry_ids is None or cell.entry_id in entry_ids
    ]
    return Table(f"{board.card.name}-skills", columns_of(COLUMNS, _TYPES, _MEANINGS), rows, about)


def _row(cell: Cell, column: TestedColumn, view: View) -> dict[str, Value]:
    entry = view.entries[cell.entry_id]
    if column.best is None:
        best = cell.value is not None and cell.rank_low == 1
    else:
        best = cell.value is not None and column.as_good_as_best(cell.entry_id)
    return {
        **cell.model_dump(),
        "metric": entry.metric,
        "version": entry.version,
        "kind": entry.kind.value,
        "maybe_best": best,
        "p_against_best": column.corrected.get(cell.entry_id),
    }
