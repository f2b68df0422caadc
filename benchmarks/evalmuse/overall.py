"""Agreement of overall scores with the mean human ratings, all images of a slice in one pool."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from benchmarks.evalmuse.slices import Drawn, Estimate, ImageTable, undefined
from benchmarks.pooled import ManyPools, PooledImages
from benchmarks.rows import Row, notes
from benchmarks.statistics import logistic
from benchmarks.statistics.logistic_resampled import BestCurves

PAGE_START_WIDTH = 0.5
"""Where the fit of the competition page starts with b4, in units of the score."""


class ScoredImages(PooledImages):
    """The images of one slice, and the curves that all fits to them share."""

    def plain(self, row: Row) -> Estimate:
        """SRCC, KRCC or Pearson, whichever the row names."""
        row = self.counted(row)
        if self.undefined:
            return replace(undefined(row, self.undefined, self.remark), pool=self.sample)
        row = replace(row, value=self.value(row.measure), note=self.remark)
        return Estimate(row, lambda: Drawn(self.resamples(row.measure)), self.members, self.sample)

    def after_fit(self, row: Row, fitted: logistic.Plcc, curves: BestCurves) -> Estimate:
        """PLCC or RMSE, whichever the row names, of one fit."""
        row = self.counted(row)
        if self.undefined or math.isnan(fitted.value):
            return undefined(row, self.undefined or fitted.note, self.remark)
        value = fitted.value if row.measure == "plcc" else fitted.rmse
        row = replace(row, value=value, note=notes(fitted.note, self.remark))
        return Estimate(row, lambda: _drawn(row.measure, fitted, curves), self.members)

    @cached_property
    def to_labels(self) -> BestCurves:
        """Curves from scores to ratings, as the paper fits them."""
        return BestCurves(self.scores, self.ratings, self.plan.counts, self.clusters)

    @cached_property
    def to_scores(self) -> BestCurves:
        """Curves from ratings to scores, as the released NTIRE script fits them."""
        return BestCurves(self.ratings, self.scores, self.plan.counts, self.clusters)


def _drawn(measure: str, fitted: logistic.Plcc, curves: BestCurves) -> Drawn:
    doubt = curves.doubt(fitted)
    if doubt:
        return Drawn(note=doubt)
    return Drawn(curves.plcc if measure == "plcc" else curves.rmse)


def overall_estimates(
    row: Row, metric: int, pools: ManyPools, images: ImageTable
) -> Iterator[Estimate]:
    """Every measure of overall scores.

    Args:
        row: names benchmark, revision and metric.
        metric: its column in the pools.
        pools: scores of all metrics beside the ratings.
        images: ratings and prompts of the same images.
    """
    for split, members in images.splits:
        part = pools.pool(metric, members, ScoredImages)
        in_split = replace(row, split=split, variant="paper")
        for name in ("srcc", "krcc"):
            yield part.plain(replace(in_split, measure=name))
        fitted = logistic.plcc(part.scores, part.ratings)
        yield part.after_fit(replace(in_split, measure="plcc"), fitted, part.to_labels)
        if split == "all":
            yield from _challenge_plcc(in_split, part)
        yield part.after_fit(replace(in_split, measure="rmse"), fitted, part.to_labels)
        yield part.plain(replace(in_split, measure="pearson"))
    for skill, members in images.skills:
        part = pools.pool(metric, members, ScoredImages)
        yield part.plain(replace(row, measure="srcc", split="all", skill=skill, variant="assay"))


def _challenge_plcc(row: Row, part: ScoredImages) -> Iterator[Estimate]:
    """PLCC as the NTIRE 2025 script computes it, and as its page describes it."""
    row = replace(row, measure="plcc")
    swapped = logistic.plcc(part.ratings, part.scores)
    yield part.after_fit(replace(row, variant="ntire_code"), swapped, part.to_scores)
    page = logistic.plcc(part.scores, part.ratings, start_width=PAGE_START_WIDTH)
    yield part.after_fit(replace(row, variant="ntire_page"), page, part.to_labels)
