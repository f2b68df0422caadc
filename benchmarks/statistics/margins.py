"""Areas under the curve of margins: differences of two scores, against what people preferred.

Krasula, Fliegel, Le Callet, Klíma: On the accuracy of objective image and video quality models,
QoMEX 2016: are margins that favour the better side larger than those that favour the worse one
(better or worse), and are margins larger where people decided than where they tied (different or
similar)? Both are areas under a receiver operating characteristic, equal values counting half.
"""

from __future__ import annotations

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray, IntArray

_CELLS_AT_ONCE = 1 << 22
"""Draws of margins held at a time: 32 MiB."""


def better_worse_auc(margins: FloatArray, clusters: IntArray, counts: FloatArray) -> FloatArray:
    """Chance that a margin seen from the better side exceeds one seen from the worse side.

    Every comparison is seen from both sides, so that no order of the sides matters: with d the
    margins, the share of all (i, j) with d_i + d_j > 0, those with 0 counting half. Of two margins
    the larger one decides, so one sort by size is enough for every resample.

    `margins` (n,), score of the preferred image less that of the other one, not NaN; `clusters`
    (n,), column of `counts` of each; `counts` (B, C), multiplicities of the clusters.
    Returns: shape (B,), 0..1; NaN where a resample holds none.
    """
    won = 0.5 * ((margins > 0).astype(np.float64) + (margins >= 0))
    found, _, total = _won_by_size(np.abs(margins), won, np.ones(won.size), clusters, counts)
    return _share(found, total**2)


def decided_tied_auc(
    margins: FloatArray, decided: BoolArray, clusters: IntArray, counts: FloatArray
) -> FloatArray:
    """Chance that a margin is larger where people decided than where they tied.

    `margins` (n,), not NaN; `decided` (n,); the others as for `better_worse_auc`.
    Returns: shape (B,), 0..1; NaN where a resample lacks decided or tied comparisons.
    """
    apart = decided.astype(np.float64)
    sizes = np.abs(margins)
    found, n_decided, n_tied = _won_by_size(sizes, apart, 1.0 - apart, clusters, counts)
    return _share(found, 2.0 * n_decided * n_tied)


def _won_by_size(
    sizes: FloatArray, won: FloatArray, rivals: FloatArray, clusters: IntArray, counts: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sum of won_i rival_j [(s_i > s_j) + (s_i >= s_j)] in each resample; sums of both; (B,) each."""
    from scipy import sparse  # noqa: PLC0415 (when it is used: the site keeps less in memory)

    levels, level = np.unique(sizes, return_inverse=True)
    shape = len(levels), counts.shape[1]
    winning, facing = (
        sparse.csr_array((values, (level, clusters)), shape) for values in (won, rivals)
    )
    found = np.empty((3, len(counts)))
    width = max(1, _CELLS_AT_ONCE // max(len(levels), 1))
    for start in range(0, len(counts), width):
        drawn = np.ascontiguousarray(counts[start : start + width].T)
        mine, theirs = winning @ drawn, facing @ drawn
        up_to = np.cumsum(theirs, axis=0)
        sums = np.einsum("gb,gb->b", mine, 2.0 * up_to - theirs), mine.sum(axis=0), up_to[-1:]
        for line, values in zip(found, sums, strict=True):
            line[start : start + width] = values if np.size(values) else 0.0
    return found[0], found[1], found[2]


def _share(part: FloatArray, whole: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        share: FloatArray = part / whole
    return share
