"""Do models keep their order over seeds: ranks, swaps, tau and Kendall's W."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from benchmarks.published import published
from benchmarks.statistics.seeds import (
    competition_ranks,
    order_signs,
    resampled_stability,
    seed_stability,
)

MODELS = ("SD3", "SD-XL", "PixArt-Sigma", "SD-1.5")
SEEDS = ("seed 42", "seed 3407", "seed 5096")


def printed(metric: str) -> np.ndarray:
    """Shape (seeds, models), the scores of Re-Thinking's Table 1."""
    cells = {
        (cell.facet, cell.model): cell.value
        for cell in published()
        if (cell.paper, cell.table) == ("rethinking", "Table 1")
        and (cell.metric, cell.measure) == (metric, "model_score")
    }
    return np.array([[cells[seed, model] for model in MODELS] for seed in SEEDS])


@pytest.mark.parametrize(
    ("metric", "stable", "swapped"),
    [("vqascore", True, 0), ("clipscore", False, 1), ("dsgscore", False, 1)],
)
def test_of_table_1_only_vqascore_is_stable(metric: str, stable: bool, swapped: int) -> None:
    found = seed_stability(printed(metric))
    assert (found.stable, found.swapped, found.n_model_pairs) == (stable, swapped, 6)
    assert (found.concordance.w == 1.0) is stable


def test_table_1_by_hand() -> None:
    """DSGScore, ranks 1 3 2 4, 1 3 2 4, 1 2 3 4: sums 3, 8, 7, 12; S = 41; W = 12 S / 540."""
    found = seed_stability(printed("dsgscore"))
    pairs = [(p.first, p.second, p.swapped, p.tau) for p in found.pairs]
    third = pytest.approx(2 / 3)
    assert pairs == [(0, 1, 0, 1.0), (0, 2, 1, third), (1, 2, 1, third)]
    assert (found.identical_share, found.tau_mean) == pytest.approx((1 / 3, 7 / 9))
    assert (found.tau_min, found.concordance.w) == pytest.approx((2 / 3, 12 * 41 / 540), abs=1e-15)
    assert found.concordance.exact


def test_equal_scores_share_the_better_rank_and_a_tie_is_no_swap() -> None:
    assert competition_ranks([3.0, 5.0, 5.0, 1.0]).tolist() == [3, 1, 1, 4]
    found = seed_stability([[2.0, 1.0], [1.0, 1.0]])
    assert (found.stable, found.swapped) == (False, 0)
    assert math.isnan(found.pairs[0].tau)  # one seed ties all models
    assert seed_stability([[2.0, 1.0, 1.0], [5.0, 3.0, 3.0]]).stable is True


def test_swapped_pairs_are_named_with_the_seeds_on_either_side() -> None:
    found = seed_stability([[3.0, 2.0, 1.0], [3.0, 1.0, 2.0], [3.0, 2.0, 2.0], [1.0, 2.0, 0.0]])
    swaps = [(s.first, s.second, s.first_higher, s.second_higher, s.tied) for s in found.swaps]
    assert swaps == [(0, 1, 3, 1, 0), (1, 2, 2, 1, 1)]
    assert found.swapped == 2


@pytest.mark.parametrize("scores", [[[1.0, 2.0]], [[1.0], [2.0]], np.empty((2, 0))])
def test_one_seed_or_one_model_leaves_nothing_to_compare(scores: object) -> None:
    found = seed_stability(np.asarray(scores))
    assert found.stable is None
    assert math.isnan(found.concordance.w)


@pytest.mark.parametrize("scores", [[1.0, 2.0], [[1.0, math.nan]], [[math.inf, 1.0]]])
def test_anything_but_a_table_of_finite_scores_is_refused(scores: object) -> None:
    with pytest.raises(ValueError, match="finite scores"):
        seed_stability(np.asarray(scores))


sizes = st.tuples(st.integers(1, 4), st.integers(1, 5))


@given(arrays(np.float64, sizes, elements=st.integers(0, 4).map(float)))
def test_ranks_stability_and_swaps_are_what_one_counts_by_hand(table: np.ndarray) -> None:
    ranks = [[1 + int((row > value).sum()) for value in row] for row in table]
    assert [competition_ranks(row).tolist() for row in table] == ranks
    found = seed_stability(table)
    assert found.stable in (None, all(row == ranks[0] for row in ranks))
    swapped = 0
    for i, j in itertools.combinations(range(table.shape[1]), 2):
        swapped += {1.0, -1.0} <= {np.sign(row[i] - row[j]) for row in table}
    assert found.swapped == swapped
    assert order_signs(table).shape == (table.shape[0], found.n_model_pairs)


@pytest.mark.slow
@given(arrays(np.float64, (4, 3, 4), elements=st.integers(0, 3).map(float)))
@settings(deadline=None)
def test_every_resample_is_the_comparison_of_its_scores(scores: np.ndarray) -> None:
    found = resampled_stability(scores)
    for b, table in enumerate(scores):
        one = seed_stability(table)
        assert (found.stable[b], found.swapped[b]) == (one.stable, one.swapped)
        shares = (found.identical_share[b], found.tau_mean[b], found.kendall_w[b])
        expected = (one.identical_share, one.tau_mean, one.concordance.w)
        assert shares == pytest.approx(expected, nan_ok=True)


def test_a_resample_without_a_score_of_some_model_is_undefined() -> None:
    scores = np.ones((2, 2, 3)) * [1.0, 2.0, 3.0]
    scores[1, 0, 2] = math.nan
    found = resampled_stability(scores)
    values = (found.stable, found.identical_share, found.tau_mean, found.swapped, found.kendall_w)
    assert [np.isfinite(value).tolist() for value in values] == [[True, False]] * 5
    assert found.kendall_w[0] == 1.0
