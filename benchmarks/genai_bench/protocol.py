"""The GenAI-Bench protocol: all images in one pool, against the mean of three ratings."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from benchmarks.genai_bench.agreement import Pool
from benchmarks.genai_bench.answers import GenAiAnswers
from benchmarks.rows import Measured, MeasuredBuilder, Row
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan


def measure(
    scores: ScoreTable,
    answers: GenAiAnswers,
    plan: ResamplingPlan,
    benchmark: str,
    revision: str,
) -> Measured:
    """Agreement of every metric in the table with the mean ratings.

    Rows, overall and per tag: `pairwise_accuracy` (variants `paper`, `no_calibration`,
    `ignore_tie`), `krcc`, `pearson` and `srcc` (`paper`). Where ratings lie outside 1..5, the
    overall rows come again without these ratings (`cleaned`).

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
    clusters = plan.positions(answers.images["prompt_id"])
    overall = scores.oriented().loc[answers.images["pair_id"]]
    for metric in scores.metrics:
        values = overall[metric].to_numpy(np.float64)
        row = Row(benchmark, revision, metric, measure="", value=math.nan, variant="paper")
        pool = Pool(values, answers.labels, clusters, plan, scores.unit(metric))
        pool.add_to(builder, row)
        for skill, prompts in answers.skills.items():
            chosen = np.array([prompt in prompts for prompt in plan.clusters])
            pool.add_to(builder, replace(row, skill=skill), chosen)
        if answers.n_outside:
            cleaned = replace(pool, labels=answers.cleaned_labels)
            cleaned.add_to(builder, replace(row, variant="cleaned"))
    return builder.build()
