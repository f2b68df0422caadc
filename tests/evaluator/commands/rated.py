"""A small benchmark and scores for it, for the tests of `compare`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from benchmarks.arrays import FloatArray
from benchmarks.pooled import PooledImages
from benchmarks.rows import Measured, MeasuredBuilder, Row
from benchmarks.schema import Answers, Benchmark, Card, MeasureInfo, ScoreTable, Selector
from benchmarks.statistics.resampling import ResamplingPlan, resampled_mean

PAIRS = tuple(f"p{n:02d}" for n in range(60))
CLUSTERS = tuple(f"c{n:02d}" for n in range(20))
OF_PAIR = np.repeat(np.arange(20), 3)
GOLD = np.random.default_rng(0).normal(0.0, 1.0, 60)


class Rated(Benchmark):
    """Twenty prompts with three images each; the first six make a skill too small to order.

    Its measures: the correlation with a rating (headline), the share of images whose score and
    rating are on one side of zero, and the mean distance, of which less is better.
    """

    card = Card(
        name="rated",
        title="Rated",
        family="rated",
        summary="Rated.",
        description="",
        revision="1",
        cluster="prompt",
        headline=Selector(measure="srcc", variant="paper"),
        measures={
            "srcc": MeasureInfo(title="Spearman", meaning="."),
            "side": MeasureInfo(title="Side", meaning="."),
            "distance": MeasureInfo(title="Distance", meaning=".", higher_is_better=False),
        },
        skills={"few": "Few prompts", "many": "Many prompts"},
    )

    def answers(self, data: Path | None) -> Answers:
        return Answers(pair_ids=PAIRS, clusters=CLUSTERS)

    def known_directions(self) -> Mapping[str, Literal[1, -1]]:
        return {}

    def measure(self, scores: ScoreTable, answers: Any, plan: ResamplingPlan) -> Measured:
        built = MeasuredBuilder(plan.n_resamples)
        for name in scores.metrics:
            values = scores.oriented()[name].to_numpy()
            for skill, inside in (
                (None, OF_PAIR >= 0),
                ("few", OF_PAIR < 6),
                ("many", OF_PAIR >= 6),
            ):
                self._slice(built, plan, Row("rated", "1", name, "srcc", math.nan, skill=skill),
                            values, inside)  # fmt: skip
        return built.build()

    @staticmethod
    def _slice(
        built: MeasuredBuilder, plan: ResamplingPlan, row: Row, values: FloatArray, inside: Any
    ) -> None:
        pool = PooledImages.of(values, GOLD, OF_PAIR, plan, inside)
        found = pool.correlation("srcc")
        srcc = replace(pool.counted(row), value=found.value, variant="paper", note=found.note)
        built.add(srcc, found.resamples, members=pool.members, pool=pool.sample)
        if row.skill is None:
            side = np.nanmean(((values > 0) == (GOLD > 0)).reshape(20, 3), axis=1)
            distance = np.nan_to_num(np.abs(values - GOLD)).reshape(20, 3).mean(axis=1)
            for measure, of in (("side", side), ("distance", distance)):
                of_measure = replace(srcc, measure=measure, variant=None, value=float(of.mean()),
                                     note="")  # fmt: skip
                built.add(of_measure, resampled_mean(of, plan.counts), CLUSTERS, of)


def noisy(noise: float, seed: int) -> FloatArray:
    return GOLD + noise * np.random.default_rng(seed).normal(0.0, 1.0, 60)


SCORES = {"good": noisy(0.3, 1), "fair": noisy(0.9, 2), "poor": noisy(4.0, 3)}


def scores_file(path: Path, name: str, values: object) -> None:
    """Scores of one metric, as a file."""
    pd.DataFrame({"pair_id": PAIRS, name: values}).to_csv(path, index=False)


def with_gaps(n: int, of: str) -> FloatArray:
    """The scores of a metric, of which the first n are not there."""
    return np.where(np.arange(60) < n, math.nan, SCORES[of])
