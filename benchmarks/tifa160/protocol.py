"""The protocol of TIFA160: correlation and pairwise agreement with two sets of human ratings.

All images are pooled. Hu et al. 2023 (TIFA), Cho et al. 2024 (DSG), Lin et al. 2024 (VQAScore)
and Han et al. 2024 (EvalMuse-40K) report different pairs of a measure and a gold; every pair is
given here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks.arrays import BoolArray
from benchmarks.pooled import CORRELATIONS, Found, PooledImages
from benchmarks.rows import Measured, MeasuredBuilder, Row, notes
from benchmarks.schema import MeasureInfo, ScoreTable
from benchmarks.statistics import pairwise
from benchmarks.statistics.resampling import ResamplingPlan
from benchmarks.tifa160.answers import GOLDS, Tifa160Answers

MEASURES: dict[str, MeasureInfo] = {
    "srcc": MeasureInfo(
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
        paper reports the measure with that gold), and `srcc` for each source of prompts
        (`assay`).

    Raises:
        KeyError: an image has no row in `scores`, or a prompt is not in the plan.
    """
    builder = MeasuredBuilder(plan.n_resamples)
    overall = scores.oriented().loc[answers.images["pair_id"]]
    clusters = plan.positions(answers.images["prompt_id"])
    for metric in scores.metrics:
        values, unit = overall[metric].to_numpy(np.float64), scores.unit(metric)
        for facet in GOLDS:
            gold = answers.images[facet].to_numpy(np.float64)
            row = Row(benchmark, revision, metric, "", math.nan, split="all", facet=facet)
            everything = PooledImages.of(values, gold, clusters, plan)
            for name in MEASURES:
                variant = "assay" if (name, facet) in _OURS else "paper"
                _add(builder, replace(row, measure=name, variant=variant), everything, unit)
            for source, chosen in _sources(answers):
                part = PooledImages.of(values, gold, clusters, plan, chosen)
                of_source = replace(row, measure="srcc", skill=source, variant="assay")
                _add(builder, of_source, part, unit)
    return builder.build()


def _sources(answers: Tifa160Answers) -> Iterator[tuple[str, BoolArray]]:
    """Each source of prompts that has images, in the order of the benchmark."""
    column = answers.images["source"]
    for source in column.drop_duplicates():
        yield str(source), np.asarray(column == source, bool)


def _add(builder: MeasuredBuilder, row: Row, part: PooledImages, unit: float) -> None:
    found = _found(row.measure, part, unit)
    row = replace(part.counted(row), value=found.value, note=found.note)
    pool = part.sample if row.measure in CORRELATIONS else None
    builder.add(row, found.resamples, members=part.members, pool=pool)


def _found(measure_name: str, part: PooledImages, unit: float) -> Found:
    if measure_name == "pairwise_accuracy" and not part.too_few:
        return _pairwise_accuracy(part, unit)
    return part.correlation(measure_name)


def _pairwise_accuracy(part: PooledImages, unit: float) -> Found:
    """Defined for constant scores too: they call every pair tied."""
    best = pairwise.tie_calibrated(part.scores, part.ratings)
    note = f"tied up to a difference of {unit * best.threshold:.6g}"
    drawn = part.pair_forms(best.threshold).drawn(part.plan.counts)
    return Found(best.accuracy, notes(note, part.constant, part.remark), drawn.accuracy)
