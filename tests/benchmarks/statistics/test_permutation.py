"""Each null distribution against hybrids that are built and correlated one by one."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.statistics import correlation, perm_both
from benchmarks.statistics.perm_both import (
    PrefixOrder,
    Statistic,
    kendall_values,
    nulls,
    pearson_values,
    spearman_values,
)
from benchmarks.statistics.permutation import LinearNull, Ranks, Sample, SwapSigns, threshold
from tests.benchmarks.statistics.references import mean_difference

STATISTICS = get_args(Statistic)
LAYOUTS = ("flat", "clusters", "groups", "groups in clusters", "groups across clusters")
FIRST, SECOND = np.array([0, 0, 1]), np.array([1, 2, 2])


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


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("statistic", STATISTICS)
@settings(max_examples=5, deadline=None)
@given(levels=st.sampled_from([0, 1, 3, 9]), seed=st.integers(0, 10**6))
def test_swapped_differences_are_those_of_hybrids(
    statistic: Statistic, layout: str, levels: int, seed: int
) -> None:
    sample = drawn(layout, levels, seed)
    signs = np.random.default_rng(seed + 1).choice([-1, 1], (sample.n_clusters, 3)).astype(np.int8)
    signs[:, 0] = 1
    seen: list[int] = []
    for rows, null in nulls(sample, statistic, FIRST, SECOND):
        deltas = null.deltas(signs)
        np.testing.assert_allclose(null.observed, deltas[:, 0], atol=1e-12)
        for row, found in zip(rows, deltas, strict=True):
            a, b = sample.scores[:, FIRST[row]], sample.scores[:, SECOND[row]]
            for draw in range(signs.shape[1]):
                stay = signs[sample.clusters, draw] > 0
                expected = mean_difference(statistic, a, b, stay, sample)
                assert found[draw] == pytest.approx(expected, abs=1e-9)
        seen += rows.tolist()
    assert sorted(seen) == [0, 1, 2]


@settings(max_examples=5, deadline=None)
@given(levels=st.sampled_from([1, 3, 9]), seed=st.integers(0, 10**6))
def test_tau_counted_draw_by_draw_is_that_of_the_tables(levels: int, seed: int) -> None:
    sample = drawn("groups", levels, seed)
    signs = next(SwapSigns(sample.n_clusters, 5, seed).blocks())
    by_table = next(nulls(sample, "kendall", FIRST, SECOND))[1]
    ranks = [Ranks.of(column, sample) for column in sample.scores.T]
    by_draw = perm_both.TiedKendallByDraw(sample, ranks, [(0, 1), (0, 2), (1, 2)])
    rows = next(nulls(sample, "kendall", FIRST, SECOND))[0]
    np.testing.assert_allclose(by_draw.deltas(signs)[rows], by_table.deltas(signs), atol=1e-12)


def test_tau_of_a_group_where_a_swap_leaves_one_value_is_zero() -> None:
    """Two items of ranks (1, 2) and (2, 1): when only the first is swapped, both have rank 2."""
    scores, gold = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0.0, 1.0])
    sample = Sample.of(scores, gold, None, np.arange(2), 2)
    ranks = [Ranks.of(column, sample) for column in scores.T]
    by_draw = perm_both.TiedKendallByDraw(sample, ranks, [(0, 1)])
    assert by_draw.deltas(np.array([[1, -1], [1, 1]], np.int8)).tolist() == [[2.0, 0.0]]


def test_tau_of_continuous_gold_with_tied_metrics_needs_no_large_tables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sample = drawn("flat", 3, 2)
    monkeypatch.setattr(perm_both, "CELLS_PER_ITEM", 0)
    found = [null for _, null in nulls(sample, "kendall", FIRST, SECOND)]
    assert isinstance(found[-1], perm_both.TiedKendallByDraw)


@settings(max_examples=8, deadline=None)
@given(levels=st.sampled_from([0, 1, 3, 9]), seed=st.integers(0, 10**6))
def test_group_values_are_the_plain_coefficients(levels: int, seed: int) -> None:
    sample = drawn("groups", levels, seed)
    ranks = [Ranks.of(column, sample) for column in sample.scores.T]
    values = {
        correlation.pearson: pearson_values(sample),
        correlation.spearman: spearman_values(ranks, sample),
        correlation.kendall: kendall_values(ranks, sample),
    }
    for plain, found in values.items():
        for group in range(sample.n_groups):
            rows = sample.group == group
            expected = [plain(column[rows], sample.gold[rows]) for column in sample.scores.T]
            np.testing.assert_allclose(found[:, group], np.nan_to_num(expected), atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=30), st.data())
def test_balance_of_a_stretch_counts_lower_less_higher_classes(
    classes: list[int], data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(classes)))
    end = data.draw(st.integers(start, len(classes)))
    than = data.draw(st.sampled_from(classes))
    stretch = np.array(classes[start:end])
    found = PrefixOrder(np.array(classes)).balance(
        np.array([start]), np.array([end]), np.array([than])
    )
    assert found[0] == (stretch < than).sum() - (stretch > than).sum()


@pytest.mark.parametrize("scale", [1.0, 1e-3])
@pytest.mark.parametrize("lattice", [False, True])
def test_counts_in_single_precision_are_those_in_double(lattice: bool, scale: float) -> None:
    rng = np.random.default_rng(0)
    rows = (
        rng.integers(-1, 2, (40, 300)).astype(np.float64) if lattice else rng.normal(size=(40, 300))
    )
    rows[3] = 0.0
    rows[4, 1:] = 0.0  # every difference is as extreme as the observed one
    rows *= scale
    null = LinearNull([(k, k) for k in range(40)], lambda k, _: rows[k])
    for signs in SwapSigns(300, 200, 1).blocks():
        extreme = np.abs(rows @ signs.astype(float)) >= threshold(rows.sum(axis=1))[:, None]
        np.testing.assert_array_equal(null.hits(signs), extreme.sum(axis=1))


def test_signs_are_the_same_each_time_and_balanced() -> None:
    signs = SwapSigns(200, 150, 5)
    first, again = (np.concatenate(list(signs.blocks()), axis=1) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert first.shape == (200, 150)
    assert set(np.unique(first)) == {-1, 1}
    assert abs(first.mean()) < 0.03


def test_enumeration_holds_one_of_each_two_opposite_patterns() -> None:
    signs = np.concatenate(list(SwapSigns(8, 5, 0).blocks()), axis=1)
    both = {tuple(column) for column in np.concatenate([signs, -signs], axis=1).T.tolist()}
    assert signs.shape == (8, 128)
    assert len(both) == 256
