"""Pooled images, each with a score and a mean rating, and how far the two agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal, Self, TypeVar

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.rows import PooledSample, Row, notes
from benchmarks.statistics import correlation, kendall, logistic
from benchmarks.statistics.correlation import BY_GROUP, Groups
from benchmarks.statistics.logistic import BestCurves, Plcc
from benchmarks.statistics.pairwise_accuracy import (
    DrawnPairs,
    GroupedPairs,
    PairForms,
    Pairs,
    calibrated,
)
from benchmarks.statistics.resampling import ResamplingPlan, mean_of_defined, resampled_mean

MIN_IMAGES = 3
"""Fewer images than this make no correlation."""
MAX_MISSING = 0.02
"""Who lacks more than this share of a ranking's scores has no rank in it."""
Pool = TypeVar("Pool", bound="PooledImages")

SAME_SCORE = "the metric gives every image the same score"
SAME_RATING = "every image has the same rating"

Ties = Literal["calibrated", "equal", "ignore"]
"""What pairwise accuracy calls tied: scores up to the best threshold, or equal ones only; or pairs
that people tie are left out."""

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
    # values of the clusters whose mean it is, shape (C,) for those of the plan; None for other ones
    of_clusters: FloatArray | None = None


@dataclass(frozen=True)
class PooledImages:
    """The images of one slice that one metric scored, and how many it did not."""

    scores: FloatArray  # shape (n,), finite, higher is better
    ratings: FloatArray  # shape (n,), finite
    clusters: IntArray  # shape (n,), position of each image's cluster in the plan
    n_missing: int  # images of the slice without a score of their own
    plan: ResamplingPlan  # resamples the clusters
    members: IntArray  # positions in the plan of the clusters of the slice, scored or not
    # makes the whole slice, with its images without a score. It holds references to arrays that
    # many pools share, none of this pool's own, so it may outlive the pool.
    sample: Callable[[], PooledSample]
    # gives the resamples of a measure where they are found for many metrics at once, as `ManyPools`
    # does
    shared: Callable[[str], FloatArray] | None = None
    # gives the pairs of a wider pool at threshold 0, where this one is all images of some clusters
    wider: Callable[[], PairForms] | None = None
    n_counted: int = 0  # of those without a score, how many are among the images; see `most_wrong`

    @classmethod
    def of(
        cls,
        scores: FloatArray,
        ratings: FloatArray,
        clusters: IntArray,
        plan: ResamplingPlan,
        members: BoolArray | None = None,
        *,
        filled: FloatArray | None = None,
    ) -> Self:
        """The members of a slice.

        `scores` (N,), higher is better; NaN where the metric gave none; `ratings` (N,); an image
        without one (NaN) does not belong to the pool; `clusters` (N,), position of each image's
        cluster in the plan; `members` (N,); None: all images; `filled` (N,): the scores with
        those that are missing and count; None: `most_wrong` among the members.
        """
        inside = np.ones(scores.size, bool) if members is None else members
        if filled is None:
            filled = most_wrong(scores, ratings, inside)
        chosen = inside & np.isfinite(filled) & np.isfinite(ratings)
        missing = inside & np.isnan(scores)
        of_slice = np.unique(clusters[inside & np.isfinite(ratings)])
        return cls(
            filled[chosen],
            ratings[chosen],
            clusters[chosen],
            int(missing.sum()),
            plan,
            of_slice,
            partial(_sample, filled, ratings, clusters, members),
            n_counted=int((missing & chosen).sum()),
        )

    def counted(self, row: Row) -> Row:
        """The row with the counts of this pool."""
        return replace(
            row,
            n_items=self.scores.size - self.n_counted,
            n_clusters=np.unique(self.clusters).size,
            n_missing=self.n_missing,
        )

    @property
    def remark(self) -> str:
        """What a reader must know about any value of this pool; empty as a rule."""
        return missing_scores(self.n_missing - self.n_counted, self.n_counted)

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

    def drawn_pairs(self, threshold: float) -> DrawnPairs:
        """Pairs of draws in each resample, scores that far apart or closer being tied."""
        if not self.plan.n_resamples:  # Comparing all pairs for no resample would take long.
            return DrawnPairs(*(np.empty(0),) * 5)
        if threshold == 0.0:
            return self._equal_pairs
        return self._drawn(self.pair_forms(threshold))

    @cached_property
    def _equal_pairs(self) -> DrawnPairs:
        return self._drawn(self.wider() if self.wider else self.pair_forms(0.0))

    def _drawn(self, forms: PairForms) -> DrawnPairs:
        present = np.unique(self.clusters)
        return forms.among(present).drawn(self.plan.counts[:, present])

    @cached_property
    def fit(self) -> Plcc:
        """PLCC and RMSE of the logistic curve from scores to ratings."""
        return logistic.plcc(self.scores, self.ratings)

    @cached_property
    def to_ratings(self) -> BestCurves:
        """Best curves from scores to ratings, in every resample."""
        return BestCurves(self.scores, self.ratings, self.plan.counts, self.clusters)

    def correlation(self, measure: str) -> Estimate:
        """One of `CORRELATIONS`, `plcc` or `rmse`, with its note and resamples."""
        if self.undefined:
            return Estimate(note=notes(self.undefined, self.remark))
        if measure in ("plcc", "rmse"):
            return self._after_fit(measure)
        return Estimate(self.value(measure), self.remark, self.resamples(measure))

    def _after_fit(self, measure: str) -> Estimate:
        fit = self.fit
        if math.isnan(fit.value):
            return Estimate(note=notes(fit.note, self.remark))
        value = fit.value if measure == "plcc" else fit.rmse
        if not self.plan.n_resamples:  # Nor is there a resample that could be doubted.
            return Estimate(value, notes(fit.note, self.remark))
        doubt = self.to_ratings.doubt(fit)
        drawn = None
        if not doubt:
            drawn = self.to_ratings.plcc if measure == "plcc" else self.to_ratings.rmse
        return Estimate(value, notes(fit.note, doubt, self.remark), drawn)

    def pairwise_accuracy(self, ties: Ties, unit: float = 1.0) -> Estimate:
        """Share of pairs of images that scores and ratings order alike, or both call tied.

        Defined for constant scores too, which call every pair tied. The resamples keep the
        threshold that is best in the sample.

        `unit`: of the scores in units of the metric's own, for the threshold in the note.
        """
        if self.too_few:
            return Estimate(note=notes(self.too_few, self.remark))
        pairs = Pairs.of(self.scores, self.ratings)
        said = notes(self.constant, self.remark)
        if ties == "equal":
            return Estimate(pairs.accuracy(0.0), said, self.drawn_pairs(0.0).accuracy)
        if ties == "ignore":
            value = pairs.accuracy_ignoring_ties
            if math.isnan(value):
                return Estimate(note=notes(SAME_RATING, self.remark))
            return Estimate(value, said, self.drawn_pairs(0.0).accuracy_ignoring_ties)
        best = calibrated(pairs)
        note = notes(tied_up_to(unit * best.threshold), said)
        return Estimate(best.accuracy, note, self.drawn_pairs(best.threshold).accuracy)

    def estimate(self, measure: str, ties: Ties, unit: float = 1.0) -> Estimate:
        """A measure of this pool; `ties` and `unit` are for pairwise accuracy."""
        if measure == "pairwise_accuracy":
            return self.pairwise_accuracy(ties, unit)
        return self.correlation(measure)

    def within_clusters(self, measure: str, ties: Ties, unit: float = 1.0) -> Estimate:
        """The same within each cluster, and the mean over those where it is defined.

        One threshold of ties serves all clusters (Deutsch et al. 2023, section 5).
        """
        groups = Groups.of(self.clusters, len(self.plan.clusters))
        said = ""
        if measure != "pairwise_accuracy":
            of_clusters = BY_GROUP[measure](self.scores, self.ratings, groups)
        else:
            pairs = GroupedPairs.of(self.ratings, groups)
            if ties == "ignore":
                of_clusters = pairs.accuracy_ignoring_ties(self.scores)
            else:
                best = pairs.tie_calibrated(self.scores).threshold if ties == "calibrated" else 0.0
                said = tied_up_to(unit * best) if ties == "calibrated" else ""
                of_clusters = pairs.accuracy(self.scores, 0.0 if math.isnan(best) else best)
        defined = np.isfinite(of_clusters)
        if not defined.any():
            return Estimate(note=notes(NOWHERE, self.remark))
        undefined = int(np.count_nonzero(groups.sizes[~defined]))
        left_out = f"prompts left out, where it is undefined: {undefined}" if undefined else ""
        return Estimate(
            float(of_clusters[defined].mean()),
            notes(said, left_out, self.remark),
            resampled_mean(of_clusters, self.plan.counts),
            of_clusters,
        )


NOWHERE = "it is defined nowhere"


def mean_of_pools(pools: Sequence[PooledImages], measure: str, ties: Ties) -> Estimate:
    """Mean over pools of a measure of each, where it is defined; each has a threshold of ties."""
    found = [pool.estimate(measure, ties) for pool in pools]
    defined = [one for one in found if not math.isnan(one.value)]
    counted = sum(pool.n_counted for pool in pools)
    remark = missing_scores(sum(pool.n_missing for pool in pools) - counted, counted)
    if not defined:
        return Estimate(note=notes(NOWHERE, remark))
    undefined = len(found) - len(defined)
    left_out = f"models left out, where it is undefined: {undefined}" if undefined else ""
    drawn = [one.resamples for one in defined if one.resamples is not None]
    whole = len(drawn) == len(defined)
    return Estimate(
        sum(one.value for one in defined) / len(defined),
        notes(left_out, "" if whole else "no interval: it lacks one for a model", remark),
        mean_of_defined(np.stack(drawn)) if whole else None,
    )


def tied_up_to(difference: float) -> str:
    """Says up to which difference scores are called tied."""
    return f"tied up to a difference of {difference:.6g}"


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
        own = most_wrong(self._scores[:, metric], self._ratings, members)
        mine = np.isfinite(own[rated])
        key = (id(members), measure, np.packbits(mine).tobytes())
        if key not in self._found:
            columns = [most_wrong(of, self._ratings, members)[rated] for of in self._scores.T]
            filled = np.column_stack(columns)
            scored = np.isfinite(filled)
            alike = np.flatnonzero((scored == mine[:, None]).all(axis=0))
            images = np.flatnonzero(rated)[mine]
            resampled = CORRELATIONS[measure][1]
            found = resampled(
                filled[np.ix_(mine, alike)],
                self._ratings[images],
                self._plan.counts,
                self._clusters[images],
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


def most_wrong(
    scores: FloatArray, ratings: FloatArray, inside: BoolArray, groups: IntArray | None = None
) -> FloatArray:
    """Scores with those that are missing at their most wrong, where few are.

    That is the metric's highest score for an image with more images rated above it than below, and
    its lowest for any other. Nothing milder would do: where people's ratings are known, who leaves
    out the 2 % of the images that it gets most wrong lifts a Spearman correlation of .59 by .047; with
    its own median in their place by .036, and with its own lowest score, for images that people rate
    low, by .052.

    `scores` (N,), NaN where there is none; `ratings` (N,), NaN where an image has none; `inside` (N,),
    the slice; `groups` (N,), within which a measure compares images, such as those of one prompt; None:
    all are compared.
    Returns: shape (N,); as they are where more than `MAX_MISSING` of the slice lack a score, which has
    no rank then.
    """
    rated = inside & np.isfinite(ratings)
    missing = np.flatnonzero(rated & np.isnan(scores))
    known = scores[inside & np.isfinite(scores)]
    if not missing.size or not known.size or missing.size > MAX_MISSING * rated.sum():
        return scores
    found = scores.copy()
    of_group = np.zeros(scores.size, np.intp) if groups is None else groups
    for group in np.unique(of_group[missing]):
        own = missing[of_group[missing] == group]
        ordered = np.sort(ratings[rated & (of_group == group)])
        above = ordered.size - np.searchsorted(ordered, ratings[own], "right")
        below = np.searchsorted(ordered, ratings[own], "left")
        found[own] = np.where(above > below, known.max(), known.min())
    return found


def missing_scores(n_left_out: int, n_counted: int = 0) -> str:
    """Says how many images have no score, and what becomes of them; empty where all have one."""
    return notes(
        f"images left out for want of a score: {n_left_out}" if n_left_out else "",
        f"images without a score, counted as most wrong: {n_counted}" if n_counted else "",
    )
