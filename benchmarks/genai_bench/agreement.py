"""Agreement of one metric with mean ratings over a pool of images, and over some of its prompts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from benchmarks.rows import MeasuredBuilder, Row
from benchmarks.statistics import correlation
from benchmarks.statistics.pair_counts import Pairs
from benchmarks.statistics.pairwise import calibrated
from benchmarks.statistics.pairwise_resampled import DrawnPairs, PairForms
from benchmarks.statistics.resampling import ResamplingPlan

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MIN_IMAGES = 3
"""Fewer images than this make no correlation."""

_VARIANTS = ("paper", "no_calibration", "ignore_tie")
"""Kinds of pairwise accuracy."""
_CORRELATIONS = {
    "pearson": (correlation.pearson, correlation.resampled_pearson),
    "srcc": (correlation.spearman, correlation.resampled_spearman),
}


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
    def _counted(self) -> NDArray[np.bool_]:
        return np.isfinite(self.scores) & np.isfinite(self.labels)

    @cached_property
    def _forms(self) -> PairForms:
        """Pairs by prompt at threshold 0, which every selection of prompts shares."""
        return self._forms_of(self._counted, 0.0)

    def _forms_of(self, images: NDArray[np.bool_], threshold: float) -> PairForms:
        return PairForms.of(
            self.scores[images],
            self.labels[images],
            self.clusters[images],
            len(self.plan.clusters),
            threshold,
        )

    def add_to(
        self, builder: MeasuredBuilder, row: Row, prompts: NDArray[np.bool_] | None = None
    ) -> None:
        """Add pairwise accuracy in its three variants, and the three correlations.

        Args:
            builder: collects the rows.
            row: names benchmark, metric, split and skill; a variant of its own (not `paper`)
                leaves out the two other kinds of pairwise accuracy.
            prompts: shape (C,), which prompts of the plan to look at; None: all.
        """
        chosen = np.ones(len(self.plan.clusters), bool) if prompts is None else prompts
        inside = chosen[self.clusters]
        images = inside & self._counted
        n_missing = int((inside & np.isnan(self.scores)).sum())
        row = replace(
            row,
            n_items=int(images.sum()),
            n_clusters=np.unique(self.clusters[images]).size,
            n_missing=n_missing,
            note=f"images left out for want of a score: {n_missing}" if n_missing else "",
        )
        drawn = self._drawn(self._forms, images)
        self._add_pairwise(builder, replace(row, measure="pairwise_accuracy"), images, drawn)
        reason = _undefined(self.scores[images], self.labels[images])
        for measure in ("krcc", *_CORRELATIONS):
            of_measure = replace(row, measure=measure)
            if reason:
                builder.add(replace(of_measure, note=_joined(reason, row.note)))
            else:
                self._add_correlation(builder, of_measure, images, drawn)

    def _drawn(self, forms: PairForms, images: NDArray[np.bool_]) -> DrawnPairs:
        present = np.unique(self.clusters[images])
        return forms.among(present).drawn(self.plan.counts[:, present])

    def _add_correlation(
        self, builder: MeasuredBuilder, row: Row, images: NDArray[np.bool_], drawn: DrawnPairs
    ) -> None:
        scores, labels = self.scores[images], self.labels[images]
        if row.measure == "krcc":
            builder.add(replace(row, value=correlation.kendall(scores, labels)), drawn.tau_b)
            return
        estimate, resampled = _CORRELATIONS[row.measure]
        draws = resampled(scores, labels, self.plan.counts, self.clusters[images])
        builder.add(replace(row, value=estimate(scores, labels)), draws)

    def _add_pairwise(
        self, builder: MeasuredBuilder, row: Row, images: NDArray[np.bool_], at_0: DrawnPairs
    ) -> None:
        scores, labels = self.scores[images], self.labels[images]
        pairs = Pairs.of(scores, labels)
        if not pairs.n_pairs:
            few = replace(row, note=_joined("fewer than two images with a score", row.note))
            for variant in _VARIANTS if row.variant == "paper" else (row.variant,):
                builder.add(replace(few, variant=variant))
            return
        if np.ptp(scores) == 0:
            constant = "the metric gives every image the same score"
            row = replace(row, note=_joined(constant, row.note))
        best = calibrated(pairs)
        at_best = at_0
        if best.threshold > 0:
            at_best = self._drawn(self._forms_of(images, best.threshold), images)
        note = _joined(
            f"scores tied up to a difference of {self.unit * best.threshold:.6g}", row.note
        )
        builder.add(replace(row, value=best.accuracy, note=note), at_best.accuracy)
        if row.variant != "paper":
            return
        uncalibrated = replace(row, variant="no_calibration", value=pairs.accuracy(0.0))
        builder.add(uncalibrated, at_0.accuracy)
        ignoring = replace(row, variant="ignore_tie", value=pairs.accuracy_ignoring_ties)
        if np.isnan(ignoring.value):
            reason = "every image has the same mean rating"
            builder.add(replace(ignoring, note=_joined(reason, row.note)))
            return
        builder.add(ignoring, at_0.accuracy_ignoring_ties)


def _undefined(scores: FloatArray, labels: FloatArray) -> str:
    """Why no correlation exists; empty where one does."""
    if scores.size < MIN_IMAGES:
        return f"fewer than {MIN_IMAGES} images with a score"
    if np.ptp(scores) == 0:
        return "the metric gives every image the same score"
    return "every image has the same mean rating" if np.ptp(labels) == 0 else ""


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
