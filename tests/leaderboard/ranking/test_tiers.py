"""Tiers of a ranking: each in one piece, with the tests and draws of its rows, and what they rest on."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from benchmarks.statistics.joint_tests import JointTests
from leaderboard.ranking.cells import best_first
from leaderboard.ranking.comparing import compare_all
from leaderboard.ranking.draws import Draws
from leaderboard.ranking.rank_ranges import tiers
from leaderboard.ranking.slices import Basis, Slice, groups, ranked
from tests.leaderboard.ranking.made_up_ranking import CARD, cell, ranking_of


def test_a_board_goes_by_value_and_its_tiers_are_in_one_piece() -> None:
    """A rank range that reaches further up does not bring a lower value up."""
    cells = (
        cell("a", 2, 1, value=0.6, rank_low=1), cell("b", 1, 1, value=0.7), cell("c", 3, None),
        cell("d", 4, 2, value=0.4), cell("e", None, None, value=0.9), cell("f", None, None, value=None),
    )  # fmt: skip
    found = groups(best_first(cells, higher_is_better=True))
    assert [(g.tier, [c.entry_id for c in g.cells]) for g in found] == [
        (1, ["b", "a", "c"]),  # c was not tested, so it stays with its neighbour above
        (2, ["d"]),
        (None, ["e", "f"]),
    ]
    untested = [cell(name, 1, None) for name in "ab"]
    assert [(g.tier, len(g.cells)) for g in groups(untested)] == [(None, 2)]


def test_board_order_takes_tests_and_draws_along() -> None:
    ranking = ranking_of([0.1, 0.9, 0.5], 0.001)
    assert [c.tier for c in ranking.cells] == [1, 2, 3]
    assert ranking.ordering.tests is not None
    values = np.array([one.value for one in ranking.cells], float)
    np.testing.assert_allclose(ranking.ordering.tests.difference, values[:, None] - values[None, :])
    np.testing.assert_allclose(ranking.draws.contributions.sum(axis=1), values)


def test_without_contributions_nothing_was_tested() -> None:
    base = ranking_of([0.9, 0.5, 0.1], 0.001)
    bare = Slice(base.cells, Draws(base.draws.resamples, base.draws.contributions[:, :0]))
    after = ranked(bare, CARD)
    assert {one.tier for one in after.cells} == {None} and after.ordering.tests is None
    assert np.isnan(after.ordering.corrected).all() and Basis.of(after).n_pairs == 0


def test_the_first_tier_ends_before_who_is_worse_than_the_best() -> None:
    """Told apart from nobody alone, and yet not the best: the leader, whoever it is, is better."""
    tests = JointTests.of(ranking_of([0.5, 0.49, 0.48], noise=0.3).draws.contributions, 1)
    values = np.array([0.5, 0.49, 0.48])
    assert tiers(values, tests) == (1, 1, 1)
    assert tiers(values, replace(tests, p_best=np.array([1.0, 0.8, 0.01]))) == (1, 1, 2)
    # Equal values move together.
    equal = np.array([0.5, 0.49, 0.49])
    assert tiers(equal, replace(tests, p_best=np.array([1.0, 0.8, 0.01]))) == (1, 2, 2)


def test_the_basis_counts_resamples_and_pairs() -> None:
    drawn = ranking_of([0.5, 0.49, 0.1], noise=0.01)
    assert Basis.of(drawn) == Basis(50, 3)
    kept = Basis.of_kept([cell(name, 1, 1) for name in "abcd"] + [cell("e", 5, None)], 200)
    assert kept == Basis(200, 6, kept=True)


def test_several_are_compared_as_the_board_tests_them() -> None:
    """Also where one of them may not rank: it is in no test."""
    whole = ranking_of([0.9, 0.5, 0.49, 0.1], noise=0.05)
    few = whole.cells[2].model_copy(update={"n_clusters": 3})
    one = Slice((*whole.cells[:2], few, whole.cells[3]), whole.draws)
    names = {cell.entry_id: cell.entry_id for cell in one.cells}
    rows = compare_all(one, CARD, names)
    assert [(row.metric_a, row.metric_b) for row in rows] == list(combinations(names, 2))
    corrected = ranked(one, CARD).ordering.corrected[np.triu_indices(4, 1)]
    np.testing.assert_array_equal([row.p_corrected for row in rows], corrected)
    tested = [row for row in rows if not row.untested]
    assert len(tested) == 3 and {(row.correction, row.n_tests) for row in tested} == {("joint", 3)}
    assert all(few.entry_id in (row.metric_a, row.metric_b) for row in rows if row.untested)
    assert one.cells[0].selector.measure == "srcc"
