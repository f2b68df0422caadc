"""An ordering with and without tests, why a cell has no rank, and what is kept of it all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.statistics.multiplicity import holm
from benchmarks.statistics.sign_flips import flip_tests
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.draws import Draws
from leaderboard.ranking.index import Comparison
from leaderboard.ranking.pairs import Pairs, pairs_path, read_pairs
from leaderboard.ranking.rank_ranges import RankRange, ordering
from leaderboard.ranking.slices import Slice, mean_over_skills
from leaderboard.store.memory import memory_store
from tests.leaderboard.ranking.test_index import board

SEED = 5


@pytest.fixture
def shares() -> np.ndarray:
    """Contributions of five entries; the last is far behind."""
    rng = np.random.default_rng(2)
    behind = np.array([0, 0, 0, 0, 0.3])[:, None]
    return np.asarray((rng.normal(0.5, 0.1, (5, 60)) - behind) / 60)


def drawn(values: np.ndarray) -> np.ndarray:
    return values[:, None] + np.random.default_rng(1).normal(0, 0.01, (values.size, 80))


def test_tests_are_made_of_those_that_may_rank_and_corrected_over_them(shares: np.ndarray) -> None:
    values = shares.sum(axis=1)
    able = np.array([True, True, False, True, True])
    found = ordering(values, drawn(values), shares, able, seed=SEED)
    assert found.tests is not None
    kept = [0, 1, 3, 4]
    alone = flip_tests(shares[kept], SEED)
    np.testing.assert_array_equal(found.tests.p_value[np.ix_(kept, kept)], alone.p_value)
    assert np.isnan(found.tests.p_value[2]).all()
    a, b = np.triu_indices(4, 1)
    expected = holm(alone.p_value[a, b])
    np.testing.assert_allclose(found.corrected[np.ix_(kept, kept)][a, b], expected)
    assert (found.ranges[2], found.tiers[2]) == (None, None)
    assert found.ranges[4] == RankRange(4, 4, 4)
    assert found.tiers[4] == 2


@pytest.mark.parametrize("blocks", [None, 0])
def test_without_contributions_there_are_ranks_and_no_tests(
    shares: np.ndarray, blocks: int | None
) -> None:
    values = shares.sum(axis=1)
    contributions = None if blocks is None else np.empty((5, blocks))
    found = ordering(values, drawn(values), contributions, np.ones(5, bool), seed=SEED)
    tested = ordering(values, drawn(values), shares, np.ones(5, bool), seed=SEED)
    assert (found.ranges, found.tests, found.tiers) == (tested.ranges, None, (None,) * 5)
    np.testing.assert_array_equal(found.p_best, tested.p_best)
    assert np.isnan(found.corrected).all()
    order = np.array([3, 1])
    assert found.of(order).tests is None
    # Two by two doubles, and one for each.
    assert found.of(order).nbytes == 8 * (4 + 2)
    assert tested.nbytes == tested.tests.nbytes + 8 * (25 + 5) if tested.tests else False


def cell(**changes: Any) -> Cell:
    fields: dict[str, Any] = {
        "entry_id": "x/m", "measure": "srcc", "variant": None, "split": None, "facet": None,
        "skill": "colour", "value": 0.5, "ci_low": None, "ci_high": None, "n_items": 98,
        "n_clusters": 90, "n_missing": 2, "note": "",
    }  # fmt: skip
    return Cell(**(fields | changes))


@pytest.mark.parametrize(
    ("changes", "why", "fit"),
    [
        ({"rank": 3}, "", True),
        ({"value": None}, "value undefined", True),
        ({"n_clusters": 3}, "too few items to order", False),
        ({"n_missing": 3}, "too many scores missing", False),
        ({"n_missing": 3, "distrust": "looks at file names"}, "looks at file names", False),
    ],
)
def test_a_cell_says_in_few_words_why_it_has_no_rank(
    changes: dict[str, Any], why: str, fit: bool
) -> None:
    found = cell(**changes)
    assert found.fit is fit
    assert found.why_unranked == why


def test_draws_of_different_plans_have_no_mean_over_skills() -> None:
    rng = np.random.default_rng(3)
    slices = [
        Slice((cell(skill=skill),), Draws(rng.random((1, n)), np.full((1, 6), 0.5 / 6)))
        for skill, n in (("colour", 40), ("count", 30))
    ]
    found = mean_over_skills(slices)
    assert found.cells[0].value == 0.5
    assert found.cells[0].skill == "colour+count"
    assert found.cells[0].ci_low is None
    assert not np.isfinite(found.draws.resamples).any()
    np.testing.assert_allclose(found.draws.contributions, 0.5 / 6)
    with pytest.raises(ValueError, match="no skill"):
        mean_over_skills([])


def test_published_tests_of_another_form_are_made_again() -> None:
    store = memory_store()
    assert read_pairs(store.public, "toss", "1", ["a"]) is None
    import pyarrow as pa
    import pyarrow.parquet as pq

    for number, table in enumerate((pa.table({"entry_a": ["a"], "entry_b": ["b"]}), None)):
        buffer = pa.BufferOutputStream()
        if table is not None:
            pq.write_table(table, buffer)
        content = buffer.getvalue().to_pybytes() if table is not None else b"no table"
        store.public.commit(
            {pairs_path("toss"): content}, parent=store.public.head(), message=str(number)
        )
        assert read_pairs(store.public, "toss", "1", ["a", "b"]) is None
    assert Pairs("1", (), flip_tests(np.empty((0, 3)), SEED)).tests.nbytes == 0


def test_what_a_comparison_keeps_is_what_its_boards_hold() -> None:
    one, two = board("one", {"m": 0.5, "n": 0.4}), board("two", {"n": 0.1})
    both = Comparison([one, two]).nbytes
    alone = sum(Comparison([each]).nbytes for each in (one, two))
    # Each board is laid out for all metrics of both.
    assert alone < both
    n_draws = one.resamples.shape[1] + 1
    assert Comparison([one]).nbytes == 2 * 1 + 2 * 2 * n_draws * 8 + n_draws * 8
