"""PERM-BOTH: null distributions, p-values, and what is said of poor input."""

from __future__ import annotations

import math
from itertools import product
from typing import Any, get_args
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks.statistics import perm_both as module
from benchmarks.statistics.perm_both import Statistic, nulls, perm_both
from benchmarks.statistics.permutation import (
    LinearNull,
    PermutationTests,
    Ranks,
    Sample,
    SwapSigns,
    threshold,
)
from tests.benchmarks.statistics.references import (
    COEFFICIENTS,
    mean_difference,
    table,
)

STATISTICS = get_args(Statistic)
LAYOUTS = "flat", "clusters", "groups", "groups in clusters", "groups across clusters", "no tables"
FIRST, SECOND = np.array([0, 0, 1]), np.array([1, 2, 2])
every_statistic = pytest.mark.parametrize("statistic", STATISTICS)
with_and_without_ties = pytest.mark.parametrize("ties", [False, True])


def same(a: PermutationTests, b: PermutationTests) -> None:
    np.testing.assert_allclose(a.differences, b.differences, atol=1e-12)
    np.testing.assert_array_equal(a.p_values, b.p_values)


# Null distributions, against hybrids that are built and correlated one by one
def drawn(layout: str, levels: int, seed: int, n: int = 24) -> Sample:
    """A sample of three metrics; `levels` 0: without ties."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 4, n).astype(np.float64)
    scores = gold[:, None] + rng.normal(size=(n, 3)) * [0.5, 1.0, 2.0]
    if levels:
        scores = np.round(scores * levels / 4)
        scores[:, 2] += np.arange(n) / 1e3 if seed % 2 else 0.0  # a tied one against another
    groups = np.minimum(rng.integers(0, 6, n), 3) if "groups" in layout else None
    clusters = rng.integers(0, 5, n) if "clusters" in layout else np.arange(n)
    if layout == "groups in clusters" and groups is not None:
        clusters = groups // 2
    n_clusters = int(clusters.max()) + 1
    return Sample.of(scores, gold, groups, clusters, n_clusters)


@pytest.mark.first_quick
@pytest.mark.parametrize("layout", LAYOUTS)
@every_statistic
@settings(max_examples=5, deadline=None)
@given(levels=st.sampled_from([0, 1, 3, 9]), seed=st.integers(0, 10**6))
def test_swaps_are_those_of_hybrids(
    statistic: Statistic, layout: str, levels: int, seed: int
) -> None:
    sample = drawn("groups" if layout == "no tables" else layout, levels, seed)
    signs = np.random.default_rng(seed + 1).choice([-1, 1], (sample.n_clusters, 3)).astype(np.int8)
    signs[:, 0] = 1
    cells = 0 if layout == "no tables" else module.CELLS_PER_ITEM
    with patch.object(module, "CELLS_PER_ITEM", cells):
        found = list(nulls(sample, statistic, FIRST, SECOND))
    assert sorted(np.concatenate([rows for rows, _ in found])) == [0, 1, 2]
    for rows, null in found:
        deltas = null.deltas(signs)
        np.testing.assert_allclose(null.observed, deltas[:, 0], atol=1e-12)
        for row, of_pair in zip(rows, deltas, strict=True):
            a, b = sample.scores[:, FIRST[row]], sample.scores[:, SECOND[row]]
            stays = signs[sample.clusters].T > 0
            expected = [mean_difference(statistic, a, b, stay, sample) for stay in stays]
            np.testing.assert_allclose(of_pair, expected, rtol=0, atol=1e-9)


def test_tau_of_a_group_where_a_swap_leaves_one_value_is_zero() -> None:
    """Two items of ranks (1, 2) and (2, 1): when only the first is swapped, both have rank 2."""
    scores, gold = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0.0, 1.0])
    sample = Sample.of(scores, gold, None, np.arange(2), 2)
    ranks = [Ranks.of(column, sample) for column in scores.T]
    by_draw = module.TiedKendallByDraw(sample, ranks, [(0, 1)])
    assert by_draw.deltas(np.array([[1, -1], [1, 1]], np.int8)).tolist() == [[2.0, 0.0]]


@pytest.mark.parametrize("scale", [1.0, 1e-3])
@pytest.mark.parametrize("lattice", [False, True])
def test_counts_in_single_precision_are_those_in_double(lattice: bool, scale: float) -> None:
    rng = np.random.default_rng(0)
    whole = rng.integers(-1, 2, (40, 300)).astype(np.float64)
    rows = whole if lattice else rng.normal(size=(40, 300))
    rows[3] = 0.0
    rows[4, 1:] = 0.0  # every difference is as extreme as the observed one
    rows *= scale
    null = LinearNull([(k, k) for k in range(40)], lambda k, _: rows[k])
    for signs in SwapSigns(300, 200, 1).blocks():
        extreme = np.abs(rows @ signs.astype(float)) >= threshold(rows.sum(axis=1))[:, None]
        np.testing.assert_array_equal(null.hits(signs), extreme.sum(axis=1))


def test_signs_are_balanced_and_the_same_again_and_few_are_enumerated_without_opposites() -> None:
    signs = SwapSigns(200, 150, 5)
    first, again = (np.concatenate(list(signs.blocks()), axis=1) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert first.shape == (200, 150)
    assert set(np.unique(first)) == {-1, 1} and abs(first.mean()) < 0.03
    half = np.concatenate(list(SwapSigns(8, 5, 0).blocks()), axis=1)
    assert half.shape == (8, 128)
    assert len(np.unique(np.concatenate([half, -half], axis=1), axis=1).T) == 256


# PERM-BOTH
@pytest.mark.first_quick
@with_and_without_ties
@every_statistic
def test_few_clusters_are_enumerated_in_full(statistic: Statistic, *, ties: bool) -> None:
    scores, gold = table(18, 2, ties=ties)
    clusters = np.arange(18) % 7
    found = perm_both(scores, gold, statistic, clusters=clusters, seed=1)
    sample = Sample.of(scores, gold, None, clusters, 7)
    deltas = [
        mean_difference(statistic, scores[:, 0], scores[:, 1], np.array(stay)[clusters], sample)
        for stay in product([True, False], repeat=7)
    ]
    assert (found.exact, found.n_draws) == (True, 64)
    assert found.differences[0, 1] == pytest.approx(deltas[0], abs=1e-12)
    share = np.mean(np.abs(deltas) >= abs(deltas[0]) - 1e-10)
    assert found.p_values[0, 1] == pytest.approx(share, abs=1e-12)


@every_statistic
def test_drawn_p_values_count_the_sample_and_are_near_exact_ones(statistic: Statistic) -> None:
    scores, gold = table()
    scores[:, 0] = gold + 1e-6 * scores[:, 0]
    scores[:, 1] *= -1.0
    found = perm_both(scores, gold, statistic, n_draws=199)
    assert (found.p_values[0, 1], found.n_draws, found.exact) == (1 / 200, 199, False)
    scores, gold = table(65)
    few = np.arange(65) % 12
    exact = perm_both(scores, gold, statistic, clusters=few)
    # An item in a cluster of its own makes one too many to enumerate, and hardly any difference.
    many = np.where(np.arange(65) == 64, 12, few)
    drawn = perm_both(scores, gold, statistic, clusters=many, n_draws=3000)
    assert (exact.exact, drawn.exact) == (True, False)
    np.testing.assert_allclose(drawn.p_values, exact.p_values, atol=0.06)


@pytest.mark.parametrize(("n_groups", "ties"), [(1, False), (1, True), (9, False), (4, True)])
@every_statistic
def test_differences_are_of_plain_values(
    statistic: Statistic, n_groups: int, *, ties: bool
) -> None:
    scores, gold = table(ties=ties)
    groups = np.arange(60) % n_groups
    plain = COEFFICIENTS[statistic][0]
    values = [
        np.mean([plain(x[groups == g], gold[groups == g]) for g in range(n_groups)])
        for x in scores.T
    ]
    grouped = groups if n_groups > 1 else None
    found = perm_both(scores, gold, statistic, groups=grouped, n_draws=10)
    np.testing.assert_allclose(found.differences, np.subtract.outer(values, values), atol=1e-12)


@with_and_without_ties
@every_statistic
def test_neither_others_nor_order_names_units_matter(statistic: Statistic, *, ties: bool) -> None:
    scores, gold = table(ties=ties)
    rng = np.random.default_rng(0)
    whole = perm_both(scores, gold, statistic, seed=3)
    for a, b in ((0, 1), (1, 3)):
        alone = perm_both(scores[:, [a, b]], gold, statistic, seed=3)
        assert alone.differences[0, 1] == pytest.approx(whole.differences[a, b], abs=1e-14)
        assert alone.p_values[0, 1] == whole.p_values[a, b]
    turned = perm_both(scores[:, ::-1], gold, statistic, seed=3)
    np.testing.assert_array_equal(turned.p_values[::-1, ::-1], whole.p_values)
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
    scores[:, 0] = 1000.0 * scores[:, 0] - 3e4
    scores[:, 1] = np.exp(scores[:, 1]) if statistic != "pearson" else scores[:, 1]
    again = perm_both(scores, 2.0 * gold + 1.0, statistic, clusters=few)
    np.testing.assert_allclose(again.differences, found.differences, atol=1e-10)
    np.testing.assert_array_equal(again.p_values, found.p_values)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statistic", "layout", "ties"),
    [
        ("pearson", "clusters", False), ("spearman", "clusters", False),
        ("kendall", "clusters", True), ("spearman", "items", True), ("kendall", "groups", True),
    ],
)  # fmt: skip
def test_a_true_null_is_rejected_so_often(statistic: Statistic, layout: str, *, ties: bool) -> None:
    rng = np.random.default_rng(7)
    n_tests, clusters = 300, np.repeat(np.arange(16), 4)
    rejected = 0
    for seed in range(n_tests // 2):
        gold = rng.integers(0, 4, clusters.size).astype(float)
        # Metrics share the quality of an item and have offsets by cluster: exchangeable there.
        shared = gold + rng.normal(size=gold.size)
        offset = rng.normal(size=(16, 4))[clusters] if layout != "items" else 0.0
        scores = shared[:, None] + offset + rng.normal(size=(gold.size, 4))
        found = perm_both(
            np.round(scores / 2.0) if ties else scores,
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


@every_statistic
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


@every_statistic
def test_what_is_constant_lonely_or_equal_has_no_test_or_p_1(statistic: Statistic) -> None:
    scores, gold = table(ties=True)
    for options, why in (
        ({"gold": np.ones_like(gold)}, "gold"),
        ({"clusters": np.zeros(60)}, "clusters"),
        ({"groups": np.arange(60)}, "gold"),
        ({"scores": scores[:0], "gold": gold[:0], "groups": np.empty(0, np.intp)}, "gold"),
    ):
        given: dict[str, Any] = {"scores": scores, "gold": gold, **options}
        none = perm_both(statistic=statistic, **given)
        assert np.isnan(none.p_values).all() and why in none.reasons[0, 1]
    scores[:, 1], scores[:, 2] = scores[:, 0], 0.1
    found = perm_both(scores, gold, statistic)
    assert np.isnan(found.differences[2]).all() and np.isnan(found.p_values[:, 2]).all()
    assert np.isfinite(np.delete(np.delete(found.p_values, 2, 0), 2, 1)).all()
    assert set(found.reasons) == {(0, 2), (1, 2), (2, 2), (2, 3)}
    assert "constant" in found.reasons[0, 2]
    for equal in (found, perm_both(scores[:9], gold[:9], statistic)):
        assert (equal.differences[0, 1], equal.p_values[0, 1]) == (0.0, 1.0)


def test_one_metric_or_none_has_no_pairs() -> None:
    scores, gold = table(30, 1)
    found = perm_both(scores, gold, "kendall")
    assert (found.differences.tolist(), found.p_values.tolist()) == ([[0.0]], [[1.0]])
    assert not found.reasons
    assert perm_both(scores[:, :0], gold, "kendall").p_values.shape == (0, 0)
    assert math.isnan(perm_both(scores[:0], gold[:0], "kendall").p_values[0, 0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": [[1.0], [np.inf]]}, "infinite"), ({"gold": [1.0, np.nan]}, "finite"),
        ({"gold": [1.0]}, "are not"), ({"statistic": "tau"}, "none of"),
        ({"clusters": [1]}, "each"), ({"groups": [1]}, "each"), ({"n_draws": 0}, "at least 1"),
    ],
)  # fmt: skip
def test_unusable_arguments_are_named(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"scores": [[1.0], [2.0]], "gold": [1.0, 2.0]}
    with pytest.raises(ValueError, match=message):
        perm_both(**{"statistic": "pearson", **arguments, **change})
