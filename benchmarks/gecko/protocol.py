"""The Gecko protocol: agreement with four kinds of human annotation, skill by skill.

Point-wise: correlation over the images of one model, then averaged over the models (Gecko,
appendix F.1 of the later version). Pair-wise: the side-by-side preference between two models.
Model ordering: the relation of each pair of models. Word level: labels of single words.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from benchmarks.gecko.aligned import Aligned, align
from benchmarks.gecko.answers import GeckoAnswers
from benchmarks.gecko.measures import FACETS, MEASURES
from benchmarks.gecko.model_order import add_model_order
from benchmarks.gecko.pairwise import add_pairwise
from benchmarks.gecko.parts import Part, parts_of
from benchmarks.gecko.pointwise import Estimate, mean_of_templates, pointwise
from benchmarks.gecko.words import add_words, words_of
from benchmarks.rows import Measured, MeasuredBuilder, Row
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan

__all__ = ["FACETS", "MEASURES", "measure"]


def measure(
    scores: ScoreTable,
    answers: GeckoAnswers,
    plan: ResamplingPlan,
    benchmark: str,
    revision: str,
) -> Measured:
    """All Gecko measures of every metric in the table.

    Rows, for the parts of `parts_of`: `srcc` and `pearson` per template that was rated,
    `pairwise_accuracy` for SxS (variant `paper`). Except for sub-skills: `srcc` without facet
    (variant `assay`), the mean over templates. For each reliable set: `model_pairs_right`. For
    `all`, `s` and `r`: `word_accuracy` and `error_consistency` of metrics with word labels.

    Args:
        scores: must hold every pair id of the answers.
        answers: prompts with their skills, images, raw ratings.
        plan: resamples the prompts.
        benchmark: name for the rows.
        revision: revision for the rows.

    Raises:
        KeyError: an image has no row in `scores`, or a prompt is not in the plan.
        SubmitterError: `unknown_rating` or `rating_without_image`.
    """
    data = align(scores, answers, plan)
    labelled = {name: words_of(scores, name, answers) for name in scores.elements}
    builder = MeasuredBuilder(plan.n_resamples)
    row = Row(benchmark, revision, metric="", measure="", value=math.nan, variant="paper")
    for part in parts_of(answers):
        of_part = replace(row, split=part.split, skill=part.skill)
        _add_pointwise(builder, of_part, part, data)
        if data.comparisons.preference.any():
            accuracy = replace(of_part, measure="pairwise_accuracy", facet="SxS")
            add_pairwise(builder, accuracy, part, data)
        if part.orders_models:
            add_model_order(builder, replace(of_part, measure="model_pairs_right"), part, data)
        if part.has_words:
            for name, words in labelled.items():
                add_words(builder, replace(of_part, metric=name), part, words, data)
    return builder.build()


def _add_pointwise(builder: MeasuredBuilder, row: Row, part: Part, data: Aligned) -> None:
    estimates = {template: pointwise(data, part, template) for template in data.human}
    for template, found in estimates.items():
        for name, estimate in found.items():
            _add(builder, replace(row, measure=name, facet=template), estimate, data)
    if estimates and not part.is_sub_skill:
        summary = mean_of_templates({t: found["srcc"] for t, found in estimates.items()})
        _add(builder, replace(row, measure="srcc", variant="assay"), summary, data)


def _add(builder: MeasuredBuilder, row: Row, estimate: Estimate, data: Aligned) -> None:
    members = np.unique(data.prompts[estimate.rated])
    for column, metric in enumerate(data.metrics):
        used = estimate.used[:, column]
        value = float(estimate.values[0, column])
        filled = replace(
            row,
            metric=metric,
            value=value,
            n_items=int(used.sum()),
            n_clusters=np.unique(data.prompts[used]).size,
            n_missing=int(estimate.missing[:, column].sum()),
            note=estimate.note(column),
        )
        resamples = None if math.isnan(value) else estimate.values[1:, column]
        builder.add(filled, resamples, members=members)
