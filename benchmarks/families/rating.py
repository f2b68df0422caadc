"""Family of ratings: every image has a rating or several, and a metric should follow their mean."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.arrays import FloatArray
from benchmarks.families.benchmark import CardBenchmark, ItemAnswers
from benchmarks.families.items import Items
from benchmarks.pooled import PooledImages
from benchmarks.rows import Measured, MeasuredBuilder, Row
from benchmarks.schema import MeasureInfo, ScoreTable
from benchmarks.sources.folder import DataFolder
from benchmarks.statistics.resampling import ResamplingPlan

MEASURES: dict[str, MeasureInfo] = {
    "srcc": MeasureInfo.correlation(
        title="Spearman ρ",
        meaning="Spearman rank correlation between the metric and the mean rating over all images.",
        source="the usual figure of studies of image quality",
    ),
}


@dataclass(frozen=True)
class RatingAnswers(ItemAnswers):
    """What people said of each pair, by facet."""

    # facet to mean ratings, shape (pairs,), in the order of `items.pairs`; NaN where nobody rated
    means: Mapping[str, FloatArray]
    # facet to single ratings, shape (pairs, raters); NaN where a pair has fewer
    ratings: Mapping[str, FloatArray]


class RatingBenchmark(CardBenchmark):
    """Images with ratings, all in one pool or within prompts."""

    infos = MEASURES

    def labelled(self, folder: DataFolder, items: Items) -> RatingAnswers:
        """Mean ratings of the pairs."""
        means = {
            facet: items.rows[gold.mean].to_numpy(np.float64)
            for facet, gold in self.card.gold.items()
        }
        return RatingAnswers(
            items.pair_ids, items.clusters, items, means, {}, sources=folder.verified()
        )

    def gold_of_pairs(self, answers: Any) -> FloatArray:
        """Mean ratings on the facet of the headline."""
        facet = self.card.headline.facet or next(iter(answers.means))
        found: FloatArray = answers.means[facet]
        return found

    def measure(self, scores: ScoreTable, answers: Any, plan: ResamplingPlan) -> Measured:
        """All measures of every metric, for each facet."""
        builder = MeasuredBuilder(plan.n_resamples)
        pairs = answers.items.pairs
        clusters = plan.positions(pairs["prompt_id"])
        overall = scores.oriented().loc[list(answers.pair_ids)]
        row = Row(self.name, self.card.revision, "", "", math.nan)
        row = replace(row, variant=self.card.evaluation.variant)
        for metric in scores.metrics:
            for facet, gold in answers.means.items():
                pool = PooledImages.of(overall[metric].to_numpy(np.float64), gold, clusters, plan)
                for measure in self.card.measures:
                    named = replace(row, metric=metric, facet=facet, measure=measure)
                    found = pool.correlation(measure)
                    builder.add(
                        replace(pool.counted(named), value=found.value, note=found.note),
                        found.resamples,
                        members=pool.members,
                        pool=pool.sample,
                    )
        return builder.build()


FAMILY = RatingBenchmark
