"""Joint tests of a board: step-down maxima under flipped signs, and who may be best."""

from __future__ import annotations

import math
from dataclasses import fields
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from benchmarks.arrays import FloatArray
from benchmarks.statistics import joint_tests as module
from benchmarks.statistics.joint_tests import (
    CAUTION,
    ENUMERATED,
    LEVEL,
    PATTERNS,
    JointTests,
    cautious,
)

BOARD = np.random.default_rng(11).normal(size=(6, 40)) / 40 + np.arange(6)[:, None] * 0.6 / 40
FEW = np.random.default_rng(3).normal(size=(5, 9)).round(1) + np.array([[0], [0], [2], [2], [5]])


def statistic(d: FloatArray) -> float:
    """|Σ d| / (Σ d²)^½; 0 where nothing differs."""
    return float(abs(d.sum()) / math.sqrt((d * d).sum())) if d.any() else 0.0


def as_tested(d: FloatArray) -> float:
    """The same, by Student's t and back."""
    n = int(np.count_nonzero(d))
    found = statistic(d)
    if n < 2 or found >= math.sqrt(n) * (1 - 1e-9):
        return found
    t = found * math.sqrt((n - 1) / (n - found**2)) / (1 + CAUTION / n)
    return t * math.sqrt(n / (n - 1 + t * t))


def by_counting(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """P-values of all pairs and of being the best, over all patterns, one after the other."""
    n, patterns = len(rows), list(product((1.0, -1.0), repeat=rows.shape[1]))
    pairs = sorted(
        combinations(range(n), 2), key=lambda pair: -as_tested(np.subtract(*rows[[*pair]]))
    )
    p_value, last = np.full((n, n), np.nan), 0.0
    for place, (a, b) in enumerate(pairs):
        left = [rows[i] - rows[j] for i, j in pairs[place:]]
        least = as_tested(rows[a] - rows[b]) * (1 - 1e-9)
        hits = [max(statistic(np.array(s) * d) for d in left) >= least for s in patterns]
        last = max(last, float(np.mean(hits))) if least > 0 else 1.0
        p_value[a, b] = p_value[b, a] = last
    worse = np.array([[as_tested(b - a) if b.sum() > a.sum() else 0.0 for b in rows] for a in rows])
    p_best = np.where(worse > 0, p_value, 1.0).min(axis=1)
    last = 0.0
    left = [i for i in np.argsort(-worse.max(axis=1), kind="stable") if p_best[i] >= LEVEL]
    if len(left) in (1, n):
        return p_value, p_best
    for place, i in enumerate(left):
        hits = []
        for signs in patterns:
            s = np.array(signs)
            reached = max(
                (s * (rows[k] - other)).sum() / math.sqrt(((rows[k] - other) ** 2).sum())
                if (rows[k] != other).any()
                else 0.0
                for k in left[place:]
                for other in rows
            )
            hits.append(reached >= worse[i].max() * (1 - 1e-9))
        last = max(last, float(np.mean(hits)))
        p_best[i] = min(p_best[i], last)
    return p_value, p_best


@pytest.mark.first_quick
def test_few_blocks_are_counted_in_all_their_patterns() -> None:
    tied = np.array(
        [[0.0, 1, 2, 0, 1, 3], [0.0, 1, 2, 0, 1, 3], [1.0, 2, 2, 1, 1, 3], [3.0, 3, 4, 3, 4, 6]]
    )
    for rows in (FEW, tied):
        found = JointTests.of(rows, 1)
        p_value, p_best = by_counting(rows)
        np.testing.assert_allclose(found.p_value, p_value, atol=1e-12)
        np.testing.assert_allclose(found.p_best, p_best, atol=1e-12)
        assert found.exact and found.n_patterns == 2 ** rows.shape[1]


def test_drawn_patterns_come_within_monte_carlo_error_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = np.random.default_rng(5).normal(size=(4, ENUMERATED)) + np.array(
        [[0], [0.4], [0.9], [2]]
    )
    exact = JointTests.of(rows, 1)
    monkeypatch.setattr(module, "ENUMERATED", ENUMERATED - 1)
    drawn = JointTests.of(rows, 1)
    assert (drawn.exact, drawn.n_patterns) == (False, PATTERNS)
    off = np.triu_indices(4, 1)
    p = exact.p_value[off]
    error = np.sqrt(p * (1 - p) / PATTERNS)
    assert (np.abs(drawn.p_value[off] - p) <= 4 * error + 1 / PATTERNS).all()
    np.testing.assert_allclose(drawn.p_best, exact.p_best, atol=0.03)


def test_many_pairs_are_tested_with_fewer_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MANY", 14)
    few, many = JointTests.of(BOARD[:5], 1), JointTests.of(BOARD, 1)
    assert (few.n_patterns, many.n_patterns) == (module.PATTERNS, module.PATTERNS_OF_MANY)


@pytest.mark.parametrize("order", [[5, 3, 1, 0, 2, 4], [0, 1, 2, 3, 4, 5]])
def test_the_order_of_the_metrics_and_what_is_better_have_no_say(order: list[int]) -> None:
    places = np.array(order)
    whole = JointTests.of(BOARD, 5)
    moved, falling = (
        JointTests.of(BOARD[places], 5),
        JointTests.of(-BOARD, 5, higher_is_better=False),
    )
    for field in fields(JointTests):
        one = getattr(whole.at(places), field.name)
        np.testing.assert_allclose(getattr(moved, field.name), one, rtol=1e-12, err_msg=field.name)
    for name in ("p_value", "better", "p_best", "n_units"):
        np.testing.assert_array_equal(getattr(falling, name), getattr(whole, name))
    np.testing.assert_allclose(falling.difference, -whole.difference)
    # Three arrays of 8 bytes and one of 1 for each two metrics, 8 bytes for each metric.
    assert whole.nbytes == 36 * (3 * 8 + 1) + 6 * 8


def test_a_metric_without_contributions_is_not_tested() -> None:
    gaps = np.insert(BOARD, 2, np.nan, axis=0)
    gaps[2, 3:] = 0.1
    found, whole = JointTests.of(gaps, 5), JointTests.of(BOARD, 5)
    assert np.isnan(found.p_value[2]).all() and np.isnan(found.p_best[2])
    kept = np.array([0, 1, 3, 4, 5, 6])
    np.testing.assert_array_equal(found.at(kept).p_value, whole.p_value)
    np.testing.assert_array_equal(found.at(kept).p_best, whole.p_best)


def test_too_little_to_flip_shows_nothing() -> None:
    assert JointTests.of(np.empty((0, 4)), 1).p_value.shape == (0, 0)
    assert np.isnan(JointTests.of(np.empty((2, 0)), 1).p_value).all()
    one = JointTests.of(np.ones((1, 4)), 1)
    assert one.p_best.tolist() == [1.0] and np.isnan(one.p_value).all()
    twins = JointTests.of(np.stack([BOARD[0], BOARD[0] * (1 + 1e-13), BOARD[5]]), 1)
    assert (twins.p_value[0, 1], twins.n_units[0, 1]) == (1.0, 0)


@given(arrays(np.float64, (4, 7), elements=st.integers(-3, 3).map(float)))
@settings(deadline=None, max_examples=60)
def test_a_larger_statistic_never_has_a_larger_p_value(rows: FloatArray) -> None:
    found = JointTests.of(rows, 1)
    pairs = list(combinations(range(4), 2))
    sizes = np.array([as_tested(rows[a] - rows[b]) for a, b in pairs])
    p = np.array([found.p_value[a, b] for a, b in pairs])
    order = np.argsort(sizes, kind="stable")
    assert (np.diff(p[order])[np.diff(sizes[order]) > 1e-9] <= 1e-12).all()
    told = found.better
    assert (found.difference[told] > 0).all() and not (told & told.T).any()
    # Whoever is significantly worse than somebody is not the best.
    assert (found.p_best[told.any(axis=0)] < LEVEL).all()


def test_few_blocks_need_a_larger_difference() -> None:
    found = np.array([1.0, 2.0, 3.0])
    for n in (10, 30, 100, 1_000_000):
        tested = cautious(found, np.full(3, n))
        t = found * np.sqrt((n - 1) / (n - found**2)) / (1 + CAUTION / n)
        np.testing.assert_allclose(tested, t * np.sqrt(n / (n - 1 + t * t)), rtol=1e-9)
    assert cautious(np.array([1.0, 3.0]), np.array([1, 9])).tolist() == [1.0, 3.0]  # all one way
    assert cautious(np.zeros(1), np.zeros(1, np.intp)).tolist() == [0.0]


def test_what_metrics_have_in_common_is_not_counted_against_them() -> None:
    """Forty metrics that go together beside one that is worse: Holm divides by 820 pairs."""
    rng = np.random.default_rng(2)
    one, own = rng.normal(size=60), rng.normal(size=60)
    group = one + 1e-6 * np.outer(np.arange(40), own)
    other = one - 0.35 + rng.normal(size=60)
    alone = JointTests.of(np.stack([one, other]), 1).p_value[0, 1]
    among = JointTests.of(np.vstack([group, other]), 1).p_value[0, 40]
    assert 0.001 < alone < 0.02
    assert among < 3 * alone


@pytest.mark.parametrize("n_blocks", [12, 40])
@pytest.mark.parametrize("unlike", [1.0, 4.0])
def test_equal_metrics_are_ordered_on_one_board_in_twenty_at_most(
    n_blocks: int, unlike: float
) -> None:
    """300 boards of eight: 5 % are 15, and 26 come up with a chance of 0.4 %."""
    rng = np.random.default_rng([n_blocks, int(unlike)])
    spread = np.where(np.arange(8) % 2, 1.0, unlike)[:, None]
    told = lost = 0
    for seed in range(300):
        found = JointTests.of(rng.normal(size=(8, n_blocks)) * spread, seed % 5)
        told += bool(found.better.any())
        lost += bool((found.p_best < LEVEL).any())
    assert told <= lost <= 26
