"""Means over the rows of a card, resampled by cluster."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.rows import MeasuredBuilder, Row
from benchmarks.statistics.resampling import ResamplingPlan


@dataclass(frozen=True)
class Credit:
    """Credit of each row for one measure, shape (n,) each; the measure is sum over sum."""

    total: FloatArray
    weight: FloatArray
    unscored: BoolArray  # whether a score is missing that the measure needs

    def of(self, rows: BoolArray) -> Credit:
        """Those of some rows; the others count nothing."""
        return Credit(self.total * rows, self.weight * rows, self.unscored & rows)

    @property
    def n_unscored(self) -> int:
        """Rows that lack a score."""
        return int(self.unscored.sum())

    def mean(self) -> float:
        """The measure."""
        return float(self.total.sum() / self.weight.sum()) if self.weight.any() else math.nan


def add_mean(
    builder: MeasuredBuilder,
    row: Row,
    credit: Credit,
    cluster: IntArray,
    plan: ResamplingPlan,
    *,
    members: IntArray,
) -> None:
    """Add the row of a measure that is a quotient of sums over rows, resampled by cluster.

    `cluster`: shape (n,), position of each row's cluster in the plan. `members`: the same of the
    rows of the slice.
    """
    size = len(plan.clusters)
    total, weight = (np.bincount(cluster, one, size) for one in (credit.total, credit.weight))
    if not weight.any():
        builder.add(replace(row, note=row.note or "nothing counts here"), members=members)
        return
    row = replace(
        row,
        value=float(total.sum() / weight.sum()),
        n_items=round(float(weight.sum())),
        n_clusters=int((weight > 0).sum()),
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = (plan.counts @ total) / (plan.counts @ weight)
    builder.add(row, drawn, members=members)
