"""The protocol of TIFA160: correlation and pairwise agreement with two sets of human ratings.

All images are pooled. Hu et al. 2023 (TIFA), Cho et al. 2024 (DSG), Lin et al. 2024 (VQAScore)
and Han et al. 2024 (EvalMuse-40K) report different pairs of a measure and a gold; every pair is
given here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.rows import Measured, MeasuredBuilder, Row
from benchmarks.schema import MeasureInfo, ScoreTable
from benchmarks.statistics import correlation, logistic, pairwise
from benchmarks.statistics.pairwise_resampled import PairForms
from benchmarks.statistics.resampling import ResamplingPlan
from benchmarks.tifa160.answers import GOLDS, FloatArray, Tifa160Answers

IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

MIN_IMAGES = 3
"""Fewer images than this make no correlation."""

MEASURES: dict[str, MeasureInfo] = {
    "spearman": MeasureInfo(
        title="Spearman ρ",
        meaning="Spearman rank correlation between the metric and the mean rating over all "
        "images. For the source of the prompts (a summary of ours): over its images only.",
        low=-1.0,
        high=1.0,
        chance=0.0,
        source="DSG, correlation with Likert ratings on TIFA160",
    ),
    "krcc": MeasureInfo(
        title="Kendall τ-b",
        meaning="Kendall's tau-b between the metric and the mean rating over all images.",
        low=-1.0,
        high=1.0,
        chance=0.0,
        source="TIFA, correlation with human judgement, column Kendall; DSG",
    ),
    "pearson": MeasureInfo(
        title="Pearson r",
        meaning="Pearson correlation between the metric and the mean rating over all images. "
        "The TIFA paper prints this, with gold human_avg, under the title Spearman.",
        low=-1.0,
        high=1.0,
        chance=0.0,
        source="TIFA, correlation with human judgement, column Spearman; VQAScore (x 100)",
    ),
    "plcc": MeasureInfo(
        title="PLCC",
        meaning="Pearson correlation between the mean rating and the metric after a "
        "four-parameter logistic is fitted from scores to ratings. The curve may fall, so a "
        "metric that runs backwards also gets a positive value. The interval takes the best "
        "curve of a fixed grid in each resample instead of a new fit.",
        low=-1.0,
        high=1.0,
        source="EvalMuse-40K, results on other benchmarks",
    ),
    "pairwise_accuracy": MeasureInfo(
        title="Pairwise accuracy",
        meaning="Share of all pairs of images that the metric orders as the ratings do, or calls "
        "tied where they are equal. Scores count as tied up to a difference that is chosen for "
        "highest accuracy on these images; the interval keeps that difference fixed.",
        low=0.0,
        high=1.0,
        source="VQAScore, with the tie calibration of Deutsch et al. 2023",
    ),
}

FACETS: dict[str, str] = {
    "dsg_likert": "mean of 5 DSG ratings",
    "human_avg": "mean of 2 TIFA ratings",
}

_OURS = frozenset({("plcc", "dsg_likert"), ("pairwise_accuracy", "human_avg")})
"""Pairs of a measure and a gold that no paper reports."""

_Estimate = Callable[[FloatArray, FloatArray], float]
_Resampled = Callable[[FloatArray, FloatArray, FloatArray, IntArray], FloatArray]
_CORRELATIONS: dict[str, tuple[_Estimate, _Resampled]] = {
    "spearman": (correlation.spearman, correlation.resampled_spearman),
    "krcc": (correlation.kendall, correlation.resampled_kendall),
    "pearson": (correlation.pearson, correlation.resampled_pearson),
}


@dataclass(frozen=True)
class _Images:
    """The images of one slice that one metric scored (n,), and how many it did not.

    `unit` is one unit of `scores` in units of the metric's own.
    """

    scores: FloatArray
    gold: FloatArray
    clusters: IntArray
    n_missing: int
    unit: float

    @classmethod
    def of(cls, scores: FloatArray, gold: FloatArray, clusters: IntArray, unit: float) -> _Images:
        scored = np.isfinite(scores)
        return cls(scores[scored], gold[scored], clusters[scored], int((~scored).sum()), unit)

    @property
    def n_clusters(self) -> int:
        return int(np.unique(self.clusters).size)

    @property
    def too_few(self) -> str:
        """Why nothing can be measured; empty where something can."""
        few = self.scores.size < MIN_IMAGES
        return f"fewer than {MIN_IMAGES} images with a score" if few else ""

    @property
    def constant(self) -> str:
        """Which side has no spread, so that nothing correlates; empty where both have."""
        if np.ptp(self.scores) == 0:
            return "the metric gives every image the same score"
        return "every image has the same rating" if np.ptp(self.gold) == 0 else ""

    @property
    def remarks(self) -> str:
        """What a reader must know about any value of this slice."""
        return f"images left out for want of a score: {self.n_missing}" if self.n_missing else ""


def measure(
    scores: ScoreTable,
    answers: Tifa160Answers,
    plan: ResamplingPlan,
    benchmark: str,
    revision: str,
) -> Measured:
    """All measures of every metric, for both golds.

    An image without a score is left out, as in the VQAScore evaluation. Intervals resample
    prompts with their images.

    Args:
        scores: must hold every pair id of the answers.
        answers: both sets of ratings.
        plan: resamples the prompts.
        benchmark: name for the rows.
        revision: revision for the rows.

    Returns:
        Per metric and gold: every measure for split `all` (variant `paper`, or `assay` where no
        paper reports the measure with that gold), and `spearman` for each source of prompts
        (`assay`).

    Raises:
        KeyError: an image has no row in `scores`, or a prompt is not in the plan.
    """
    builder = MeasuredBuilder(plan.n_resamples)
    overall = scores.oriented().loc[answers.images["pair_id"]]
    clusters = np.array([plan.index[prompt] for prompt in answers.images["prompt_id"]], np.intp)
    for metric in scores.metrics:
        values, unit = overall[metric].to_numpy(np.float64), scores.unit(metric)
        for facet in GOLDS:
            gold = answers.images[facet].to_numpy(np.float64)
            row = Row(benchmark, revision, metric, "", math.nan, split="all", facet=facet)
            everything = _Images.of(values, gold, clusters, unit)
            for name in MEASURES:
                variant = "assay" if (name, facet) in _OURS else "paper"
                _add(builder, replace(row, measure=name, variant=variant), everything, plan)
            for source, chosen in _sources(answers):
                part = _Images.of(values[chosen], gold[chosen], clusters[chosen], unit)
                of_source = replace(row, measure="spearman", skill=source, variant="assay")
                _add(builder, of_source, part, plan)
    return builder.build()


def _sources(answers: Tifa160Answers) -> Iterator[tuple[str, BoolArray]]:
    """Each source of prompts that has images, in the order of the benchmark."""
    column = answers.images["source"]
    for source in column.drop_duplicates():
        yield str(source), np.asarray(column == source, bool)


def _add(builder: MeasuredBuilder, row: Row, part: _Images, plan: ResamplingPlan) -> None:
    row = replace(
        row, n_items=part.scores.size, n_clusters=part.n_clusters, n_missing=part.n_missing
    )
    found = _value(row.measure, part, plan)
    row = replace(row, value=found.value, note=_joined(found.note, part.remarks))
    builder.add(row, found.resamples)


@dataclass(frozen=True)
class _Found:
    """A value, what must be known about it, and its resamples (B,), if it has any."""

    value: float
    note: str = ""
    resamples: FloatArray | None = None


def _value(measure_name: str, part: _Images, plan: ResamplingPlan) -> _Found:
    if part.too_few:
        return _Found(math.nan, part.too_few)
    if measure_name == "pairwise_accuracy":
        return _pairwise_accuracy(part, plan)
    if part.constant:
        return _Found(math.nan, part.constant)
    if measure_name == "plcc":
        return _plcc(part, plan)
    estimate, resampled = _CORRELATIONS[measure_name]
    resamples = resampled(part.scores, part.gold, plan.counts, part.clusters)
    return _Found(estimate(part.scores, part.gold), resamples=resamples)


def _pairwise_accuracy(part: _Images, plan: ResamplingPlan) -> _Found:
    """Defined for constant scores too: they call every pair tied."""
    best = pairwise.tie_calibrated(part.scores, part.gold)
    n_clusters = len(plan.clusters)
    forms = PairForms.of(part.scores, part.gold, part.clusters, n_clusters, best.threshold)
    note = _joined(f"tied up to a difference of {part.unit * best.threshold:.6g}", part.constant)
    return _Found(best.accuracy, note, forms.drawn(plan.counts).accuracy)


def _plcc(part: _Images, plan: ResamplingPlan) -> _Found:
    """No resamples where the grid does not hold the fitted curve."""
    fitted = logistic.plcc(part.scores, part.gold)
    if math.isnan(fitted.value):
        return _Found(fitted.value, fitted.note)
    # Row 0 draws every prompt once: the grid's value for the sample itself.
    draws = np.vstack([np.ones((1, len(plan.clusters))), plan.counts])
    resampled = logistic.resampled_plcc(part.scores, part.gold, draws, part.clusters)
    if abs(resampled[0] - fitted.value) > logistic.GRID_TOLERANCE:
        reason = "no interval: the fit stopped at a curve that is not the best one"
        return _Found(fitted.value, _joined(fitted.note, reason))
    return _Found(fitted.value, fitted.note, resampled[1:])


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
