"""Pair swaps of pairwise accuracy: verdicts, sign test, weighted signs, whole groups."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from benchmarks.statistics import pair_permutation
from benchmarks.statistics.pair_permutation import ItemPairs, pair_swaps
from benchmarks.statistics.pairwise_accuracy import pairwise_accuracy, tie_calibrated

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def table(sizes: list[int], n_metrics: int = 3) -> tuple[FloatArray, FloatArray, IntArray]:
    rng = np.random.default_rng(sum(sizes))
    groups = np.repeat(np.arange(len(sizes)), sizes)
    gold = rng.integers(0, 4, groups.size).astype(float)
    noise = rng.normal(size=(groups.size, n_metrics)) * np.linspace(0.5, 2, n_metrics)
    return np.round(gold[:, None] + noise, 1), gold, groups


def plain_calibration(
    scores: FloatArray, gold: FloatArray, groups: IntArray
) -> tuple[float, float]:
    """The best mean accuracy over the groups and its smallest threshold, by trying each one."""
    rows = [np.flatnonzero(groups == g) for g in np.unique(groups) if (groups == g).sum() > 1]
    tried = {0.0} | {abs(float(scores[j] - scores[i])) for r in rows for i, j in combinations(r, 2)}
    found = [
        (round(float(np.mean([pairwise_accuracy(scores[r], gold[r], e) for r in rows])), 12), -e)
        for e in tried
    ]
    best = max(found)
    return best[0], -best[1]


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(sizes=st.lists(st.integers(2, 5), min_size=1, max_size=6), equal=st.booleans())
def test_thresholds_are_the_best_ones_tried(sizes: list[int], equal: bool) -> None:
    scores, gold, groups = table([sizes[0]] * len(sizes) if equal else sizes)
    pairs = ItemPairs(gold, np.append(0, np.cumsum(np.unique(groups, return_counts=True)[1])))
    for column in scores.T:
        accuracy, expected = plain_calibration(column, gold, groups)
        found = pairs.threshold(column)
        assert found == pytest.approx(expected, abs=1e-12)
        assert pairs.accuracies(column, found).mean() == pytest.approx(accuracy, abs=1e-10)


def test_blocks_hold_every_pair_once(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = np.array([0, 2, 7, 10])
    expected = [
        (i, j) for a, b in ((0, 2), (2, 7), (7, 10)) for i, j in combinations(range(a, b), 2)
    ]
    gold = np.array([3.0, 1.0, 2.0, 2.0, 5.0, 1.0, 2.0, 4.0, 4.0, 1.0])
    for size in (1, 4, 1000):
        monkeypatch.setattr(pair_permutation, "_BLOCK", size)
        found = []
        for block in ItemPairs(gold, bounds).blocks:
            order = gold[block.high] - gold[block.low]
            assert (order[: block.n_tied] == 0).all()
            assert (order[block.n_tied :] > 0).all()
            found += np.sort(np.stack([block.low, block.high], axis=1), axis=1).tolist()
        assert sorted(map(tuple, found)) == expected


@pytest.mark.slow
def test_groups_of_one_size_take_the_sign_test() -> None:
    scores, gold, groups = table([5] * 8)
    found = pair_swaps(scores, gold, groups=groups)
    limits = [plain_calibration(x, gold, groups)[1] for x in scores.T]
    order = [(i, j) for i, j in combinations(range(40), 2) if groups[i] == groups[j]]

    def right(metric: int, i: int, j: int) -> bool:
        pair = [i, j]
        return pairwise_accuracy(scores[pair, metric], gold[pair], limits[metric]) == 1.0

    for a, b in combinations(range(3), 2):
        verdicts = [(right(a, i, j), right(b, i, j)) for i, j in order]
        won, lost = verdicts.count((True, False)), verdicts.count((False, True))
        assert found.differences[a, b] == pytest.approx((won - lost) / len(order), abs=1e-12)
        expected = stats.binomtest(won, won + lost).pvalue
        assert found.p_values[a, b] == pytest.approx(expected, rel=1e-9)
    assert (found.n_draws, found.exact) == (0, True)


def test_one_group_of_all_items_has_the_flat_accuracy() -> None:
    scores, gold, _ = table([40])
    found = pair_swaps(scores, gold)
    values = [tie_calibrated(x, gold).accuracy for x in scores.T]
    np.testing.assert_allclose(found.differences, np.subtract.outer(values, values), atol=1e-12)


def test_groups_of_several_sizes_weigh_their_signs() -> None:
    scores, gold, groups = table([2, 3, 3, 2, 4])
    found = pair_swaps(scores, gold, groups=groups, n_draws=20_000)
    limits = [plain_calibration(x, gold, groups)[1] for x in scores.T]
    differences = []
    for i, j in combinations(range(groups.size), 2):
        if groups[i] == groups[j]:
            size = int((groups == groups[i]).sum())
            one, other = (
                pairwise_accuracy(scores[[i, j], m], gold[[i, j]], limits[m]) for m in (0, 2)
            )
            differences.append((one - other) / (size * (size - 1) / 2) / 5)
    unequal = np.array([d for d in differences if d])
    signs = 1 - 2 * (np.arange(1 << unequal.size)[:, None] >> np.arange(unequal.size) & 1)
    share = (np.abs(signs @ unequal) >= abs(unequal.sum()) - 1e-12).mean()
    assert found.differences[0, 2] == pytest.approx(unequal.sum(), abs=1e-12)
    assert found.p_values[0, 2] == pytest.approx(share, abs=0.02)
    assert (found.n_draws, found.exact) == (20_000, False)


def test_clusters_swap_whole_groups() -> None:
    scores, gold, groups = table([4, 5, 3, 4, 4, 5])
    clusters = groups // 2
    found = pair_swaps(scores, gold, groups=groups, clusters=clusters)
    values = []
    for column in scores.T:
        limit = plain_calibration(column, gold, groups)[1]
        parts = [groups == g for g in range(6)]
        by_group = [pairwise_accuracy(column[r], gold[r], limit) for r in parts]
        values.append(np.array(by_group).reshape(3, 2).sum(axis=1) / 6)
    d = values[0] - values[1]
    deltas = [abs(d @ s) for s in ([1, 1, 1], [1, 1, -1], [1, -1, 1], [-1, 1, 1])]
    assert found.differences[0, 1] == pytest.approx(d.sum(), abs=1e-12)
    assert found.p_values[0, 1] == np.mean(np.array(deltas) >= deltas[0] - 1e-12)
    assert (found.n_draws, found.exact) == (4, True)


@pytest.mark.parametrize("clustered", [False, True])
def test_a_pair_depends_on_neither_other_metrics_nor_the_order_of_rows(*, clustered: bool) -> None:
    scores, gold, groups = table([2, 3, 4] * 6)
    clusters = groups if clustered else None
    found = pair_swaps(scores, gold, groups=groups, clusters=clusters)
    alone = pair_swaps(scores[:, [0, 2]], gold, groups=groups, clusters=clusters)
    assert alone.p_values[0, 1] == found.p_values[0, 2]
    order = np.random.default_rng(0).permutation(gold.size)
    moved = pair_swaps(
        scores[order],
        gold[order],
        groups=groups[order],
        clusters=groups[order] if clustered else None,
    )
    np.testing.assert_array_equal(moved.p_values, found.p_values)
    np.testing.assert_allclose(moved.differences, found.differences, atol=1e-12)


def test_missing_scores_leave_items_out_for_their_pairs_only() -> None:
    scores, gold, groups = table([5] * 6)
    whole = pair_swaps(scores, gold, groups=groups)
    scores[3, 1] = np.nan
    found = pair_swaps(scores, gold, groups=groups)
    assert found.p_values[0, 2] == whole.p_values[0, 2]
    rest = np.delete(np.arange(30), 3)
    alone = pair_swaps(scores[rest][:, :2], gold[rest], groups=groups[rest])
    assert found.p_values[0, 1] == alone.p_values[0, 1]


def test_poor_input_has_reasons_or_errors() -> None:
    scores, gold, groups = table([4] * 5)
    lonely = pair_swaps(scores, gold, groups=np.arange(20))
    assert np.isnan(lonely.p_values).all()
    assert "no two items" in lonely.reasons[0, 1]
    single = pair_swaps(scores, gold, groups=groups, clusters=np.zeros(20))
    assert "fewer than two clusters" in single.reasons[0, 1]
    with pytest.raises(ValueError, match="more than one cluster"):
        pair_swaps(scores, gold, groups=groups, clusters=np.arange(20))
    scores[:, 0] = 1.0
    assert np.isfinite(pair_swaps(scores, gold, groups=groups).p_values).all()
    assert pair_swaps(scores[:, :1], gold, groups=groups).p_values.tolist() == [[1.0]]
