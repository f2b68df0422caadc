"""PERM-BOTH of a table of metrics: exactness, invariances and level."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import get_args

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from benchmarks.statistics.permutation.pair_nulls import Statistic
from benchmarks.statistics.permutation.perm_both import perm_both
from benchmarks.statistics.permutation.result import PermutationTests
from benchmarks.statistics.permutation.sample import Sample
from tests.benchmarks.statistics.permutation.hybrids import mean_difference, table

FloatArray = NDArray[np.float64]
STATISTICS = get_args(Statistic)


def same(a: PermutationTests, b: PermutationTests) -> None:
    np.testing.assert_allclose(a.differences, b.differences, atol=1e-12)
    np.testing.assert_array_equal(a.p_values, b.p_values)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("statistic", STATISTICS)
def test_few_clusters_are_enumerated_in_full(statistic: Statistic, *, ties: bool) -> None:
    scores, gold = table(18, 2, ties=ties)
    clusters = np.arange(18) % 7
    found = perm_both(scores, gold, statistic, clusters=clusters, seed=1)
    sample = Sample.of(scores, gold, None, clusters, 7)
    deltas = [
        mean_difference(statistic, scores[:, 0], scores[:, 1], np.array(stay)[clusters], sample)
        for stay in product([True, False], repeat=7)
    ]
    assert found.exact
    assert found.n_draws == 64
    assert found.differences[0, 1] == pytest.approx(deltas[0], abs=1e-12)
    share = np.mean(np.abs(deltas) >= abs(deltas[0]) - 1e-10)
    assert found.p_values[0, 1] == pytest.approx(share, abs=1e-12)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_drawn_p_value_counts_the_sample_itself(statistic: Statistic) -> None:
    scores, gold = table()
    scores[:, 0] = gold + 1e-6 * scores[:, 0]
    scores[:, 1] *= -1.0
    found = perm_both(scores, gold, statistic, n_draws=199)
    assert found.p_values[0, 1] == 1 / 200
    assert (found.n_draws, found.exact) == (199, False)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_drawn_p_values_are_near_the_enumerated_ones(statistic: Statistic) -> None:
    scores, gold = table(65)
    few, many = np.arange(65) % 12, np.arange(65) % 13
    exact = perm_both(scores, gold, statistic, clusters=few)
    # An item in a cluster of its own makes one too many to enumerate, and hardly any difference.
    many = np.where(np.arange(65) == 64, 12, few)
    drawn = perm_both(scores, gold, statistic, clusters=many, n_draws=3000)
    assert exact.exact
    assert not drawn.exact
    np.testing.assert_allclose(drawn.p_values, exact.p_values, atol=0.06)


@pytest.mark.parametrize("groups", [None, np.arange(60) % 9])
@pytest.mark.parametrize("statistic", STATISTICS)
def test_differences_are_those_of_the_plain_correlations(
    statistic: Statistic, groups: NDArray[np.intp] | None
) -> None:
    scores, gold = table()
    plain: Callable[..., object] = {
        "pearson": stats.pearsonr,
        "spearman": stats.spearmanr,
        "kendall": stats.kendalltau,
    }[statistic]
    within = np.zeros(60, int) if groups is None else groups
    values = [
        np.mean([plain(x[within == g], gold[within == g])[0] for g in np.unique(within)])  # type: ignore[index]
        for x in scores.T
    ]
    found = perm_both(scores, gold, statistic, groups=groups, n_draws=10)
    np.testing.assert_allclose(found.differences, np.subtract.outer(values, values), atol=1e-12)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("statistic", STATISTICS)
def test_a_pair_does_not_depend_on_the_rest_of_the_table(
    statistic: Statistic, *, ties: bool
) -> None:
    scores, gold = table(ties=ties)
    whole = perm_both(scores, gold, statistic, seed=3)
    for a, b in ((0, 1), (1, 3)):
        alone = perm_both(scores[:, [a, b]], gold, statistic, seed=3)
        assert alone.differences[0, 1] == pytest.approx(whole.differences[a, b], abs=1e-14)
        assert alone.p_values[0, 1] == whole.p_values[a, b]
    reversed_ = perm_both(scores[:, ::-1], gold, statistic, seed=3)
    np.testing.assert_array_equal(reversed_.p_values[::-1, ::-1], whole.p_values)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("statistic", STATISTICS)
def test_row_order_and_names_of_clusters_and_groups_do_not_matter(
    statistic: Statistic, *, ties: bool
) -> None:
    scores, gold = table(ties=ties)
    rng = np.random.default_rng(0)
    clusters, groups, order = np.arange(60) % 20, np.arange(60) % 7, rng.permutation(60)
    found = perm_both(scores, gold, statistic, clusters=clusters, groups=groups)
    moved = (scores[order], gold[order], statistic)
    same(found, perm_both(*moved, clusters=clusters[order], groups=groups[order]))
    names = np.array([f"prompt {k:02d}" for k in range(20)])
    same(found, perm_both(scores, gold, statistic, clusters=names[clusters], groups=groups))
    few = np.arange(60) % 10
    renamed = rng.permutation(10)[few]  # enumerated: not even their order matters
    found = perm_both(scores, gold, statistic, clusters=few)
    same(found, perm_both(scores, gold, statistic, clusters=renamed))


@pytest.mark.parametrize("groups", [None, np.arange(60) % 7])
@pytest.mark.parametrize("statistic", STATISTICS)
def test_units_of_the_metrics_do_not_matter(
    statistic: Statistic, groups: NDArray[np.intp] | None
) -> None:
    scores, gold = table()
    moved = scores.copy()
    moved[:, 0] = 1000.0 * scores[:, 0] - 3e4
    if statistic != "pearson":
        moved[:, 1], moved[:, 2] = np.exp(scores[:, 1]), scores[:, 2] ** 3
    found = perm_both(scores, gold, statistic, groups=groups)
    again = perm_both(moved, 2.0 * gold + 1.0, statistic, groups=groups)
    np.testing.assert_allclose(again.differences, found.differences, atol=1e-10)
    np.testing.assert_array_equal(again.p_values, found.p_values)


@pytest.mark.parametrize(
    ("statistic", "layout", "ties"),
    [
        ("pearson", "clusters", False),
        ("spearman", "clusters", False),
        ("kendall", "clusters", True),
        ("spearman", "items", True),
        ("kendall", "groups", True),
    ],
)
def test_a_true_null_is_rejected_at_the_level(
    statistic: Statistic, layout: str, *, ties: bool
) -> None:
    rng = np.random.default_rng(7)
    n_clusters, size, rejected, n_tests = 16, 4, 0, 300
    clusters = np.repeat(np.arange(n_clusters), size)
    for seed in range(n_tests // 2):
        gold = rng.integers(0, 4, clusters.size).astype(float)
        # Metrics share the quality of an item and have offsets by cluster: exchangeable there.
        shared = gold + rng.normal(size=gold.size)
        offset = rng.normal(size=(n_clusters, 4))[clusters] if layout != "items" else 0.0
        scores = shared[:, None] + offset + rng.normal(size=(gold.size, 4))
        if ties:
            scores = np.round(scores / 2.0)
        found = perm_both(
            scores,
            gold,
            statistic,
            clusters=None if layout == "items" else clusters,
            groups=clusters if layout == "groups" else None,
            n_draws=99,
            seed=seed,
        )
        rejected += int(found.p_values[0, 1] <= 0.05) + int(found.p_values[2, 3] <= 0.05)
    low, high = stats.binom.ppf([0.001, 0.999], n_tests, 0.05) / n_tests
    assert low <= rejected / n_tests <= high
