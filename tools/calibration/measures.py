"""Measures of simulated benchmarks, in the sample and in draws of its clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal

import numpy as np
from scipy import stats
from scipy.special import expit

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics import samples, thresholds
from benchmarks.statistics.correlation import (
    Groups,
    resampled_pearson,
    resampled_spearman,
    spearman_by_group,
)
from benchmarks.statistics.detection import auroc, average_precision, better_worse_auc
from benchmarks.statistics.intervals import MAX_BLOCKS, around
from benchmarks.statistics.kendall import resampled_kendall
from benchmarks.statistics.logistic import BestCurves, plcc
from benchmarks.statistics.ordering import resampled_relations
from benchmarks.statistics.pairwise_accuracy import PairForms, tie_calibrated
from benchmarks.statistics.perm_both import Statistic
from benchmarks.statistics.resampling import resampled_mean
from benchmarks.statistics.systems import Judge, differences
from tools.calibration.designs import Sample

Area = Callable[[FloatArray, BoolArray, IntArray, FloatArray], FloatArray]
"""From scores, labels, clusters and multiplicities to values, shape (D,)."""
Draws = Callable[[Sample, FloatArray], FloatArray]
"""From a sample and multiplicities of its clusters, shape (D, C), to values, shape (D, M)."""


def pearson(sample: Sample, counts: FloatArray) -> FloatArray:
    """Pearson's r over all items."""
    return resampled_pearson(sample.scores, sample.gold, counts, sample.clusters)


def spearman(sample: Sample, counts: FloatArray) -> FloatArray:
    """Spearman's rho over all items."""
    return resampled_spearman(sample.scores, sample.gold, counts, sample.clusters)


def kendall(sample: Sample, counts: FloatArray) -> FloatArray:
    """Kendall's tau-b over all items."""
    return resampled_kendall(sample.scores, sample.gold, counts, sample.clusters)


def spearman_within(sample: Sample, counts: FloatArray) -> FloatArray:
    """Mean over clusters of Spearman's rho within each, where it is defined, as within prompts."""
    groups = Groups.of(sample.clusters, sample.n_clusters)
    return resampled_mean(spearman_by_group(sample.scores, sample.gold, groups), counts)


def fitted_pearson(sample: Sample, counts: FloatArray) -> FloatArray:
    """PLCC: Pearson's r of the gold and the logistic curve from scores to it."""
    return _fitted(sample, counts)[0]


def fitted_error(sample: Sample, counts: FloatArray) -> FloatArray:
    """RMSE of the same curve."""
    return _fitted(sample, counts)[1]


def _fitted(sample: Sample, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """PLCC and RMSE: of the fit in the first draw, which is the sample, else of the best curve."""
    values, errors = np.empty((2, len(counts), 2))
    for metric, scores in enumerate(sample.scores.T):
        fit = plcc(scores, sample.gold)
        curves = BestCurves(scores, sample.gold, counts[1:], sample.clusters)
        values[:, metric] = np.append(fit.value, curves.plcc)
        errors[:, metric] = np.append(fit.rmse, curves.rmse)
    return values, errors


def agreement_over_models(measure: str) -> Draws:
    """Agreement of two orders of models, whose intervals are of studies with as many prompts."""

    def of_sample(sample: Sample, counts: FloatArray) -> FloatArray:
        resamples = _resamples(sample, len(counts))
        people, *metrics = (
            Judge(values.reshape(sample.n_clusters, -1), counts, resamples, 0)
            for values in (sample.gold, *sample.scores.T)
        )
        return np.column_stack([people.agreement(metric, measure) for metric in metrics])

    return of_sample


def errors_over_models(measure: Literal["mae", "largest_error"]) -> Draws:
    """Distance, in points of 100, of a metric's rates of models from people's."""

    def of_sample(sample: Sample, counts: FloatArray) -> FloatArray:
        weights = counts / counts.sum(axis=1, keepdims=True)
        people, *metrics = (
            weights @ expit(values.reshape(sample.n_clusters, -1))
            for values in (sample.gold, *sample.scores.T)
        )
        distances = (100.0 * np.abs(people - metric) for metric in metrics)
        return np.column_stack(
            [
                _around_first(d.mean(axis=1) if measure == "mae" else d.max(axis=1), sample, 100.0)
                for d in distances
            ]
        )

    return of_sample


def model_pairs_right(sample: Sample, counts: FloatArray) -> FloatArray:
    """Pairs of models that a metric relates as people do, by Wilcoxon's test, as in Gecko."""
    people, *metrics = (
        np.round(differences(values.reshape(sample.n_clusters, -1)), 1)
        for values in (sample.gold, *sample.scores.T)
    )
    n_pairs = people.shape[1]
    found = np.zeros((len(counts), len(metrics)))
    for pair in range(n_pairs):
        truth = resampled_relations(people[:, pair], counts)
        for k, metric in enumerate(metrics):
            found[:, k] += resampled_relations(metric[:, pair], counts) == truth
    return np.column_stack([_around_first(right, sample, n_pairs) for right in found.T])


def _around_first(draws: FloatArray, sample: Sample, high: float) -> FloatArray:
    """Draws (1 + D,) whose resamples are moved towards the first."""
    resamples = _resamples(sample, len(draws))
    draws[resamples] = around(draws[0], draws[resamples], 0.0, high)
    return draws


def _resamples(sample: Sample, n_draws: int) -> slice:
    """Those of 1 + D draws that are neither the sample nor of single blocks."""
    return slice(1, max(1, n_draws - 2 * min(sample.n_clusters, MAX_BLOCKS)))


def accuracy(sample: Sample, counts: FloatArray) -> FloatArray:
    """Share of items whose margin is above 0: ties are failures, as in CROC."""
    right = (sample.scores > 0.0).astype(np.float64)
    items = np.ones((len(right), 1))
    sums = samples.sum_by_cluster(np.hstack([right, items]), sample.clusters, sample.n_clusters)
    totals = counts @ sums
    share: FloatArray = totals[:, :-1] / totals[:, -1:]
    return share


def margin_auc(sample: Sample, counts: FloatArray) -> FloatArray:
    """Area under the curve of margins seen from the better side, as on boards of preferences."""
    drawn = (better_worse_auc(one, sample.clusters, counts) for one in sample.scores.T)
    return np.column_stack(list(drawn))


def label_auroc(sample: Sample, counts: FloatArray) -> FloatArray:
    """Area under the receiver operating characteristic of labels, as on boards of elements."""
    return _of_labels(auroc, sample, counts)


def label_precision(sample: Sample, counts: FloatArray) -> FloatArray:
    """Average precision of labels, as on boards of elements."""
    return _of_labels(average_precision, sample, counts)


def _of_labels(area: Area, sample: Sample, counts: FloatArray) -> FloatArray:
    there = sample.gold > 0.0
    drawn = (area(one, there, sample.clusters, counts) for one in sample.scores.T)
    return np.column_stack(list(drawn))


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


SOFT = "soft pairwise"
OVER_MODELS: Mapping[str, Draws] = MappingProxyType(
    {
        SOFT: agreement_over_models("spa"),
        "pairs of models": agreement_over_models("pa"),
        "order of models": agreement_over_models("srcc"),
        "mean error of models": errors_over_models("mae"),
        "largest error of models": errors_over_models("largest_error"),
        "related pairs of models": model_pairs_right,
    }
)
"""Measures whose true value depends on the number of clusters, as their intervals say."""
MEASURES: Mapping[str, Draws] = MappingProxyType(
    {
        "Pearson": pearson,
        "Spearman": spearman,
        "Kendall": kendall,
        "Spearman within": spearman_within,
        "PLCC": fitted_pearson,
        "RMSE": fitted_error,
        **OVER_MODELS,
        "Spearman of models": spearman,
        "accuracy": accuracy,
        "AUC of margins": margin_auc,
        "AUROC": label_auroc,
        "average precision": label_precision,
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


CORRELATIONS: Mapping[str, Statistic] = {
    "Pearson": "pearson",
    "Spearman": "spearman",
    "Kendall": "kendall",
}
"""Measures that PERM-BOTH tests, and their names there."""
