"""Ranks with the ranges that tests leave open, tests of who may rank, and cells without a rank."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.stats import rankdata

from benchmarks.arrays import FloatArray
from benchmarks.statistics.joint_tests import JointTests
from leaderboard.publication.publisher import build_snapshot
from leaderboard.ranking.cells import UNSANDBOXED
from leaderboard.ranking.draws import Draws
from leaderboard.ranking.rank_ranges import (
    RankRange,
    draw_ranks,
    ordering,
    ranges_left,
    rank_ranges,
)
from leaderboard.ranking.slices import Slice, mean_over_skills
from tests.leaderboard.models.made_up_models import cell
from tests.leaderboard.publication.test_snapshot import CARD, NOW, run

SEED, NAN = 5, float("nan")


# Ranges
@pytest.mark.parametrize(
    ("values", "better", "ranges"),
    [
        ([0.1, 0.9, 0.5], [(1, 0), (1, 2), (2, 0)], [(3, 3, 3), (1, 1, 1), (2, 2, 2)]),
        ([0.1, 0.9, 0.5], [(1, 0)], [(3, 2, 3), (1, 1, 2), (2, 1, 3)]),
        ([0.5, 0.5, 0.1], [], [(1, 1, 3), (1, 1, 3), (3, 1, 3)]),
        ([NAN, 0.5], [], [None, (1, 1, 1)]),
        # What lacks a value takes no place, whatever a test says of it.
        ([NAN, 0.5, 0.1], [(0, 1), (1, 2)], [None, (1, 1, 1), (2, 2, 2)]),
    ],
)
def test_a_range_holds_the_ranks_that_tests_leave_open(
    values: list[float], better: list[tuple[int, int]], ranges: list[tuple[int, int, int] | None]
) -> None:
    told = np.zeros((len(values),) * 2, bool)
    for one, other in better:
        told[one, other] = True
    assert ranges_left(np.array(values), told, np.zeros(len(values), bool)) == tuple(ranges)


def test_who_is_worse_than_the_best_has_not_the_first_rank_whoever_that_is() -> None:
    told, not_best = np.zeros((3, 3), bool), np.array([False, False, True])
    found = ranges_left(np.array([0.9, 0.8, 0.1]), told, not_best)
    assert found == ((1, 1, 3), (2, 1, 3), (3, 2, 3))
    assert rank_ranges(np.array([0.9, 0.8, NAN])) == ((1, 1, 2), (2, 1, 2), None)


_UNIT = st.floats(-1, 1)


@given(arrays(np.float64, (6, 20), elements=_UNIT))
@settings(max_examples=50, deadline=None)
def test_every_range_holds_its_rank_and_lies_on_the_board(shares: FloatArray) -> None:
    for place in rank_ranges(shares.sum(axis=1).round(9), JointTests.of(shares, SEED)):
        assert place is not None
        assert 1 <= place.low <= place.rank <= place.high <= 6


@pytest.mark.slow
def test_all_ranges_of_a_board_hold_the_true_ranks_on_nineteen_boards_of_twenty() -> None:
    """Two metrics of each of four true values; 400 boards: 5 % are 20, 33 have a chance of 0.4 %."""
    rng = np.random.default_rng(7)
    true = np.repeat(np.arange(4) * 0.15, 2)
    above, below = (true[:, None] < true).sum(axis=1), (true[:, None] > true).sum(axis=1)
    off = 0
    for seed in range(400):
        shares = (true[:, None] + rng.normal(size=(8, 60))) / 60
        found = rank_ranges(shares.sum(axis=1), JointTests.of(shares, seed % 7))
        off += any(
            one is None or one.low > 1 + above[i] or one.high < 8 - below[i]
            for i, one in enumerate(found)
        )
    assert off <= 33


_GRID = st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 0.5, 0.75, np.inf])
_ANY = st.floats(allow_nan=False)


@pytest.mark.first_quick
@pytest.mark.parametrize("elements", [_GRID, _ANY], ids=["many ties", "few ties"])
def test_ranks_in_draws_are_those_of_scipy(elements: st.SearchStrategy[float]) -> None:
    shapes = array_shapes(min_dims=2, max_dims=2, max_side=9)

    @given(arrays(np.float64, shapes, elements=elements))
    @settings(max_examples=100, deadline=None)
    def check(values: FloatArray) -> None:
        found = draw_ranks(values)
        np.testing.assert_array_equal(found.low, rankdata(values, "min", axis=0))
        np.testing.assert_array_equal(found.high, rankdata(values, "max", axis=0))

    check()
    for shape in ((3, 0), (0, 4)):
        assert draw_ranks(np.empty(shape)).low.shape == shape
    close = np.array([[0.1], [0.1 + 1e-9], [0.2]])
    for values, ranks in ((close, [1, 2, 3]), (close.astype(np.float32), [1, 1, 3])):
        assert draw_ranks(values).low.ravel().tolist() == ranks


# Orderings
@pytest.fixture
def shares() -> FloatArray:
    """Contributions of five entries; the last is far behind."""
    rng = np.random.default_rng(2)
    behind = np.array([0, 0, 0, 0, 0.3])[:, None]
    return np.asarray((rng.normal(0.5, 0.1, (5, 60)) - behind) / 60)


def drawn(values: FloatArray) -> FloatArray:
    return np.asarray(values[:, None] + np.random.default_rng(1).normal(0, 0.01, (values.size, 80)))


def test_tests_are_made_of_those_that_may_rank(shares: FloatArray) -> None:
    values, kept = shares.sum(axis=1), [0, 1, 3, 4]
    able = np.isin(np.arange(5), kept)
    found = ordering(values, drawn(values), shares, able, seed=SEED)
    assert found.tests is not None
    alone, among = JointTests.of(shares[kept], SEED), np.ix_(kept, kept)
    np.testing.assert_array_equal(found.corrected[among], alone.p_value)
    assert np.isnan(found.corrected[2]).all()
    assert (found.ranges[2], found.tiers[2]) == (None, None)
    assert (found.ranges[4], found.tiers[4]) == (RankRange(4, 4, 4), 2)
    assert found.nbytes == found.tests.nbytes + 8 * 5
    falling = ordering(-values, -drawn(values), -shares, able, higher_is_better=False, seed=SEED)
    assert (falling.ranges, falling.tiers) == (found.ranges, found.tiers)


@pytest.mark.parametrize("blocks", [None, 0])
def test_without_contributions_there_are_no_tests(shares: FloatArray, blocks: int | None) -> None:
    values, able = shares.sum(axis=1), np.ones(5, bool)
    contributions = None if blocks is None else np.empty((5, blocks))
    found = ordering(values, drawn(values), contributions, able, seed=SEED)
    tested = ordering(values, drawn(values), shares, able, seed=SEED)
    assert (found.tests, found.tiers) == (None, (None,) * 5)
    for one, other in zip(found.ranges, tested.ranges, strict=True):
        assert one and other and one == (other.rank, 1, 5)
    np.testing.assert_array_equal(found.best_share, tested.best_share)
    assert np.isnan(found.corrected).all()
    two = found.of(np.array([3, 1]))
    assert (two.tests, two.nbytes) == (None, 8 * 2)


# Cells
@pytest.mark.parametrize(
    ("changes", "why", "fit"),
    [
        ({"rank": 3}, "", True), ({"value": None}, "undefined", True),
        ({"n_clusters": 3}, "too few", False), ({"n_missing": 3}, "missing", False),
        ({"n_missing": 3, "distrust": "file names"}, "file names", False),
    ],
)  # fmt: skip
def test_a_cell_says_why_it_has_no_rank(changes: dict[str, Any], why: str, fit: bool) -> None:
    found = cell(**({"n_items": 98, "n_missing": 2} | changes))
    assert found.fit is fit
    assert why in found.why_unranked and bool(why) is bool(found.why_unranked)


def test_draws_of_different_plans_have_no_mean_over_skills() -> None:
    slices = [
        Slice((cell(skill=skill),), Draws(np.zeros((1, n)), np.full((1, 6), 0.5 / 6)))
        for skill, n in (("colour", 40), ("count", 30))
    ]
    found = mean_over_skills(slices)
    (one,) = found.cells
    assert (one.value, one.skill, one.ci_low) == (0.5, "colour+count", None)
    assert not np.isfinite(found.draws.resamples).any()
    np.testing.assert_allclose(found.draws.contributions, 0.5 / 6)
    with pytest.raises(ValueError, match="skill"):
        mean_over_skills([])


def test_a_run_without_isolation_keeps_its_value_and_takes_nobodys_rank() -> None:
    own = run("own", 0.9)
    own = replace(own, result=own.result.model_copy(update={"isolation": (UNSANDBOXED,)}))
    snapshot = build_snapshot([run("good", 0.5), run("worse", 0.4), own], {"toy": CARD}, NOW)
    cells = {cell.entry_id.partition("-")[0]: cell for cell in snapshot.boards["toy"].cells}
    assert (cells["own"].value, cells["own"].rank) == (0.9, None)
    assert "isolation" in cells["own"].why_unranked
    assert [cells[name].rank for name in ("good", "worse")] == [1, 2]
    assert snapshot.entries["own-00000000/own"].isolation == {"toy": (UNSANDBOXED,)}
