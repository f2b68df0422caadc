"""Figures of models on the prompts of a slice: means with ranks and tiers, and tests of two models.

The same for scores of a metric and for ratings of people.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray
from benchmarks.model_boards.estimates import LEVEL, Estimates, estimates, tiers_down
from benchmarks.model_boards.rated_models import SliceScores
from benchmarks.statistics.multiplicity import holm_of_pairs
from benchmarks.statistics.paired import PairedMany, TStatistics
from leaderboard.models.board_types import Mean, PairTest
from leaderboard.ranking.rank_ranges import MIN_CLUSTERS, rank_ranges


def ranked_means(
    scores: SliceScores, counts: FloatArray, able: BoolArray, tests: TStatistics
) -> tuple[Mean, ...]:
    """Mean of every model by one metric, or as people rated it; ranks among those that may rank."""
    found: Estimates = estimates(scores, counts)
    kept = np.where(able & (found.n_prompts >= MIN_CLUSTERS), found.means, np.nan)
    ranges = rank_ranges(kept, found.resamples)
    told = np.zeros((len(able), len(able)), bool)
    told[np.ix_(able, able)] = holm_of_pairs(tests.p) < LEVEL
    in_tiers = tiers_down(told, np.argsort(-kept, kind="stable")[: np.isfinite(kept).sum()])
    n_prompts = len(scores.sums)
    return tuple(
        Mean(
            value=_number(found.means[m]),
            ci_low=_number(found.ci_low[m]),
            ci_high=_number(found.ci_high[m]),
            n_prompts=int(found.n_prompts[m]),
            n_missing=n_prompts - int(found.n_prompts[m]),
            rank=range_.rank if range_ else None,
            rank_low=range_.low if range_ else None,
            rank_high=range_.high if range_ else None,
            tier=int(in_tiers[m]) or None,
        )
        for m, range_ in enumerate(ranges)
    )


def pair_test(
    many: PairedMany,
    pair: tuple[int, int],
    p_corrected: float,
    *,
    judge: str,
    skill: str | None,
    unit: float = 1.0,
) -> PairTest:
    """The tests of two models, as they stand among those of many."""
    a, b = pair
    return PairTest(
        judge=judge,
        skill=skill,
        n_prompts=int(many.n[a, b]),
        n_missing=int(many.n_missing[a, b]),
        difference=unit * float(many.difference[a, b]),
        ci_low=unit * float(many.difference_interval.low[a, b]),
        ci_high=unit * float(many.difference_interval.high[a, b]),
        t=float(many.t[a, b]),
        t_p=float(many.t_p[a, b]),
        t_p_holm=p_corrected,
        wilcoxon_w=float(many.wilcoxon_w[a, b]),
        wilcoxon_p=float(many.wilcoxon_p[a, b]),
        dominance=float(many.dominance[a, b]),
        dominance_back=float(many.dominance[b, a]),
    )


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
