"""Areas under the curve of margins: differences of two scores, against what people preferred.

Krasula, Fliegel, Le Callet, Klíma: On the accuracy of objective image and video quality models,
QoMEX 2016: are margins that favour the better side larger than those that favour the worse one
(better or worse), and are margins larger where people decided than where they tied (different or
similar)? Both are areas under a receiver operating characteristic, equal values counting half.
"""

from __future__ import annotations

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics.detection import auroc, ratio, won_by_level


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
    found, _, total = won_by_level(np.abs(margins), won, np.ones(won.size), clusters, counts)
    return ratio(found, total**2)


def decided_tied_auc(
    margins: FloatArray, decided: BoolArray, clusters: IntArray, counts: FloatArray
) -> FloatArray:
    """Chance that a margin is larger where people decided than where they tied.

    `margins` (n,), not NaN; `decided` (n,); the others as for `better_worse_auc`.
    Returns: shape (B,), 0..1; NaN where a resample lacks decided or tied comparisons.
    """
    return auroc(np.abs(margins), decided, clusters, counts)
