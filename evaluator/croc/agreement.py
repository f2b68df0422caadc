"""Agreement of the raters of a review: Krippendorff's alpha, in all, by property and without each rater."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.intervals import percentile
from benchmarks.statistics.raters import krippendorff_alpha, resampled_alpha
from benchmarks.statistics.resampling import DEFAULT_RESAMPLES, ResamplingPlan

Votes = Mapping[tuple[str, str], Mapping[str, bool]]
"""Pair and path of an image to what each rater said: whether it stays."""


@dataclass(frozen=True)
class Alpha:
    """Krippendorff's nominal alpha; NaN where it is undefined."""

    value: float
    low: float  # 95 % percentile interval over resampled prompt pairs
    high: float
    units: int  # images that two raters or more decided
    clusters: int  # prompt pairs of these images


@dataclass(frozen=True)
class RaterAgreement:
    """A rater beside the others."""

    rater: str
    images: int  # decided
    kept: int
    compared: int  # images on which the others have a majority
    with_majority: int  # of them those decided as that majority did
    alpha_without: float  # alpha of the others; NaN where there is none


@dataclass(frozen=True)
class Agreement:
    """What several raters agree on."""

    overall: Alpha
    by_property: Mapping[str, Alpha]  # by category
    raters: tuple[RaterAgreement, ...]


def agreement_of(
    votes: Votes, category_of: Mapping[str, str], n_resamples: int = DEFAULT_RESAMPLES
) -> Agreement:
    """Agreement over decided images; `category_of`: key of a pair to its category, of all pairs."""
    raters = sorted({rater for said in votes.values() for rater in said})
    table, pairs = vote_table(votes, raters)
    categories = np.array([category_of[pair] for pair in pairs], object)
    return Agreement(
        alpha_of(table, pairs, n_resamples),
        {
            category: alpha_of(
                table[categories == category],
                [pair for pair in pairs if category_of[pair] == category],
                n_resamples,
            )
            for category in dict.fromkeys(category_of.values())
        },
        tuple(_beside_others(table, raters, column) for column in range(len(raters))),
    )


def vote_table(votes: Votes, raters: Sequence[str]) -> tuple[FloatArray, list[str]]:
    """1 or 0 of each image and rater, NaN without a decision; and the pair of each image."""
    table = np.full((len(votes), len(raters)), np.nan)
    for row, said in enumerate(votes.values()):
        for column, rater in enumerate(raters):
            if rater in said:
                table[row, column] = said[rater]
    return table, [pair for pair, _ in votes]


def alpha_of(ratings: FloatArray, clusters: Sequence[str], n_resamples: int) -> Alpha:
    """Alpha with its interval: clusters, each with all its units, are drawn again and again."""
    rated = np.isfinite(ratings).sum(axis=1) >= 2
    used = [name for name, is_used in zip(clusters, rated, strict=True) if is_used]
    plan = ResamplingPlan(tuple(dict.fromkeys(used)), 0, n_resamples)
    index: IntArray = plan.positions(used)
    value = krippendorff_alpha(ratings[rated], "nominal")
    low = high = math.nan
    if math.isfinite(value) and len(plan.clusters) > 1:
        drawn = percentile(resampled_alpha(ratings[rated], index, plan.counts)[None, :])
        low, high = float(drawn.low[0]), float(drawn.high[0])
    return Alpha(value, low, high, int(rated.sum()), len(plan.clusters))


def _beside_others(table: FloatArray, raters: Sequence[str], column: int) -> RaterAgreement:
    own, others = table[:, column], np.delete(table, column, axis=1)
    decided = np.isfinite(own)
    for_it, against = (others == 1).sum(axis=1), (others == 0).sum(axis=1)
    compared = decided & (for_it != against)
    same = (own == 1) == (for_it > against)
    return RaterAgreement(
        raters[column],
        int(decided.sum()),
        int((own == 1).sum()),
        int(compared.sum()),
        int((same & compared).sum()),
        krippendorff_alpha(others, "nominal") if others.shape[1] > 1 else math.nan,
    )
