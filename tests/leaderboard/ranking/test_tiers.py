"""Tiers of a ranking: each in one piece, with the tests and draws of its rows, and what they rest on."""

from __future__ import annotations

import numpy as np

from benchmarks.statistics.sign_flips import flip_tests
from leaderboard.ranking.draws import Draws
from leaderboard.ranking.pairs import Pairs
from leaderboard.ranking.pairs import tests_of as made_tests
from leaderboard.ranking.slices import Basis, Ranked, Slice, groups, in_tiers, kept_in_tiers, ranked
from tests.leaderboard.ranking.made_up_ranking import CARD, cell, ranking_of


def test_tiers_are_in_one_piece_even_where_rank_ranges_would_part_them() -> None:
    cells = (cell("a", 2, 2), cell("b", 1, 1), cell("c", 3, None), cell("d", 4, 2))
    base = ranking_of([0.5, 0.49, 0.48, 0.47], 0.1)
    found = groups(in_tiers(Ranked(cells, base.ordering, base.draws)).cells)
    assert [(g.tier, [c.entry_id for c in g.cells]) for g in found] == [
        (1, ["b", "c"]),  # not tested, so it stays with its neighbour above
        (2, ["a", "d"]),
    ]


def test_reordering_by_tier_takes_tests_and_draws_along() -> None:
    before = ranking_of([0.9, 0.5, 0.1], 0.001)
    after = in_tiers(before)
    assert [c.tier for c in after.cells] == [1, 2, 3]
    for ranking in (before, after):
        assert ranking.ordering.tests is not None
        values = np.array([one.value for one in ranking.cells], float)
        np.testing.assert_allclose(
            ranking.ordering.tests.difference, values[:, None] - values[None, :]
        )


def test_kept_cells_come_in_the_same_order_and_without_tiers_in_one_group() -> None:
    before = ranking_of([0.9, 0.5, 0.1], 0.001)
    assert kept_in_tiers(before.cells) == in_tiers(before).cells
    cells = (cell("a", 2, 2), cell("b", 1, 1), cell("c", None, None))
    found = groups(kept_in_tiers(cells))
    assert [(g.tier, [c.entry_id for c in g.cells]) for g in found] == [
        (1, ["b"]), (2, ["a"]), (None, ["c"]),
    ]  # fmt: skip
    untested = [cell(name, 1, None) for name in "ab"]
    assert [(g.tier, len(g.cells)) for g in groups(untested)] == [(None, 2)]


def test_without_contributions_nothing_was_tested() -> None:
    base = ranking_of([0.9, 0.5, 0.1], 0.001)
    bare = Draws(base.draws.resamples, base.draws.contributions[:, :0])
    after = in_tiers(Ranked(base.cells, base.ordering, bare))
    assert {one.tier for one in after.cells} == {None} and after.ordering.tests is None
    assert np.isnan(after.ordering.corrected).all()


def test_the_basis_counts_resamples_pairs_and_bounds() -> None:
    drawn = ranking_of([0.5, 0.49, 0.1], noise=0.01)
    shares = drawn.draws.contributions
    none = Pairs("1", (), flip_tests(shares[:0], 1))
    tests = made_tests(["a", "b", "c"], shares, 1, none, most_drawn=0)
    bounded = Basis.of(ranked(Slice(drawn.cells, drawn.draws), CARD, tests=tests))
    assert Basis.of(drawn) == Basis(50, 3) and bounded.n_bounded > 0
    assert Basis.of(in_tiers(Ranked(drawn.cells, drawn.ordering,
                    Draws(drawn.draws.resamples, shares[:, :0])))).n_pairs == 0  # fmt: skip
    kept = Basis.of_kept([cell(name, 1, 1) for name in "abcd"] + [cell("e", 5, None)], 200)
    assert kept == Basis(200, 6, kept=True)
