"""PERM-BOTH: differences, p-values, and documented outcomes of poor input."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import get_args

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from benchmarks.statistics.perm_both import Statistic, perm_both
from benchmarks.statistics.permutation import PermutationTests, Sample
from tests.benchmarks.statistics.references import mean_difference, table

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


@pytest.mark.slow
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


@pytest.mark.parametrize("statistic", STATISTICS)
def test_missing_scores_leave_items_out_for_their_pairs_only(statistic: Statistic) -> None:
    scores, gold = table()
    clusters = np.arange(60) % 20
    whole = perm_both(scores, gold, statistic, clusters=clusters)
    missing = scores.copy()
    missing[[5, 17], 1] = np.nan
    found = perm_both(missing, gold, statistic, clusters=clusters)
    others = np.ix_([0, 2, 3], [0, 2, 3])
    np.testing.assert_array_equal(found.p_values[others], whole.p_values[others])
    kept = np.delete(np.arange(60), [5, 17])
    alone = perm_both(scores[kept][:, :2], gold[kept], statistic, clusters=clusters[kept])
    assert found.differences[0, 1] == pytest.approx(alone.differences[0, 1], abs=1e-12)
    assert found.p_values[0, 1] == alone.p_values[0, 1]


@pytest.mark.parametrize("statistic", STATISTICS)
def test_constant_metrics_have_no_difference_and_a_reason(statistic: Statistic) -> None:
    scores, gold = table()
    scores[:, 2] = 0.1
    found = perm_both(scores, gold, statistic)
    assert np.isnan(found.differences[2]).all()
    assert np.isnan(found.p_values[:, 2]).all()
    assert np.isfinite(np.delete(np.delete(found.p_values, 2, 0), 2, 1)).all()
    assert set(found.reasons) == {(0, 2), (1, 2), (2, 2), (2, 3)}
    assert found.reasons[0, 2] == "a metric has constant scores"


@pytest.mark.parametrize("statistic", STATISTICS)
def test_constant_gold_and_single_clusters_have_reasons(statistic: Statistic) -> None:
    scores, gold = table()
    constant = perm_both(scores, np.ones_like(gold), statistic)
    assert np.isnan(constant.p_values).all()
    assert "gold is constant" in constant.reasons[0, 1]
    single = perm_both(scores, gold, statistic, clusters=np.zeros(60))
    assert np.isnan(single.p_values).all()
    assert "fewer than two clusters" in single.reasons[0, 1]
    lonely = perm_both(scores, gold, statistic, groups=np.arange(60))
    assert "gold is constant" in lonely.reasons[0, 1]


@pytest.mark.parametrize("statistic", STATISTICS)
def test_equal_metrics_never_differ(statistic: Statistic) -> None:
    scores, gold = table(ties=True)
    scores[:, 1] = scores[:, 0]
    for found in (perm_both(scores, gold, statistic), perm_both(scores[:9], gold[:9], statistic)):
        assert found.differences[0, 1] == 0.0
        assert found.p_values[0, 1] == 1.0


@pytest.mark.parametrize("statistic", STATISTICS)
def test_one_metric_or_none_has_no_pairs(statistic: Statistic) -> None:
    scores, gold = table(30, 1)
    found = perm_both(scores, gold, statistic)
    assert (found.differences.tolist(), found.p_values.tolist()) == ([[0.0]], [[1.0]])
    assert not found.reasons
    assert perm_both(scores[:, :0], gold, statistic).p_values.shape == (0, 0)
    assert math.isnan(perm_both(scores[:0], gold[:0], statistic).p_values[0, 0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": [[1.0], [np.inf]]}, "infinite"),
        ({"gold": [1.0, np.nan]}, "not finite"),
        ({"gold": [1.0]}, "are not"),
        ({"statistic": "tau"}, "none of"),
        ({"clusters": [1]}, "one for each"),
        ({"groups": [1]}, "one for each"),
        ({"n_draws": 0}, "at least 1 draw"),
    ],
)
def test_unusable_arguments_are_named(change: dict[str, object], message: str) -> None:
    arguments = {"scores": [[1.0], [2.0]], "gold": [1.0, 2.0], "statistic": "pearson", **change}
    with pytest.raises(ValueError, match=message):
        perm_both(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("statistic", STATISTICS)
def test_no_items_in_no_groups_are_no_test(statistic: Statistic) -> None:
    scores, gold = table()
    found = perm_both(scores[:0], gold[:0], statistic, groups=np.empty(0, np.intp))
    assert np.isnan(found.p_values).all()
    assert "gold is constant" in found.reasons[0, 1]
