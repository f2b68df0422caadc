"""Agreement of overall scores with the mean human ratings, all images of a slice in one pool."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from benchmarks.evalmuse.slices import (
    BoolArray,
    Drawn,
    Estimate,
    FloatArray,
    ImageTable,
    IntArray,
    count_distinct,
    joined,
    undefined,
)
from benchmarks.rows import Row
from benchmarks.statistics import correlation, logistic
from benchmarks.statistics.resampling import ResamplingPlan

MIN_IMAGES = 3
"""Fewer images than this make no correlation."""
PAGE_START_WIDTH = 0.5
"""Where the fit of the competition page starts with b4, in units of the score."""

_PLAIN = {
    "srcc": (correlation.spearman, correlation.resampled_spearman),
    "krcc": (correlation.kendall, correlation.resampled_kendall),
    "pearson": (correlation.pearson, correlation.resampled_pearson),
}


@dataclass(frozen=True)
class Curves:
    """Best logistic curves from `x` to `y`, shape (n,) each, in every resample."""

    x: FloatArray
    y: FloatArray
    clusters: IntArray
    plan: ResamplingPlan

    @cached_property
    def plcc(self) -> FloatArray:
        """Shape (1 + B,): PLCC of the best curve for the sample itself, then in each resample."""
        # Row 0 draws every prompt once: the grid's value for the sample itself.
        return logistic.resampled_plcc(self.x, self.y, self._draws, self.clusters)

    @cached_property
    def rmse(self) -> FloatArray:
        """Shape (1 + B,): RMSE of the same curves."""
        return logistic.resampled_rmse(self.plcc, self.y, self._draws, self.clusters)

    @cached_property
    def _draws(self) -> FloatArray:
        return np.vstack([np.ones((1, len(self.plan.clusters))), self.plan.counts])

    def drawn(self, measure: str, fitted: logistic.Plcc) -> Drawn:
        """The resamples of `plcc` or `rmse`, unless the fit they belong to is another curve."""
        if abs(self.plcc[0] - fitted.value) > logistic.GRID_TOLERANCE:
            return Drawn(note="no interval: the fit stopped at a curve that is not the best one")
        return Drawn((self.plcc if measure == "plcc" else self.rmse)[1:])


@dataclass(frozen=True)
class ScoredImages:
    """Images of one slice for one metric: those with a score, and how many have none."""

    scores: FloatArray
    labels: FloatArray
    clusters: IntArray
    n_missing: int
    plan: ResamplingPlan

    @classmethod
    def of(
        cls, values: FloatArray, images: ImageTable, members: BoolArray, plan: ResamplingPlan
    ) -> ScoredImages:
        """The members of a slice.

        Args:
            values: shape (N,), the metric's scores, NaN where it gives none.
            images: labels and prompts of the same images.
            members: shape (N,).
            plan: resamples the prompts.
        """
        scored = members & np.isfinite(values)
        return cls(
            values[scored],
            images.labels[scored],
            images.clusters[scored],
            int(members.sum() - scored.sum()),
            plan,
        )

    def plain(self, row: Row) -> Estimate:
        """SRCC, KRCC or Pearson, whichever the row names."""
        row = self._counted(row)
        if self._undefined_note:
            return undefined(row, self._undefined_note, self._missing_note)
        estimate, resampled = _PLAIN[row.measure]
        row = replace(row, value=estimate(self.scores, self.labels), note=self._missing_note)
        return Estimate(
            row,
            lambda: Drawn(resampled(self.scores, self.labels, self.plan.counts, self.clusters)),
        )

    def after_fit(self, row: Row, fitted: logistic.Plcc, curves: Curves) -> Estimate:
        """PLCC or RMSE, whichever the row names, of one fit."""
        row = self._counted(row)
        value = fitted.value if row.measure == "plcc" else fitted.rmse
        if self._undefined_note or math.isnan(fitted.value):
            return undefined(row, self._undefined_note or fitted.note, self._missing_note)
        row = replace(row, value=value, note=joined(fitted.note, self._missing_note))
        return Estimate(row, lambda: curves.drawn(row.measure, fitted))

    @cached_property
    def to_labels(self) -> Curves:
        """Curves from scores to ratings, as the paper fits them."""
        return Curves(self.scores, self.labels, self.clusters, self.plan)

    @cached_property
    def to_scores(self) -> Curves:
        """Curves from ratings to scores, as the released NTIRE script fits them."""
        return Curves(self.labels, self.scores, self.clusters, self.plan)

    def _counted(self, row: Row) -> Row:
        return replace(
            row,
            n_items=self.scores.size,
            n_clusters=count_distinct(self.clusters),
            n_missing=self.n_missing,
        )

    @property
    def _missing_note(self) -> str:
        return f"images left out for want of a score: {self.n_missing}" if self.n_missing else ""

    @cached_property
    def _undefined_note(self) -> str:
        """Why no correlation exists; empty where one does."""
        if self.scores.size < MIN_IMAGES:
            return f"fewer than {MIN_IMAGES} images with a score"
        if np.ptp(self.scores) == 0:
            return "the metric gives every image the same score"
        return "every image has the same label" if np.ptp(self.labels) == 0 else ""


def overall_estimates(
    row: Row, values: FloatArray, images: ImageTable, plan: ResamplingPlan
) -> Iterator[Estimate]:
    """Every measure of overall scores.

    Args:
        row: names benchmark, revision and metric.
        values: shape (N,), the metric's scores, higher is better, NaN where it gives none.
        images: ratings and prompts of the same images.
        plan: resamples the prompts.
    """
    for split, members in images.splits:
        part = ScoredImages.of(values, images, members, plan)
        in_split = replace(row, split=split, variant="paper")
        for name in ("srcc", "krcc"):
            yield part.plain(replace(in_split, measure=name))
        fitted = logistic.plcc(part.scores, part.labels)
        yield part.after_fit(replace(in_split, measure="plcc"), fitted, part.to_labels)
        if split == "all":
            yield from _challenge_plcc(in_split, part)
        yield part.after_fit(replace(in_split, measure="rmse"), fitted, part.to_labels)
        yield part.plain(replace(in_split, measure="pearson"))
    for skill, members in images.skills:
        part = ScoredImages.of(values, images, members, plan)
        yield part.plain(replace(row, measure="srcc", split="all", skill=skill, variant="assay"))


def _challenge_plcc(row: Row, part: ScoredImages) -> Iterator[Estimate]:
    """PLCC as the NTIRE 2025 script computes it, and as its page describes it."""
    row = replace(row, measure="plcc")
    swapped = logistic.plcc(part.labels, part.scores)
    yield part.after_fit(replace(row, variant="ntire_code"), swapped, part.to_scores)
    page = logistic.plcc(part.scores, part.labels, start_width=PAGE_START_WIDTH)
    yield part.after_fit(replace(row, variant="ntire_page"), page, part.to_labels)
