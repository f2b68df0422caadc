"""Agreement of one metric with mean ratings over a pool of images, and over some of its prompts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.pooled import SAME_RATING, SAME_SCORE, PooledImages
from benchmarks.rows import MeasuredBuilder, Row, notes
from benchmarks.statistics.pair_counts import Pairs
from benchmarks.statistics.pairwise import calibrated
from benchmarks.statistics.pairwise_resampled import DrawnPairs, PairForms
from benchmarks.statistics.resampling import ResamplingPlan

_VARIANTS = ("paper", "no_calibration", "ignore_tie")
"""Kinds of pairwise accuracy."""


@dataclass(frozen=True)
class Pool:
    """Images that are compared with each other, all or those of some prompts.

    Attributes:
        scores: shape (N,), higher is better; NaN where the metric gave none.
        labels: shape (N,), mean ratings; NaN where an image has none.
        clusters: shape (N,), position of each image's prompt in the plan.
        plan: resamples the prompts.
        unit: one unit of `scores` in units of the metric's own, for thresholds in notes.
    """

    scores: FloatArray
    labels: FloatArray
    clusters: IntArray
    plan: ResamplingPlan
    unit: float = 1.0

    @cached_property
    def _forms(self) -> PairForms:
        """Pairs by prompt at threshold 0, which every selection of prompts shares."""
        return self._where(np.ones(self.scores.size, bool)).pair_forms(0.0)

    def _where(self, members: BoolArray) -> PooledImages:
        return PooledImages.of(self.scores, self.labels, self.clusters, self.plan, members)

    def add_to(self, builder: MeasuredBuilder, row: Row, prompts: BoolArray | None = None) -> None:
        """Add pairwise accuracy in its three variants, and the three correlations.

        Args:
            builder: collects the rows.
            row: names benchmark, metric, split and skill; a variant of its own (not `paper`)
                leaves out the two other kinds of pairwise accuracy.
            prompts: shape (C,), which prompts of the plan to look at; None: all.
        """
        chosen = np.ones(len(self.plan.clusters), bool) if prompts is None else prompts
        pool = self._where(chosen[self.clusters])
        row = replace(pool.counted(row), note=pool.remark)
        drawn = _drawn(self._forms, pool)
        self._add_pairwise(builder, replace(row, measure="pairwise_accuracy"), pool, drawn)
        for measure in ("krcc", "pearson", "srcc"):
            of_measure = replace(row, measure=measure)
            if pool.undefined:
                without = replace(of_measure, note=notes(pool.undefined, row.note))
                builder.add(without, pool=pool.sample)
                continue
            # The pairs, which are at hand, hold Kendall's tau-b of every resample.
            resamples = drawn.tau_b if measure == "krcc" else pool.resamples(measure)
            found = replace(of_measure, value=pool.value(measure))
            builder.add(found, resamples, members=pool.members, pool=pool.sample)

    def _add_pairwise(
        self, builder: MeasuredBuilder, row: Row, pool: PooledImages, at_0: DrawnPairs
    ) -> None:
        pairs = Pairs.of(pool.scores, pool.ratings)
        if not pairs.n_pairs:
            few = replace(row, note=notes("fewer than two images with a score", row.note))
            for variant in _VARIANTS if row.variant == "paper" else (row.variant,):
                builder.add(replace(few, variant=variant))
            return
        if pool.constant == SAME_SCORE:
            row = replace(row, note=notes(SAME_SCORE, row.note))
        best = calibrated(pairs)
        at_best = at_0
        if best.threshold > 0:
            at_best = _drawn(pool.pair_forms(best.threshold), pool)
        note = notes(
            f"scores tied up to a difference of {self.unit * best.threshold:.6g}", row.note
        )
        calibrated_row = replace(row, value=best.accuracy, note=note)
        builder.add(calibrated_row, at_best.accuracy, members=pool.members)
        if row.variant != "paper":
            return
        uncalibrated = replace(row, variant="no_calibration", value=pairs.accuracy(0.0))
        builder.add(uncalibrated, at_0.accuracy, members=pool.members)
        ignoring = replace(row, variant="ignore_tie", value=pairs.accuracy_ignoring_ties)
        if np.isnan(ignoring.value):
            builder.add(replace(ignoring, note=notes(SAME_RATING, row.note)))
            return
        builder.add(ignoring, at_0.accuracy_ignoring_ties, members=pool.members)


def _drawn(forms: PairForms, pool: PooledImages) -> DrawnPairs:
    present = np.unique(pool.clusters)
    return forms.among(present).drawn(pool.plan.counts[:, present])
