"""Cuts of scores into yes and no, at thresholds that no labels under evaluation helped to find."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.families.card import Search
from benchmarks.statistics.detection import AGREEMENTS
from benchmarks.statistics.resampling import ResamplingPlan
from benchmarks.statistics.thresholds import best_index, deal_folds, reaching_by_cluster

FOLDS = 5
"""Parts of the prompts; each is judged by a threshold found on the others."""
STEP = 0.01
"""Step between thresholds that are tried, as a share of the scores, where the card names none."""

Counts = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Hits, said and true, and all; see `statistics.detection`."""


@dataclass(frozen=True)
class Scored:
    """Items with a label and a score of one metric, n of them."""

    scores: FloatArray  # shape (n,), higher is better, may be infinite, not NaN
    positive: BoolArray  # shape (n,)
    clusters: IntArray  # shape (n,), position of each item's prompt in the plan

    def chosen(self, which: BoolArray) -> Scored:
        """Some of them."""
        return Scored(self.scores[which], self.positive[which], self.clusters[which])


@dataclass(frozen=True)
class Cut:
    """A rule for thresholds, applied to one metric.

    Each measure has thresholds of its own, the ones that are best for it; the smallest on ties. They
    are found anew in each resample. Those that are tried are quantiles of the scores, so that no
    measure depends on their unit.
    """

    items: Scored  # those under evaluation
    searched: Scored  # those on which thresholds are found
    grid: FloatArray  # shape (K,), thresholds that are tried, ascending; one where it is given
    folds: IntArray  # shape (C,), fold of each prompt of the plan; all 0 where nothing is held out
    plan: ResamplingPlan

    @classmethod
    def of(
        cls,
        items: Scored,
        searching: BoolArray,
        rule: float | Search | str,
        plan: ResamplingPlan,
    ) -> Cut:
        """The cut by a card's rule.

        `items`: all that have a score; `searching` (n,): those of the split on which the card searches,
        which are not evaluated; `rule`: a threshold, a `Search`, or `held_out`.
        """
        evaluated = items.chosen(~searching)
        folds = np.zeros(len(plan.clusters), np.intp)
        if isinstance(rule, float | int):
            return cls(evaluated, evaluated, np.array([float(rule)]), folds, plan)
        if isinstance(rule, Search):
            searched = items.chosen(searching)
            return cls(evaluated, searched, _quantiles(searched.scores, rule.search), folds, plan)
        used = np.unique(evaluated.clusters)
        names = [plan.clusters[cluster] for cluster in used]
        folds[used] = deal_folds(names, max(1, min(FOLDS, used.size)))
        return cls(evaluated, evaluated, _quantiles(evaluated.scores, STEP), folds, plan)

    @cached_property
    def _best(self) -> dict[str, IntArray]:
        """Measure to the threshold of each fold in the sample and each resample, shape (1 + B, F).

        -1 where a fold has no others to find it on.
        """
        n_folds = int(self.folds.max(initial=0)) + 1
        if self.grid.size == 1:
            chosen = np.zeros((len(self.plan.draws), 1), np.intp)
            return dict.fromkeys(AGREEMENTS, chosen)
        tables = self._tables(self.searched, np.arange(len(self.plan.clusters)))
        held_out = self.searched is self.items
        totals = [self.plan.draws @ table for table in tables]
        best = {name: np.empty((len(self.plan.draws), n_folds), np.intp) for name in AGREEMENTS}
        for fold in range(n_folds):
            own = self.folds == fold
            counts = totals
            if held_out:
                drawn = self.plan.draws[:, own]
                counts = [
                    total - drawn @ table[own] for total, table in zip(totals, tables, strict=True)
                ]
            hits, said, true, n = counts
            for name, formula in AGREEMENTS.items():
                reached = formula(hits, said, true[:, None], n[:, None])
                best[name][:, fold] = best_index(np.nan_to_num(reached, nan=-2.0))
                best[name][n == 0, fold] = -1
        return best

    def values(self, measure: str, members: BoolArray) -> FloatArray:
        """A measure of some of the items in the sample and in each resample, shape (1 + B,).

        `members`: of `items`. NaN where it is undefined, or where there is nothing to find a threshold on.
        """
        used = np.unique(self.items.clusters[members])
        drawn = self.plan.draws[:, used]
        tables = self._tables(self.items.chosen(members), used)
        hits, said = np.zeros((2, len(drawn)))
        lacking = np.zeros(len(drawn), bool)
        for fold, chosen in enumerate(self._best[measure].T):
            own = self.folds[used] == fold
            of_fold = drawn[:, own]
            # Few thresholds are ever the best, so all resamples are summed at each of them.
            places, place = np.unique(chosen, return_inverse=True)
            at = np.arange(len(drawn)), place
            hits += (of_fold @ tables[0][own][:, places])[at]
            said += (of_fold @ tables[1][own][:, places])[at]
            lacking |= (chosen < 0) & (of_fold.sum(axis=1) > 0)
        true, n = drawn @ tables[2], drawn @ tables[3]
        return np.where(lacking, np.nan, AGREEMENTS[measure](hits, said, true, n))

    def thresholds(self, measure: str) -> tuple[float, float] | None:
        """Lowest and highest threshold in the sample; None where none could be found."""
        found = self._best[measure][0]
        if (found < 0).any() or not self.grid.size:
            return None
        used = self.grid[found]
        return float(used.min()), float(used.max())

    def _tables(self, items: Scored, used: IntArray) -> Counts:
        """Counts of the prompts `used`: hits and said, shape (c, K), true and all, shape (c,)."""
        place = np.searchsorted(used, items.clusters)
        true = items.positive
        n = used.size
        return (
            reaching_by_cluster(items.scores[true], place[true], n, self.grid),
            reaching_by_cluster(items.scores, place, n, self.grid),
            np.bincount(place, true, n).astype(np.float64),
            np.bincount(place, minlength=n).astype(np.float64),
        )


def _quantiles(scores: FloatArray, step: float) -> FloatArray:
    """Distinct quantiles of the finite scores, from the lowest to the highest; two at least."""
    finite = scores[np.isfinite(scores)]
    if not finite.size:
        return np.array([0.0, 1.0])
    places = np.linspace(0.0, 1.0, max(2, round(1.0 / step) + 1))
    found: FloatArray = np.unique(np.quantile(finite, places, method="higher"))
    return found if found.size > 1 else np.array([found[0], np.nextafter(found[0], np.inf)])
