"""The EvalMuse-40K protocol: agreement with ratings of whole images and of prompt elements.

Correlations pool all images (EvalMuse-40K, evaluation section); element accuracy pools all
(image, element) pairs and chooses its threshold on the same data, as the paper does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.evalmuse.answers import EvalMuseAnswers
from benchmarks.rows import Measured, MeasuredBuilder, Row
from benchmarks.schema import MeasureInfo, ScoreTable
from benchmarks.statistics import correlation, logistic, thresholds
from benchmarks.statistics.resampling import ResamplingPlan

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MIN_IMAGES = 3
"""Fewer images than this make no correlation."""
UNREPORTED_SKILL = "other"
"""Element type that the paper counts in the overall accuracy only."""

MEASURES: dict[str, MeasureInfo] = {
    "srcc": MeasureInfo(
        title="SRCC",
        meaning="Spearman rank correlation between the metric and the mean human rating over all "
        "images. For a skill (a summary of ours): over the images whose prompt has an element of "
        "that skill.",
        low=-1.0,
        high=1.0,
        chance=0.0,
        source="EvalMuse-40K, overall alignment evaluation",
    ),
    "krcc": MeasureInfo(
        title="KRCC",
        meaning="Kendall's tau-b between the metric and the mean human rating over all images.",
        low=-1.0,
        high=1.0,
        chance=0.0,
        source="EvalMuse-40K, overall alignment evaluation",
    ),
    "plcc": MeasureInfo(
        title="PLCC",
        meaning="Pearson correlation between the mean human rating and the metric after a "
        "four-parameter logistic is fitted from scores to ratings. The curve may fall, so a "
        "metric that runs backwards also gets a positive value. The interval takes the best "
        "curve of a fixed grid in each resample instead of a new fit.",
        low=-1.0,
        high=1.0,
        source="EvalMuse-40K, overall alignment evaluation; curve of the VQEG convention",
    ),
    "pearson": MeasureInfo(
        title="Pearson r",
        meaning="Plain Pearson correlation between the metric and the mean human rating.",
        low=-1.0,
        high=1.0,
        chance=0.0,
        source="beside PLCC, which fits a curve first",
    ),
    "element_accuracy": MeasureInfo(
        title="Element accuracy",
        meaning="Share of (image, element) pairs for which the element score, cut at the "
        "threshold that is best over all elements (steps of 0.01, chosen on these data), says the "
        "same as at least half of the annotators. A missing element score predicts absence.",
        low=0.0,
        high=1.0,
        source="EvalMuse-40K, fine-grained evaluation, Table 6",
    ),
}

FACETS: dict[str, str] = {}

_RANK_AND_LINEAR = {
    "srcc": (correlation.spearman, correlation.resampled_spearman),
    "krcc": (correlation.kendall, correlation.resampled_kendall),
    "pearson": (correlation.pearson, correlation.resampled_pearson),
}


@dataclass(frozen=True)
class _Images:
    """Images of one slice for one metric: those with a score, and how many have none."""

    scores: FloatArray
    labels: FloatArray
    clusters: IntArray
    n_missing: int

    @classmethod
    def of(cls, scores: FloatArray, labels: FloatArray, clusters: IntArray) -> _Images:
        scored = np.isfinite(scores)
        return cls(scores[scored], labels[scored], clusters[scored], int((~scored).sum()))

    def fill(self, row: Row) -> Row:
        return replace(
            row,
            n_items=self.scores.size,
            n_clusters=np.unique(self.clusters).size,
            n_missing=self.n_missing,
        )

    @property
    def missing_note(self) -> str:
        return f"images left out for want of a score: {self.n_missing}" if self.n_missing else ""

    @property
    def undefined_note(self) -> str:
        """Why no correlation exists; empty where one does."""
        if self.scores.size < MIN_IMAGES:
            return f"fewer than {MIN_IMAGES} images with a score"
        if np.ptp(self.scores) == 0:
            return "the metric gives every image the same score"
        return "every image has the same label" if np.ptp(self.labels) == 0 else ""


def measure(
    scores: ScoreTable,
    answers: EvalMuseAnswers,
    plan: ResamplingPlan,
    benchmark: str,
    revision: str,
) -> Measured:
    """All EvalMuse measures of every metric in the table.

    Rows: `srcc`, `krcc`, `plcc`, `pearson` and `element_accuracy` for the splits `all`, `real`
    and `synth` that have images (variant `paper`); `element_accuracy` per skill (`paper`, split
    `all`) and `srcc` per skill (`assay`, split `all`).

    Args:
        scores: must hold every pair id of the answers.
        answers: mean ratings of images and of their elements.
        plan: resamples the prompts.
        benchmark: name for the rows.
        revision: revision for the rows.

    Raises:
        KeyError: an image has no row in `scores`, an element no image, or a prompt is not in
            the plan.
    """
    builder = MeasuredBuilder(plan.n_resamples)
    overall = scores.oriented().loc[answers.images["pair_id"]]
    for metric in scores.metrics:
        row = Row(benchmark, revision, metric, measure="", value=math.nan, variant="paper")
        values = overall[metric].to_numpy(np.float64)
        _add_correlations(builder, row, values, answers, plan)
        if metric in scores.elements:
            _add_element_accuracy(builder, row, scores.elements[metric], answers, plan)
        else:
            note = "gives no element scores"
            builder.add(replace(row, measure="element_accuracy", split="all", note=note))
    return builder.build()


def _add_correlations(
    builder: MeasuredBuilder,
    row: Row,
    values: FloatArray,
    answers: EvalMuseAnswers,
    plan: ResamplingPlan,
) -> None:
    images = answers.images
    labels = images["label"].to_numpy(np.float64)
    clusters = _cluster_index(images["prompt_id"], plan)
    for split, chosen in _splits(images["split"]):
        part = _Images.of(values[chosen], labels[chosen], clusters[chosen])
        in_split = replace(row, split=split)
        for name in ("srcc", "krcc"):
            _add_plain(builder, replace(in_split, measure=name), part, plan)
        _add_plcc(builder, replace(in_split, measure="plcc"), part, plan)
        _add_plain(builder, replace(in_split, measure="pearson"), part, plan)
    for skill, pair_ids in _reported_skills(answers.elements):
        chosen = images["pair_id"].isin(pair_ids["pair_id"]).to_numpy()
        part = _Images.of(values[chosen], labels[chosen], clusters[chosen])
        of_skill = replace(row, measure="srcc", split="all", skill=skill, variant="assay")
        _add_plain(builder, of_skill, part, plan)


def _add_plain(builder: MeasuredBuilder, row: Row, part: _Images, plan: ResamplingPlan) -> None:
    """SRCC, KRCC or Pearson of one slice."""
    row = part.fill(row)
    if part.undefined_note:
        builder.add(replace(row, note=_joined(part.undefined_note, part.missing_note)))
        return
    estimate, resampled = _RANK_AND_LINEAR[row.measure]
    row = replace(row, value=estimate(part.scores, part.labels), note=part.missing_note)
    builder.add(row, resampled(part.scores, part.labels, plan.counts, part.clusters))


def _add_plcc(builder: MeasuredBuilder, row: Row, part: _Images, plan: ResamplingPlan) -> None:
    row = part.fill(row)
    if part.undefined_note:
        builder.add(replace(row, note=_joined(part.undefined_note, part.missing_note)))
        return
    fitted = logistic.plcc(part.scores, part.labels)
    row = replace(row, value=fitted.value, note=_joined(fitted.note, part.missing_note))
    if math.isnan(fitted.value):
        builder.add(row)
        return
    # Row 0 draws every prompt once: the grid's value for the sample itself.
    draws = np.vstack([np.ones((1, len(plan.clusters))), plan.counts])
    resampled = logistic.resampled_plcc(part.scores, part.labels, draws, part.clusters)
    if abs(resampled[0] - fitted.value) > logistic.GRID_TOLERANCE:
        reason = "no interval: the fit stopped at a curve that is not the best one"
        builder.add(replace(row, note=_joined(row.note, reason)))
        return
    builder.add(row, resampled[1:])


def _add_element_accuracy(
    builder: MeasuredBuilder,
    row: Row,
    element_scores: pd.DataFrame,
    answers: EvalMuseAnswers,
    plan: ResamplingPlan,
) -> None:
    """Accuracy at the threshold that is best over all elements, searched anew in resamples."""
    row = replace(row, measure="element_accuracy", split="all")
    elements = _joined_elements(element_scores, answers)
    if elements.empty:
        builder.add(replace(row, note="the benchmark has no labelled elements"))
        return
    try:
        grid = thresholds.threshold_grid(elements["score"])
    except ValueError as error:
        builder.add(replace(row, n_items=len(elements), note=f"no threshold: {error}"))
        return
    everything = _Elements.of(elements, grid, plan)
    best = int(thresholds.best_index(everything.correct.sum(axis=0)))
    best_of_resample = thresholds.best_index(plan.counts @ everything.correct)
    for split, chosen in _splits(elements["split"]):
        part = _Elements.of(elements[chosen], grid, plan)
        part.add_to(builder, replace(row, split=split), best, best_of_resample, plan)
    for skill, members in _reported_skills(elements):
        part = _Elements.of(members, grid, plan)
        part.add_to(builder, replace(row, skill=skill), best, best_of_resample, plan)


@dataclass(frozen=True)
class _Elements:
    """Elements of one slice: right predictions (C, K) per prompt and threshold, and sizes (C,)."""

    grid: FloatArray
    correct: FloatArray
    sizes: FloatArray
    n_missing: int

    @classmethod
    def of(cls, elements: pd.DataFrame, grid: FloatArray, plan: ResamplingPlan) -> _Elements:
        clusters = _cluster_index(elements["prompt_id"], plan)
        n_clusters = len(plan.clusters)
        scores = elements["score"].to_numpy(np.float64)
        positive = elements["label"].to_numpy(np.float64) >= 0.5
        return cls(
            grid,
            thresholds.correct_by_cluster(scores, positive, clusters, n_clusters, grid),
            np.bincount(clusters, minlength=n_clusters).astype(np.float64),
            int(np.isnan(scores).sum()),
        )

    def add_to(
        self,
        builder: MeasuredBuilder,
        row: Row,
        best: int,
        best_of_resample: IntArray,
        plan: ResamplingPlan,
    ) -> None:
        note = f"threshold {self.grid[best]:.2f}"
        if self.n_missing:
            note = _joined(note, f"missing element scores, which predict absence: {self.n_missing}")
        at_best = np.take_along_axis(plan.counts @ self.correct, best_of_resample[:, None], axis=1)
        with np.errstate(invalid="ignore"):
            resamples = at_best[:, 0] / (plan.counts @ self.sizes)
        row = replace(
            row,
            value=float(self.correct[:, best].sum() / self.sizes.sum()),
            n_items=int(self.sizes.sum()),
            n_clusters=int((self.sizes > 0).sum()),
            n_missing=self.n_missing,
            note=note,
        )
        builder.add(row, resamples)


def _joined_elements(element_scores: pd.DataFrame, answers: EvalMuseAnswers) -> pd.DataFrame:
    """Labelled elements with `score` (NaN where the metric gives none), `prompt_id`, `split`."""
    keys = ["pair_id", "element_id"]
    scored = answers.elements.merge(
        element_scores[[*keys, "score"]], on=keys, how="left", validate="one_to_one"
    )
    images = answers.images.set_index("pair_id").loc[scored["pair_id"]]
    return scored.assign(prompt_id=images["prompt_id"].to_numpy(), split=images["split"].to_numpy())


def _splits(column: pd.Series) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """`all`, then each split that has members."""
    values = column.to_numpy(object)
    yield "all", np.ones(values.size, bool)
    for split in sorted(set(values)):
        yield str(split), np.asarray(values == split, bool)


def _reported_skills(elements: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    for skill, members in elements.groupby("skill", sort=True):
        if skill != UNREPORTED_SKILL:
            yield str(skill), members


def _cluster_index(prompt_ids: pd.Series, plan: ResamplingPlan) -> IntArray:
    return np.array([plan.index[prompt] for prompt in prompt_ids], np.intp)


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
