"""Ranks with their ranges from joint resamples, tests of who may rank, and cells without a rank."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.stats import rankdata

from benchmarks.arrays import FloatArray
from benchmarks.statistics.multiplicity import holm
from benchmarks.statistics.sign_flips import flip_tests
from leaderboard.publication.publisher import build_snapshot
from leaderboard.ranking.cells import UNSANDBOXED
from leaderboard.ranking.draws import Draws
from leaderboard.ranking.pairs import Pairs, pairs_path, read_pairs
from leaderboard.ranking.rank_ranges import RankRange, draw_ranks, ordering, rank_ranges
from leaderboard.ranking.slices import Slice, mean_over_skills
from tests.kit.store import memory_store
from tests.leaderboard.models.made_up_models import cell
from tests.leaderboard.publication.test_snapshot import CARD, NOW, run

SEED, NAN = 5, float("nan")
PARTED = np.linspace(-0.01, 0.01, 100)
SAME = np.zeros(10)
GONE = np.full(10, NAN)
AT_TIMES = np.array([NAN, NAN, *[0.0] * 8])
SWAPPED = np.array([0.5, -0.5] * 50)


# Ranges
@pytest.mark.parametrize(
    ("values", "noise", "ranges"),
    [
        ([0.1, 0.9, 0.5], [PARTED] * 3, [(3, 3, 3), (1, 1, 1), (2, 2, 2)]),
        ([0.51, 0.5], [SWAPPED, -SWAPPED], [(1, 1, 2), (2, 1, 2)]),
        ([0.5, 0.5, 0.1], [SAME] * 3, [(1, 1, 1), (1, 1, 1), (3, 3, 3)]),
        ([NAN, 0.5], [SAME] * 2, [None, (1, 1, 1)]),
        # Without any resample a range is everything; without some it is last there, alone.
        ([1.0, 2.0, 3.0], [SAME, GONE, SAME], [(3, 2, 3), (2, 1, 3), (1, 1, 1)]),
        ([3.0, 2.0], [AT_TIMES, SAME], [(1, 1, 2), (2, 1, 2)]),
    ],
)
def test_a_range_holds_the_ranks_of_all_resamples(
    values: list[float], noise: list[FloatArray], ranges: list[tuple[int, int, int] | None]
) -> None:
    of = np.array(values)
    assert rank_ranges(of, of[:, None] + np.array(noise)) == ranges
    falling = rank_ranges(-of, -of[:, None] - np.array(noise), higher_is_better=False)
    assert falling == ranges


_UNIT = st.floats(-1, 1)


@given(arrays(np.float64, 6, elements=_UNIT), arrays(np.float64, (6, 20), elements=_UNIT))
def test_every_range_holds_its_rank_and_lies_on_the_board(
    values: FloatArray, noise: FloatArray
) -> None:
    for place in rank_ranges(values, values[:, None] + noise):
        assert place is not None
        assert 1 <= place.low <= place.rank <= place.high <= 6


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


def test_tests_are_made_of_those_that_may_rank_and_corrected_over_them(shares: FloatArray) -> None:
    values, kept = shares.sum(axis=1), [0, 1, 3, 4]
    able = np.isin(np.arange(5), kept)
    found = ordering(values, drawn(values), shares, able, seed=SEED)
    assert found.tests is not None
    alone, among = flip_tests(shares[kept], SEED), np.ix_(kept, kept)
    np.testing.assert_array_equal(found.tests.p_value[among], alone.p_value)
    assert np.isnan(found.tests.p_value[2]).all()
    a, b = np.triu_indices(4, 1)
    np.testing.assert_allclose(found.corrected[among][a, b], holm(alone.p_value[a, b]))
    assert (found.ranges[2], found.tiers[2]) == (None, None)
    assert (found.ranges[4], found.tiers[4]) == (RankRange(4, 4, 4), 2)
    assert found.nbytes == found.tests.nbytes + 8 * (25 + 5)


@pytest.mark.parametrize("blocks", [None, 0])
def test_without_contributions_there_are_no_tests(shares: FloatArray, blocks: int | None) -> None:
    values, able = shares.sum(axis=1), np.ones(5, bool)
    contributions = None if blocks is None else np.empty((5, blocks))
    found = ordering(values, drawn(values), contributions, able, seed=SEED)
    tested = ordering(values, drawn(values), shares, able, seed=SEED)
    assert (found.ranges, found.tests, found.tiers) == (tested.ranges, None, (None,) * 5)
    np.testing.assert_array_equal(found.p_best, tested.p_best)
    assert np.isnan(found.corrected).all()
    two = found.of(np.array([3, 1]))
    assert (two.tests, two.nbytes) == (None, 8 * (4 + 2))  # two by two doubles, one for each


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


def test_published_tests_of_another_form_are_made_again() -> None:
    public = memory_store().public
    assert read_pairs(public, "toss", "1", ["a"]) is None
    buffer = pa.BufferOutputStream()
    pq.write_table(pa.table({"entry_a": ["a"], "entry_b": ["b"]}), buffer)
    for content in (buffer.getvalue().to_pybytes(), b"no table"):
        public.commit({pairs_path("toss"): content}, parent=public.head(), message="tests")
        assert read_pairs(public, "toss", "1", ["a", "b"]) is None
    assert Pairs("1", (), flip_tests(np.empty((0, 3)), SEED)).tests.nbytes == 0


def test_a_run_without_isolation_keeps_its_value_and_takes_nobodys_rank() -> None:
    own = run("own", 0.9)
    own = replace(own, result=own.result.model_copy(update={"isolation": (UNSANDBOXED,)}))
    snapshot = build_snapshot([run("good", 0.5), run("worse", 0.4), own], {"toy": CARD}, NOW)
    cells = {cell.entry_id.partition("-")[0]: cell for cell in snapshot.boards["toy"].cells}
    assert (cells["own"].value, cells["own"].rank) == (0.9, None)
    assert "isolation" in cells["own"].why_unranked
    assert [cells[name].rank for name in ("good", "worse")] == [1, 2]
    assert snapshot.entries["own-00000000/own"].isolation == {"toy": (UNSANDBOXED,)}
