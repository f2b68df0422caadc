"""Pooled images, each with a score and a mean rating, and the correlation of the two."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Self, TypeVar

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.rows import PooledSample, Row, notes
from benchmarks.statistics import correlation, kendall
from benchmarks.statistics.logistic import plcc_with_draws
from benchmarks.statistics.pairwise_accuracy import PairForms
from benchmarks.statistics.resampling import ResamplingPlan

MIN_IMAGES = 3
"""Fewer images than this make no correlation."""
Pool = TypeVar("Pool", bound="PooledImages")

SAME_SCORE = "the metric gives every image the same score"
SAME_RATING = "every image has the same rating"

_Coefficient = Callable[[FloatArray, FloatArray], float]
_Resampled = Callable[[FloatArray, FloatArray, FloatArray, IntArray], FloatArray]

CORRELATIONS: dict[str, tuple[_Coefficient, _Resampled]] = {
    "srcc": (correlation.spearman, correlation.resampled_spearman),
    "krcc": (correlation.kendall, kendall.resampled_kendall),
    "pearson": (correlation.pearson, correlation.resampled_pearson),
}
"""Measure to its value in the sample and in the resamples."""


@dataclass(frozen=True)
class Estimate:
    """A value, what a reader must know about it, and its resamples, shape (B,), if it has any."""

    value: float = math.nan
    note: str = ""
    resamples: FloatArray | None = None


@dataclass(frozen=True)
class PooledImages:
    """The images of one slice that one metric scored, and how many it did not."""

    scores: FloatArray  # shape (n,), finite, higher is better
    ratings: FloatArray  # shape (n,), finite
    clusters: IntArray  # shape (n,), position of each image's cluster in the plan
    n_missing: int  # images of the slice without a score
    plan: ResamplingPlan  # resamples the clusters
    members: IntArray  # positions in the plan of the clusters of the slice, scored or not
    # makes the whole slice, with its images without a score. It holds references to arrays that
    # many pools share, none of this pool's own, so it may outlive the pool.
    sample: Callable[[], PooledSample]
    # gives the resamples of a measure where they are found for many metrics at once, as `ManyPools`
    # does
    shared: Callable[[str], FloatArray] | None = None

    @classmethod
    def of(
        cls,
        scores: FloatArray,
        ratings: FloatArray,
        clusters: IntArray,
        plan: ResamplingPlan,
        members: BoolArray | None = None,
    ) -> Self:
        """The members of a slice.

        `scores` (N,), higher is better; NaN where the metric gave none; `ratings` (N,); an image
        without one (NaN) does not belong to the pool; `clusters` (N,), position of each image's
        cluster in the plan; `members` (N,); None: all images.
        """
        inside = np.ones(scores.size, bool) if members is None else members
        chosen = inside & np.isfinite(scores) & np.isfinite(ratings)
        missing = int((inside & np.isnan(scores)).sum())
        of_slice = np.unique(clusters[inside & np.isfinite(ratings)])
        return cls(
            scores[chosen],
            ratings[chosen],
            clusters[chosen],
            missing,
            plan,
            of_slice,
            partial(_sample, scores, ratings, clusters, members),
        )

    def counted(self, row: Row) -> Row:
        """The row with the counts of this pool."""
        return replace(
            row,
            n_items=self.scores.size,
            n_clusters=np.unique(self.clusters).size,
            n_missing=self.n_missing,
        )

    @property
    def remark(self) -> str:
        """What a reader must know about any value of this pool; empty as a rule."""
        return missing_scores(self.n_missing)

    @property
    def too_few(self) -> str:
        """Why nothing can be correlated; empty where something can."""
        few = self.scores.size < MIN_IMAGES
        return f"fewer than {MIN_IMAGES} images with a score" if few else ""

    @property
    def constant(self) -> str:
        """Which side has no spread; empty where both have. Needs an image."""
        if np.ptp(self.scores) == 0:
            return SAME_SCORE
        return SAME_RATING if np.ptp(self.ratings) == 0 else ""

    @property
    def undefined(self) -> str:
        """Why no correlation exists; empty where one does."""
        return self.too_few or self.constant

    def value(self, measure: str) -> float:
        """One of `CORRELATIONS`."""
        return CORRELATIONS[measure][0](self.scores, self.ratings)

    def resamples(self, measure: str) -> FloatArray:
        """The same in each resample, shape (B,)."""
        if self.shared is not None:
            return self.shared(measure)
        return CORRELATIONS[measure][1](self.scores, self.ratings, self.plan.counts, self.clusters)

    def pair_forms(self, threshold: float) -> PairForms:
        """All pairs of images, by their clusters; scores that far apart or closer are tied."""
        n_clusters = len(self.plan.clusters)
        return PairForms.of(self.scores, self.ratings, self.clusters, n_clusters, threshold)

    def correlation(self, measure: str) -> Estimate:
        """One of `CORRELATIONS` or `plcc`, with its note and resamples."""
        if self.undefined:
            return Estimate(note=notes(self.undefined, self.remark))
        if measure != "plcc":
            return Estimate(self.value(measure), self.remark, self.resamples(measure))
        found = plcc_with_draws(self.scores, self.ratings, self.plan.counts, self.clusters)
        note = notes(found.fitted.note, found.doubt, self.remark)
        return Estimate(found.fitted.value, note, found.draws)


class ManyPools:
    """Pools of the same images for many metrics, whose resamples are found together.

    Sorting the ratings, drawing the items and weighting them is the same work for every metric, so
    all that scored the same images of a slice share it.

    `scores` (N, M), higher is better; NaN where a metric gave none; `ratings` (N,); NaN where an
    image has none; `clusters` (N,), position of each image's cluster in the plan.
    """

    def __init__(
        self, scores: FloatArray, ratings: FloatArray, clusters: IntArray, plan: ResamplingPlan
    ) -> None:
        self._scores = scores
        self._ratings = ratings
        self._clusters = clusters
        self._plan = plan
        self._found: dict[tuple[int, str, bytes], tuple[IntArray, FloatArray, BoolArray]] = {}

    def pool(self, metric: int, members: BoolArray, kind: type[Pool]) -> Pool:
        """The pool of one metric in one slice.

        `members` (N,), the slice; the same array for every metric; `kind`: class of the pool,
        `PooledImages` or one made of it.
        """
        pool = kind.of(self._scores[:, metric], self._ratings, self._clusters, self._plan, members)
        return replace(pool, shared=partial(self._resamples, metric, members))

    def _resamples(self, metric: int, members: BoolArray, measure: str) -> FloatArray:
        """Shape (B,); computed for all metrics that scored the same images of the slice."""
        rated = members & np.isfinite(self._ratings)
        scored = np.isfinite(self._scores[rated])
        mine = scored[:, metric]
        key = (id(members), measure, np.packbits(mine).tobytes())
        if key not in self._found:
            alike = np.flatnonzero((scored == mine[:, None]).all(axis=0))
            images = np.flatnonzero(rated)[mine]
            resampled = CORRELATIONS[measure][1]
            columns = self._scores[np.ix_(images, alike)]
            found = resampled(
                columns, self._ratings[images], self._plan.counts, self._clusters[images]
            )
            # The slice is kept, so that no other can take its place and its number.
            self._found[key] = alike, found, members
        alike, found, _ = self._found[key]
        of_metric: FloatArray = found[:, np.searchsorted(alike, metric)]
        return of_metric


def _sample(
    scores: FloatArray, ratings: FloatArray, clusters: IntArray, members: BoolArray | None
) -> PooledSample:
    rated = np.isfinite(ratings)
    chosen = rated if members is None else members & rated
    return PooledSample(scores[chosen], ratings[chosen], clusters[chosen])


def missing_scores(n_missing: int) -> str:
    """Says how many images have no score and are therefore left out; empty where none is."""
    return f"images left out for want of a score: {n_missing}" if n_missing else ""
