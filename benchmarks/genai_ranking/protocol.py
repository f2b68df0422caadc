"""The ranking protocol: does the image with the highest score have the highest rating?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.genai_bench.agreement import Pool
from benchmarks.genai_bench.measures import AGREEMENT_MEASURES
from benchmarks.genai_ranking.answers import RankingAnswers
from benchmarks.genai_ranking.choices import VARIANTS, choose, random_choice
from benchmarks.rows import Measured, MeasuredBuilder, Row
from benchmarks.schema import MeasureInfo, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan

GROUP_SIZES = {"best_of_9": 9, "best_of_3": 3}
FACETS: dict[str, str] = {"best_of_9": "Best of 9", "best_of_3": "Best of 3"}
MEASURES: dict[str, MeasureInfo] = {
    "top1_agreement": MeasureInfo(
        title="Top-1 agreement",
        meaning="How often the image with the highest score is one of those with the highest mean "
        "rating: among the nine images of a prompt, or among images 1-3, 4-6 and 7-9. Of images "
        "with equal scores, variant paper takes the first one, and variant assay the average "
        "over all of them.",
        low=0.0,
        high=1.0,
        source="GenAI-Bench, ranking images; the authors' evaluation script",
    ),
    "rating_of_best": MeasureInfo(
        title="Rating of the choice",
        meaning="Mean rating, from 1 to 5, of the image with the highest score; ties as for top-1 "
        "agreement.",
        low=1.0,
        high=5.0,
        source="GenAI-Bench, ranking images; the authors' evaluation script",
    ),
    **AGREEMENT_MEASURES,
}


def measure(
    scores: ScoreTable,
    answers: RankingAnswers,
    plan: ResamplingPlan,
    benchmark: str,
    revision: str,
) -> Measured:
    """Every metric in the table, for the images of each model apart (the splits).

    Rows: `top1_agreement` and `rating_of_best` by facet (`best_of_9`, `best_of_3`) and variant
    (`paper`, `assay`), overall and per tag; overall also what `genai_bench` reports.

    Args:
        scores: must hold every pair id of the answers.
        answers: ratings of images and tags of prompts.
        plan: resamples the prompts.
        benchmark: name for the rows.
        revision: revision for the rows.

    Raises:
        KeyError: an image has no row in `scores`, or a prompt is not in the plan.
    """
    builder = MeasuredBuilder(plan.n_resamples)
    overall = scores.oriented().loc[answers.images["pair_id"]]
    clusters = plan.positions(answers.images["prompt_id"])
    for metric in scores.metrics:
        values = overall[metric].to_numpy(np.float64)
        for model in answers.models:
            row = Row(benchmark, revision, metric, "", math.nan, split=model, variant="paper")
            rows = answers.rows_of(model)
            _add_choices(builder, row, values[rows], answers, plan)
            images = rows.ravel()
            unit = scores.unit(metric)
            pool = Pool(values[images], answers.labels[images], clusters[images], plan, unit)
            pool.add_to(builder, row)
    return builder.build()


def chance(answers: RankingAnswers) -> dict[tuple[str, str], dict[str, float]]:
    """What a random choice reaches, by model and facet; see `choices.random_choice`."""
    return {
        (model, facet): random_choice(answers.labels[answers.rows_of(model)], size)
        for model in answers.models
        for facet, size in GROUP_SIZES.items()
    }


def _add_choices(
    builder: MeasuredBuilder,
    row: Row,
    scores: FloatArray,
    answers: RankingAnswers,
    plan: ResamplingPlan,
) -> None:
    """Rows of one model's images; scores has shape (P, 9)."""
    labels = answers.labels[answers.rows_of(str(row.split))]
    prompts = np.array(list(dict.fromkeys(answers.images["prompt_id"])), object)
    in_plan = plan.positions(prompts)
    counts = plan.counts[:, in_plan]
    missing = np.isnan(scores).sum(axis=1)
    for facet, size in GROUP_SIZES.items():
        for variant in VARIANTS:
            found = choose(scores, labels, size, variant)
            sums = {"top1_agreement": found.agreed, "rating_of_best": found.rating}
            for skill, inside in _selections(answers, prompts):
                weights = np.where(inside, found.groups, 0.0)
                described = replace(
                    row,
                    skill=skill,
                    facet=facet,
                    variant=variant,
                    n_items=int(weights.sum()),
                    n_clusters=int((weights > 0).sum()),
                    n_missing=int(missing[inside].sum()),
                )
                for name, total in sums.items():
                    _add_mean(
                        builder,
                        replace(described, measure=name),
                        np.where(inside, total, 0.0),
                        weights,
                        counts,
                        members=in_plan[inside],
                    )


def _add_mean(
    builder: MeasuredBuilder,
    row: Row,
    total: FloatArray,
    weights: FloatArray,
    counts: FloatArray,
    *,
    members: IntArray,
) -> None:
    """Mean over groups, from sums and numbers of groups per prompt, shape (P,) each."""
    if not weights.any():
        builder.add(replace(row, note="no group of images has a score"))
        return
    note = f"images without a score, never chosen: {row.n_missing}" if row.n_missing else ""
    with np.errstate(invalid="ignore", divide="ignore"):
        resamples = (counts @ total) / (counts @ weights)
    row = replace(row, value=float(total.sum() / weights.sum()), note=note)
    builder.add(row, resamples, members=members)


def _selections(
    answers: RankingAnswers, prompts: NDArray[np.object_]
) -> Iterator[tuple[str | None, NDArray[np.bool_]]]:
    """All prompts, then those of each tag that has any."""
    yield None, np.ones(prompts.size, bool)
    for skill, members in answers.skills.items():
        if members:
            yield skill, np.array([prompt in members for prompt in prompts])
