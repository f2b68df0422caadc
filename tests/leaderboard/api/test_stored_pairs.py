"""Tests that are read from the snapshot are those that would be made."""

from __future__ import annotations

import pytest

from leaderboard.api.tables.boards import as_of
from leaderboard.api.tables.stored_pairs import stored_pairs
from leaderboard.pages.boards.pair_matrix import pairs
from leaderboard.pages.boards.query import BoardQuery, resolve
from leaderboard.pages.shown.tiers import in_tiers
from tests.leaderboard.api.asking import asking
from tests.leaderboard.house import CARDS, House


def test_the_stored_tests_of_a_headline_are_those_of_its_ranking() -> None:
    made = House()
    for place in range(6):
        ident = made.send(name=f"metric{place}")
        made.claim(ident)
        made.finish(ident, 0.3 + 0.1 * place)
    api = asking(made.store, CARDS)
    view = api.source.reader.view()
    choice = resolve(BoardQuery("open"), view.boards)
    ranked = in_tiers(view.orders.ranked(choice.board.card, choice.slices()))
    made_now, stored = pairs(ranked, None), stored_pairs(made.store, choice)
    assert len(stored) == len(made_now) == 15
    for one, other in zip(stored, made_now, strict=True):
        assert one.difference == pytest.approx(other.difference)
        assert one._replace(difference=0.0) == other._replace(difference=0.0)
    assert as_of(view) is not None
