"""Values of one measure by metric and skill, tested within each skill."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from benchmarks.schema import Selector
from leaderboard.publication.measure_names import nearest
from leaderboard.publication.reader import BoardIndex, View
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.skill_tests import TestedColumn
from leaderboard.views.boards import Choice


@dataclass(frozen=True)
class SkillColumn:
    """One skill."""

    skill: str | None  # its key; None: all skills together
    selector: Selector  # the measure; skills may have another variant of it than the whole
    cells: Mapping[str, Cell]  # entry id to its value
    tests: TestedColumn  # against the best of the column

    def may_be_best(self, cell: Cell) -> bool:
        """Whether it is the best of its column, or does not differ significantly from it.

        Where nothing could be tested, whether its rank range among all metrics reaches 1.
        """
        if self.tests.best is None:
            return cell.rank_low == 1
        return self.tests.as_good_as_best(cell.entry_id)


@dataclass(frozen=True)
class SkillHeat:
    """Metrics by skills."""

    columns: tuple[SkillColumn, ...]  # all skills together first, then each
    # of the rows, in the order of the first column, then those it does not have
    entry_ids: tuple[str, ...]

    @property
    def n_tests(self) -> int:
        """Tests that the correction counts."""
        return sum(column.tests.n_tests for column in self.columns)


def has_skills(board: BoardIndex, selector: Selector) -> bool:
    """Whether any skill has this measure."""
    return any(
        one.measure == selector.measure
        for skill in _whole_skills(board)
        for one in board.selectors(skill)
    )


def skill_heat(choice: Choice, view: View) -> SkillHeat | None:
    """Values by skill; None where the board has no skills for the measure.

    The tests are those of all metrics, whatever is filtered, unless they are asked for within the
    filter. A skill without the measure has no column.
    """
    board, selector = choice.board, choice.selector
    if selector is None or not has_skills(board, selector):
        return None
    found: list[tuple[str | None, Selector, tuple[Cell, ...]]] = []
    for skill in (None, *_whole_skills(board)):
        same = [s for s in board.selectors(skill) if s.measure == selector.measure]
        if same:
            one = nearest(selector, same, board.card)
            found.append((skill, one, board.cells(one, skill)))
    # Of all entries, since there are rows for everybody, whatever skill is ranked.
    kept = choice.filters.kept(view.entries, view.entries, board.card)
    tests = view.skill_tests.columns(
        view.orders, board.card, [cells for _, _, cells in found],
        kept if choice.filters.within else None,
    )  # fmt: skip
    columns = tuple(
        SkillColumn(skill, one, {cell.entry_id: cell for cell in cells}, tested)
        for (skill, one, cells), tested in zip(found, tests, strict=True)
    )
    return SkillHeat(columns, _rows(columns, kept))


def _whole_skills(board: BoardIndex) -> list[str]:
    """Skills without their sub-skills, which rest on too few items to be taken in at a glance."""
    return [skill for skill in board.skills() if ":" not in skill]


def _rows(columns: tuple[SkillColumn, ...], kept: Collection[str] | None) -> tuple[str, ...]:
    found = dict.fromkeys(entry_id for column in columns for entry_id in column.cells)
    return tuple(entry_id for entry_id in found if kept is None or entry_id in kept)
