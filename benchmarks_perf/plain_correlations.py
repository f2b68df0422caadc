"""Correlations and agreement written as their definitions read: what the fast forms must equal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import stats

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.pairwise import Calibrated


@dataclass
class Tally:
    """Pairs of one group by how the metric and people order them."""

    concordant: int = 0
    discordant: int = 0
    tied_by_people: int = 0
    tied_by_metric: int = 0
    tied_by_both: int = 0

    def count(self, kind: str, change: int) -> None:
        """Add pairs of a kind, or take them away."""
        setattr(self, kind, getattr(self, kind) + change)

    @property
    def accuracy(self) -> float:
        """Share of right pairs."""
        wrong = self.discordant + self.tied_by_people + self.tied_by_metric
        right = self.concordant + self.tied_by_both
        return right / (right + wrong)


@dataclass
class Pair:
    """One pair of items: how far the metric sets them apart, what it is, and what once tied."""

    group: int
    distance: float
    kind: str
    kind_if_tied: str


def pairs_of(scores: FloatArray, labels: FloatArray, groups: IntArray) -> Iterator[Pair]:
    """Every pair of items of a group, looked at one by one."""
    for group in range(int(groups.max()) + 1):
        members = np.flatnonzero(groups == group)
        own_scores, own_labels = scores[members].tolist(), labels[members].tolist()
        for i, j in combinations(range(members.size), 2):
            by_metric, by_people = own_scores[i] - own_scores[j], own_labels[i] - own_labels[j]
            if by_people == 0:
                kind = "tied_by_both" if by_metric == 0 else "tied_by_people"
            elif by_metric == 0:
                kind = "tied_by_metric"
            else:
                kind = "concordant" if (by_metric > 0) == (by_people > 0) else "discordant"
            if_tied = "tied_by_both" if by_people == 0 else "tied_by_metric"
            yield Pair(group, abs(by_metric), kind, if_tied)


def plain_grouped_calibration(
    scores: FloatArray, labels: FloatArray, groups: IntArray
) -> Calibrated:
    """Tie calibration as Deutsch et al. (2023) describe it, pair by pair.

    All pairs are sorted by the metric's distance; one after the other becomes a tie, and the mean
    accuracy over the groups is kept up to date. The best threshold is looked up at the end.
    """
    pairs = list(pairs_of(scores, labels, groups))
    tallies = {pair.group: Tally() for pair in pairs}
    for pair in pairs:
        tallies[pair.group].count(pair.kind, 1)
    total = sum(tally.accuracy for tally in tallies.values())
    thresholds, accuracies = [0.0], [total / len(tallies)]
    pairs.sort(key=lambda pair: pair.distance)
    for pair in pairs:
        tally = tallies[pair.group]
        total -= tally.accuracy
        tally.count(pair.kind, -1)
        tally.count(pair.kind_if_tied, 1)
        total += tally.accuracy
        if thresholds[-1] != pair.distance:
            thresholds.append(pair.distance)
            accuracies.append(0.0)
        accuracies[-1] = total / len(tallies)
    best = int(np.argmax(accuracies))
    return Calibrated(accuracies[best], thresholds[best])


def listed_grouped_calibration(
    scores: FloatArray, labels: FloatArray, groups: IntArray
) -> Calibrated:
    """The same with numpy: all pairs of all groups in one list, sorted by distance.

    For groups of one size, in which every pair weighs the same; items lie by group.
    """
    size = int(np.bincount(groups)[0])
    i, j = np.triu_indices(size, 1)
    x, y = scores.reshape(-1, size), labels.reshape(-1, size)
    difference = (x[:, i] - x[:, j]).ravel()
    order = np.sign(y[:, i] - y[:, j]).ravel()
    concordant = np.sign(difference) * order > 0
    gain = (order == 0).astype(np.int64) - concordant
    distance = np.abs(difference)
    by_distance = np.argsort(distance, kind="stable")
    distance = np.append(0.0, distance[by_distance])
    right = np.append(concordant.sum(), concordant.sum() + np.cumsum(gain[by_distance]))
    last = np.append(distance[1:] != distance[:-1], True)
    best = int(np.argmax(np.where(last, right, -1)))
    return Calibrated(float(right[best] / difference.size), float(distance[best]))


def plain_bootstrap_spearman(
    x: FloatArray, y: FloatArray, items: list[IntArray], draws: list[IntArray]
) -> FloatArray:
    """Rho of each resample: the items of the drawn clusters put together and ranked again."""
    return np.array(
        [
            stats.spearmanr(x[drawn], y[drawn]).statistic
            for drawn in (np.concatenate([items[c] for c in clusters]) for clusters in draws)
        ]
    )


def plain_bootstrap_grouped_kendall(
    x: FloatArray, y: FloatArray, items: list[IntArray], draws: list[IntArray]
) -> FloatArray:
    """Mean tau-b of the drawn groups in each resample, computed anew for every drawn group."""
    return np.array(
        [
            np.nanmean([stats.kendalltau(x[items[c]], y[items[c]]).statistic for c in clusters])
            for clusters in draws
        ]
    )
