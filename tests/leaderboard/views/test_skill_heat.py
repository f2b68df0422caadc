"""Values by skill: a column for each, marked what the tests leave beside the best, in bounds."""

from __future__ import annotations

import pytest

from leaderboard.publication.reader import View
from leaderboard.views.benchmark_board import SkillHeat, has_skills, skill_heat
from leaderboard.views.boards import BoardQuery, Filters, resolve
from tests.leaderboard.web import synthetic
from tests.leaderboard.web.synthetic import SKILLS, cards

CARD = cards()["ratings"]


@pytest.fixture(scope="module")
def view() -> View:
    return synthetic.view()


def heat(view: View, filters: Filters | None = None) -> SkillHeat:
    query = BoardQuery("ratings", filters=filters or Filters())
    found = skill_heat(resolve(query, view.boards), view)
    assert found is not None
    return found


def test_every_skill_has_a_column_and_a_board_without_skills_none(view: View) -> None:
    found = heat(view)
    assert [column.skill for column in found.columns] == [None, *SKILLS]
    assert len({column.selector for column in found.columns}) == 2  # variants of one measure
    assert sum(column.tests.best is None for column in found.columns) == 1  # six clusters only
    graphs = resolve(BoardQuery("graphs"), view.boards)
    assert graphs.selector is not None and not has_skills(graphs.board, graphs.selector)
    assert skill_heat(graphs, view) is None
    assert skill_heat(resolve(BoardQuery("unused"), view.boards), view) is None


def test_a_filter_takes_rows_away_and_changes_no_test(view: View) -> None:
    whole, three = heat(view), heat(view, Filters("tifa,dsg,siglip"))
    assert len(three.entry_ids) == 3 < len(whole.entry_ids)
    assert [c.tests for c in three.columns] == [c.tests for c in whole.columns]
    assert three.n_tests == whole.n_tests > 15
    assert heat(view, Filters("zzz")).entry_ids == ()


def test_tests_within_a_filter_are_those_of_its_rows_alone(view: View) -> None:
    three = heat(view, Filters("tifa,dsg,siglip", within=True))
    assert three.n_tests == 15  # three pairs in each of five tested columns
    alone = heat(view, Filters("tifa", within=True))
    assert (len(alone.entry_ids), alone.n_tests) == (1, 0)


def test_what_may_be_best_is_the_best_or_not_significantly_different_from_it(view: View) -> None:
    for column in heat(view).columns:
        for cell in column.cells.values():
            expected = cell.rank_low == 1
            if column.tests.best is not None:
                p = column.tests.corrected.get(cell.entry_id, 0.0)
                expected = cell.entry_id == column.tests.best or p >= 0.05
            assert column.may_be_best(cell) is expected
