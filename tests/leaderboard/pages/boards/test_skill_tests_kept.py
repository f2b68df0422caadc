"""The tests of heatmaps that are remembered stay within their bytes, however large boards are."""

from __future__ import annotations

import numpy as np
import pytest

from leaderboard.pages.boards import skill_tests
from leaderboard.pages.boards.skill_tests import SkillTests
from leaderboard.pages.reading import View, view_of
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.orders import Orders
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.synthetic import cards, fill, snapshot


@pytest.fixture(scope="module")
def view() -> View:
    return view_of(snapshot(24), cards(), Orders(fill(memory_store(), 24)))


def columns_of(view: View) -> list[tuple[Cell, ...]]:
    board = view.boards["ratings"]
    return [
        board.cells(selector, skill)
        for skill in board.skills()[:3]
        for selector in board.selectors(skill)
    ]


def test_many_large_columns_are_remembered_within_bounds(
    view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = columns_of(view)
    entries = len(columns[0])
    largest = 3 * 8 * entries**2
    monkeypatch.setattr(skill_tests, "_BYTES", largest)
    kept, card = SkillTests(), view.boards["ratings"].card
    assert len(columns) > 4 and entries > 15
    for column in columns:
        kept.columns(view.orders, card, [column])
        assert 0 < kept.nbytes <= largest
    free = SkillTests().columns(view.orders, card, columns)
    assert kept.columns(view.orders, card, columns) == free


def test_what_is_counted_is_what_is_held(view: View) -> None:
    kept, card = SkillTests(), view.boards["ratings"].card
    columns = columns_of(view)
    kept.columns(view.orders, card, columns)
    matrices = sum(8 * len(column) ** 2 for column in columns)
    assert matrices <= kept.nbytes <= 2 * matrices
    before = kept.nbytes
    kept.columns(view.orders, card, columns, [columns[0][0].entry_id])
    assert kept.nbytes == before  # A filter needs no tests of its own.


def test_one_board_larger_than_all_that_is_kept_is_still_tested(
    view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skill_tests, "_BYTES", 10)
    kept, card = SkillTests(), view.boards["ratings"].card
    column = columns_of(view)[0]
    (found,) = kept.columns(view.orders, card, [column])
    assert kept.nbytes == 0 and found.n_tests > 0
    assert all(np.isfinite(list(found.corrected.values())))
