"""The kinds of measures that are simulated, each of both metrics in every draw of clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from scipy import stats

from benchmarks.arrays import FloatArray
from benchmarks.statistics import correlation, thresholds
from benchmarks.statistics.calibration.designs import Sample
from benchmarks.statistics.pairwise import tie_calibrated
from benchmarks.statistics.pairwise_resampled import PairForms
from benchmarks.statistics.resampling import resampled_mean

Draws = Callable[[Sample, FloatArray], FloatArray]
"""From a sample and multiplicities of its clusters, shape (D, C), to values, shape (D, 2)."""


def pearson(sample: Sample, counts: FloatArray) -> FloatArray:
    """Pearson's r over all items."""
    return correlation.resampled_pearson(sample.scores, sample.gold, counts, sample.clusters)


def spearman(sample: Sample, counts: FloatArray) -> FloatArray:
    """Spearman's rho over all items."""
    return correlation.resampled_spearman(sample.scores, sample.gold, counts, sample.clusters)


def kendall(sample: Sample, counts: FloatArray) -> FloatArray:
    """Kendall's tau-b over all items."""
    return correlation.resampled_kendall(sample.scores, sample.gold, counts, sample.clusters)


def accuracy(sample: Sample, counts: FloatArray) -> FloatArray:
    """Share of items whose margin is above 0: ties are failures, as in CROC."""
    right = (sample.scores > 0.0).astype(np.float64)
    items = np.ones((len(right), 1))
    sums = correlation.sum_by_cluster(np.hstack([right, items]), sample.clusters, sample.n_clusters)
    totals = counts @ sums
    share: FloatArray = totals[:, :2] / totals[:, 2:]
    return share


def chain_rank(sample: Sample, counts: FloatArray) -> FloatArray:
    """Mean over clusters of Spearman's rho of scores and places, as for the graphs of TS2."""
    return resampled_mean(_rho_by_cluster(sample), counts)


def tie_calibrated_accuracy(sample: Sample, counts: FloatArray) -> FloatArray:
    """Pairwise accuracy at the threshold that is best in the sample (Deutsch et al. 2023)."""
    found = np.empty((len(counts), 2))
    for metric, scores in enumerate(sample.scores.T):
        best = tie_calibrated(scores, sample.gold)
        forms = PairForms.of(
            scores, sample.gold, sample.clusters, sample.n_clusters, best.threshold
        )
        found[:, metric] = forms.drawn(counts).accuracy
    return found


def element_accuracy(sample: Sample, counts: FloatArray) -> FloatArray:
    """Accuracy of labels at the best threshold in steps of 0.01, searched anew in each draw."""
    items = counts @ np.bincount(sample.clusters, minlength=sample.n_clusters)
    grid = thresholds.threshold_grid(sample.scores)
    found = np.empty((len(counts), 2))
    for metric, scores in enumerate(sample.scores.T):
        right = thresholds.correct_by_cluster(
            scores, sample.gold > 0.0, sample.clusters, sample.n_clusters, grid
        )
        found[:, metric] = (counts @ right).max(axis=1) / items
    return found


MEASURES: Mapping[str, Draws] = MappingProxyType(
    {
        "Pearson": pearson,
        "Spearman": spearman,
        "Kendall": kendall,
        "accuracy": accuracy,
        "chain rank": chain_rank,
        "tie-calibrated": tie_calibrated_accuracy,
        "element accuracy": element_accuracy,
    }
)


def _rho_by_cluster(sample: Sample) -> FloatArray:
    """Spearman's rho of both metrics within each cluster, shape (C, 2); 0 where scores are tied."""
    sizes = np.bincount(sample.clusters, minlength=sample.n_clusters)
    width = int(sizes.max(initial=0))
    inside = np.arange(width) < sizes[:, None]
    rho = np.zeros((sample.n_clusters, 2))
    places = np.where(inside, np.arange(width), np.nan)
    for metric, scores in enumerate(sample.scores.T):
        laid = np.full(inside.shape, np.nan)
        laid[np.repeat(np.arange(sizes.size), sizes), sample.gold.astype(np.intp)] = scores
        ranks = stats.rankdata(laid, axis=1, nan_policy="omit")
        x = ranks - np.nanmean(ranks, axis=1, keepdims=True)
        y = places - np.nanmean(places, axis=1, keepdims=True)
        spread = np.sqrt(np.nansum(x * x, axis=1) * np.nansum(y * y, axis=1))
        varied = spread > 0.0
        rho[varied, metric] = np.nansum(x * y, axis=1)[varied] / spread[varied]
    return rho
