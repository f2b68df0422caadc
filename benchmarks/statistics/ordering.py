"""Order of two models: signed-rank tests on the same prompts, and votes over metrics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics.paired import wilcoxon
from benchmarks.statistics.samples import matched

Relation = Literal[-1, 0, 1]
"""-1 for `<`, 0 for `=`, 1 for `>`."""

_ROUNDING = 1e-9
"""Share of the summed differences that rounding may leave where they cancel out."""
_DRAWS_AT_A_TIME = 128
"""Resamples ranked together: their work fits in the cache."""
GECKO_LEVEL = 0.001
"""Gecko calls a difference significant below this p-value."""


def relation(a: ArrayLike, b: ArrayLike, level: float = GECKO_LEVEL) -> Relation:
    """Relation of two models by Wilcoxon's signed-rank test (Gecko, model ordering).

    `a` (n,), one value per prompt; `b` (n,), on the same prompts; a prompt that lacks either value
    (NaN) is left out; `level`: the two-sided p-value must lie below it.
    Returns: The sign of the difference of the means where it is significant, else 0; 0 also where
    all differences are zero (p = 1) and where there are no prompts.
    """
    a, b = _paired(a, b)
    if _hopeless(int((a != b).sum()), level) or not wilcoxon(a, b).significant(level):
        return 0
    return direction(a, b)


def direction(a: ArrayLike, b: ArrayLike) -> Relation:
    """Sign of the difference of the means, arguments as in `relation`; 0 where equal or no prompts."""
    a, b = _paired(a, b)
    total = math.fsum(a - b)
    if abs(total) <= _ROUNDING * math.fsum(np.abs(a - b)):
        return 0
    return 1 if total > 0.0 else -1


def majority_relation(relations: Sequence[int]) -> Relation:
    """The relation that more than half of the voters find; 0 (no difference) without one."""
    found = list(relations)
    if 2 * found.count(1) > len(found):
        return 1
    return -1 if 2 * found.count(-1) > len(found) else 0


def resampled_relations(
    differences: ArrayLike, counts: ArrayLike, level: float = GECKO_LEVEL
) -> NDArray[np.int8]:
    """`relation` in each resample, from one fixed sort, with the normal approximation.

    A difference drawn w times is w tied ranks, so a resample always has ties and the exact
    distribution of the test does not apply to it.

    `differences` (n,), a - b of each prompt; NaN where a value is missing; `counts` (B, n),
    multiplicity of each prompt in each resample; `level`: the two-sided p-value must lie below it.
    Returns: shape (B,), -1, 0 or 1.
    """
    d, w = np.asarray(differences, np.float64), np.asarray(counts, np.float64)
    kept = np.flatnonzero(np.isfinite(d) & (d != 0))
    if kept.size == 0:
        return np.zeros(len(w), np.int8)
    known = np.zeros_like(d)
    known[kept] = d[kept]
    starts, order = _runs(np.abs(d[kept]))
    kept = kept[order]
    z = np.empty(len(w))
    for first in range(0, len(w), _DRAWS_AT_A_TIME):
        part = slice(first, first + _DRAWS_AT_A_TIME)
        # Whole numbers are added up several times as fast as doubles are.
        z[part] = _normal_scores(w[part].astype(np.int32)[:, kept], d[kept] > 0, starts)
    significant = np.abs(z) > scipy.stats.norm.isf(level / 2.0)
    return np.where(significant, _sign_of_sums(w, known), 0).astype(np.int8)


def _normal_scores(drawn: NDArray[np.int32], positive: BoolArray, starts: IntArray) -> FloatArray:
    """The standardised sum of positive ranks in each of b resamples."""
    above = drawn * positive
    if starts.size < drawn.shape[1]:
        drawn, above = (
            np.add.reduceat(part, starts, axis=1, dtype=np.int32) for part in (drawn, above)
        )
    totals = np.cumsum(drawn, axis=1, dtype=np.int32)
    n = totals[:, -1].astype(np.float64)
    doubled_ranks = 2 * totals - drawn + 1
    rank_sums = np.einsum("bi,bi->b", above.astype(np.float64), doubled_ranks) / 2.0
    cubes = np.einsum("bi,bi,bi->b", drawn.astype(np.float64), drawn, drawn)
    variance = n * (n + 1) * (2 * n + 1) / 24.0 - (cubes - n) / 48.0
    with np.errstate(invalid="ignore", divide="ignore"):
        z: FloatArray = (rank_sums - n * (n + 1) / 4.0) / np.sqrt(variance)
    return z


def resampled_directions(differences: ArrayLike, counts: ArrayLike) -> NDArray[np.int8]:
    """`direction` in each resample; arguments and shape as in `resampled_relations`."""
    d, w = np.asarray(differences, np.float64), np.asarray(counts, np.float64)
    return _sign_of_sums(w, np.where(np.isfinite(d), d, 0.0))


def _sign_of_sums(w: FloatArray, d: FloatArray) -> NDArray[np.int8]:
    """Signs of w @ d, 0 where only rounding is left of the sum."""
    sums = w @ d
    return np.where(np.abs(sums) <= _ROUNDING * (w @ np.abs(d)), 0, np.sign(sums)).astype(np.int8)


def resampled_majority(relations: ArrayLike) -> NDArray[np.int8]:
    """`majority_relation` over the first axis of shape (voters, B); shape (B,)."""
    votes = np.asarray(relations, np.int8)
    more = 2 * (votes == 1).sum(axis=0) > len(votes)
    less = 2 * (votes == -1).sum(axis=0) > len(votes)
    majority: NDArray[np.int8] = more.astype(np.int8) - less.astype(np.int8)
    return majority


def _hopeless(n: int, level: float) -> bool:
    """Test for n differences too few for any p below the level: saves the exact one.

    The smallest exact p is 2^(1-n); the normal z is at most sqrt(n), where all are tied.
    """
    return min(2.0 ** (1 - n), 2.0 * float(scipy.stats.norm.sf(math.sqrt(n)))) >= level


def _paired(a: ArrayLike, b: ArrayLike) -> tuple[FloatArray, FloatArray]:
    x, y = matched(a, b)
    both = np.isfinite(x) & np.isfinite(y)
    return x[both], y[both]


def _runs(values: FloatArray) -> tuple[IntArray, IntArray]:
    """First position of each run of equal values in their order, and that order."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    return np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]), order
