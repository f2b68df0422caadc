"""Do models keep their order over seeds: ranks, swaps, tau and Kendall's W."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from benchmarks.published import published
from benchmarks.statistics.concordance import kendall_w
from benchmarks.statistics.seeds import (
    competition_ranks,
    order_signs,
    resampled_stability,
    seed_stability,
)

MODELS = ("SD3", "SD-XL", "PixArt-Sigma", "SD-1.5")
SEEDS = ("seed 42", "seed 3407", "seed 5096")

tied_scores = arrays(
    np.float64,
    st.tuples(st.integers(1, 4), st.integers(1, 5)),
    elements=st.integers(0, 4).map(float),
)


def printed(metric: str, measure: str) -> np.ndarray:
    """Shape (seeds, models), a part of Re-Thinking's Table 1."""
    cells = {
        (cell.facet, cell.model): cell.value
        for cell in published()
        if (cell.paper, cell.table) == ("rethinking", "Table 1")
        and (cell.metric, cell.measure) == (metric, measure)
    }
    return np.array([[cells[seed, model] for model in MODELS] for seed in SEEDS])


@pytest.mark.parametrize(
    ("metric", "stable", "swapped"),
    [("vqascore", True, 0), ("clipscore", False, 1), ("dsgscore", False, 1)],
)
def test_of_table_1_only_vqascore_is_stable(metric: str, stable: bool, swapped: int) -> None:
    found = seed_stability(printed(metric, "model_score"))
    assert (found.stable, found.swapped, found.n_model_pairs) == (stable, swapped, 6)
    assert (found.concordance.w == 1.0) is stable


def test_one_swap_of_four_models_leaves_a_tau_of_two_thirds() -> None:
    found = seed_stability(printed("dsgscore", "model_score"))
    assert [(p.first, p.second, p.swapped) for p in found.pairs] == [
        (0, 1, 0),
        (0, 2, 1),
        (1, 2, 1),
    ]
    assert [p.tau for p in found.pairs] == pytest.approx([1.0, 2 / 3, 2 / 3])


def test_equal_scores_share_the_better_rank_and_the_next_is_skipped() -> None:
    assert competition_ranks([3.0, 5.0, 5.0, 1.0]).tolist() == [3, 1, 1, 4]


def test_a_tie_with_one_seed_only_is_another_ranking_but_no_swap() -> None:
    found = seed_stability([[2.0, 1.0], [1.0, 1.0]])
    assert (found.stable, found.swapped) == (False, 0)
    assert math.isnan(found.pairs[0].tau)  # one seed ties all models


def test_a_tie_with_every_seed_is_the_same_ranking() -> None:
    assert seed_stability([[2.0, 1.0, 1.0], [5.0, 3.0, 3.0]]).stable is True


@pytest.mark.parametrize("scores", [[[1.0, 2.0]], [[1.0], [2.0]], np.empty((2, 0))])
def test_one_seed_or_one_model_leaves_nothing_to_compare(scores: object) -> None:
    found = seed_stability(np.asarray(scores))
    assert found.stable is None
    assert math.isnan(found.concordance.w)


@pytest.mark.parametrize("scores", [[1.0, 2.0], [[1.0, math.nan]], [[math.inf, 1.0]]])
def test_anything_but_a_table_of_finite_scores_is_refused(scores: object) -> None:
    with pytest.raises(ValueError, match="finite scores"):
        seed_stability(np.asarray(scores))


def test_w_is_one_for_agreement_and_zero_for_opposite_orders() -> None:
    assert kendall_w([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]) == 1.0
    assert kendall_w([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]) == 0.0
    assert math.isnan(kendall_w([[1.0, 1.0], [2.0, 2.0]]))


@given(tied_scores)
def test_ranks_are_one_plus_the_number_of_strictly_greater_scores(table: np.ndarray) -> None:
    for row in table:
        assert competition_ranks(row).tolist() == [1 + int((row > value).sum()) for value in row]


@given(tied_scores)
def test_stable_means_the_same_list_of_ranks_with_every_seed(table: np.ndarray) -> None:
    found = seed_stability(table)
    if found.stable is not None:
        ranks = {tuple(competition_ranks(row)) for row in table}
        assert found.stable is (len(ranks) == 1)


@given(tied_scores)
def test_swapped_pairs_are_counted_as_one_would_by_hand(table: np.ndarray) -> None:
    found = seed_stability(table)
    swapped = 0
    for i, j in itertools.combinations(range(table.shape[1]), 2):
        orders = {np.sign(row[i] - row[j]) for row in table}
        swapped += {1.0, -1.0} <= orders
    assert found.swapped == swapped
    assert order_signs(table).shape == (table.shape[0], found.n_model_pairs)


@given(tied_scores)
def test_w_is_a_rescaled_friedman_statistic(table: np.ndarray) -> None:
    m, n = table.shape
    if m < 3 or n < 3 or math.isnan(kendall_w(table)):
        return
    friedman = stats.friedmanchisquare(*table.T).statistic
    assert kendall_w(table) == pytest.approx(friedman / (m * (n - 1)), abs=1e-10)


def test_swapped_pairs_are_named_with_the_seeds_on_either_side() -> None:
    found = seed_stability([[3.0, 2.0, 1.0], [3.0, 1.0, 2.0], [3.0, 2.0, 2.0], [1.0, 2.0, 0.0]])
    assert [(s.first, s.second, s.first_higher, s.second_higher, s.tied) for s in found.swaps] == [
        (0, 1, 3, 1, 0),
        (1, 2, 2, 1, 1),
    ]
    assert found.swapped == 2


def test_like_rankings_are_counted_by_pairs_of_seeds_and_tau_has_a_mean_and_a_least() -> None:
    found = seed_stability(printed("dsgscore", "model_score"))
    assert found.identical_share == pytest.approx(1 / 3)
    assert found.tau_mean == pytest.approx((1 + 2 / 3 + 2 / 3) / 3)
    assert found.tau_min == pytest.approx(2 / 3)


def test_w_of_table_1_by_hand() -> None:
    """DSGScore, ranks 1 3 2 4, 1 3 2 4, 1 2 3 4: sums 3, 8, 7, 12; S = 41; W = 12 S / 540."""
    found = seed_stability(printed("dsgscore", "model_score")).concordance
    assert found.w == pytest.approx(12 * 41 / 540, abs=1e-15)
    assert found.exact


@pytest.mark.slow
@given(arrays(np.float64, (4, 3, 4), elements=st.integers(0, 3).map(float)))
@settings(deadline=None)
def test_every_resample_is_the_comparison_of_its_scores(scores: np.ndarray) -> None:
    found = resampled_stability(scores)
    for b, table in enumerate(scores):
        one = seed_stability(table)
        assert found.stable[b] == one.stable
        assert found.identical_share[b] == pytest.approx(one.identical_share)
        assert found.tau_mean[b] == pytest.approx(one.tau_mean, nan_ok=True)
        assert found.kendall_w[b] == pytest.approx(one.concordance.w, nan_ok=True)
        assert found.swapped[b] == one.swapped


def test_a_resample_without_a_score_of_some_model_is_undefined() -> None:
    scores = np.ones((2, 2, 3)) * [1.0, 2.0, 3.0]
    scores[1, 0, 2] = math.nan
    found = resampled_stability(scores)
    for values in (found.stable, found.identical_share, found.tau_mean, found.swapped):
        assert math.isfinite(values[0])
        assert math.isnan(values[1])
    assert found.kendall_w[0] == 1.0
    assert math.isnan(found.kendall_w[1])
