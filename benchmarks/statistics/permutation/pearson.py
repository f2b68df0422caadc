"""Pearson's r: values by group, and its swapped differences from sums per metric."""

from __future__ import annotations

import numpy as np

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.permutation.null import DirectNull
from benchmarks.statistics.permutation.sample import Sample
from benchmarks.statistics.permutation.signs import Signs, signed_sums

_CELLS = 1 << 20  # numbers of a work array (8 MiB)
_NO_SPREAD = 1e-12  # share of the sum of squares below which a hybrid is constant but for rounding


def standardised(sample: Sample) -> FloatArray:
    """Scores (n, M) as z-scores within the groups; 0 where a metric is constant there."""
    centred = sample.centred(sample.scores)
    largest = np.maximum.reduceat(np.abs(centred), sample.starts, axis=0)
    spread = np.maximum.reduceat(sample.scores, sample.starts, axis=0) > np.minimum.reduceat(
        sample.scores, sample.starts, axis=0
    )
    # Squares of deviations in units of the largest one neither overflow nor vanish.
    unit = np.where(spread & (largest > 0), largest, np.inf)[sample.group]
    scaled = sample.centred(centred / unit)
    square = sample.by_group(scaled**2) / sample.sizes[:, None]
    z: FloatArray = scaled / np.sqrt(np.where(square > 0, square, 1.0))[sample.group]
    return z


def _unit_gold(sample: Sample) -> FloatArray:
    """Gold centred within the groups, of sum of squares 1."""
    gold = sample.centred(sample.gold)
    gold = gold / np.maximum.reduceat(np.abs(gold), sample.starts)[sample.group]
    unit: FloatArray = gold / np.sqrt(sample.by_group(gold**2))[sample.group]
    return unit


def pearson_values(sample: Sample) -> FloatArray:
    """Pearson's r of each metric in each group, shape (M, G); 0 where the metric is constant."""
    products = sample.by_group(standardised(sample) * _unit_gold(sample)[:, None])
    return np.asarray((products / np.sqrt(sample.sizes)[:, None]).T, np.float64)


class PearsonNull(DirectNull):
    """The sums of h, h^2 and h g over a hybrid h, for three columns per metric instead of pair.

    A hybrid's sum of a column is half the sum of both metrics' columns, plus or minus half the
    difference of their products with the signs.
    """

    def __init__(self, sample: Sample, first: IntArray, second: IntArray) -> None:
        """Prepare the columns of all metrics.

        Args:
            sample: scores and gold.
            first: shape (P,), metrics.
            second: shape (P,), the metrics they are compared with.
        """
        z, gold = standardised(sample), _unit_gold(sample)
        self._sample, self._first, self._second = sample, first, second
        self._columns = np.stack([z, z**2, z * gold[:, None]])  # (3, n, M)
        self._totals = np.stack([sample.by_group(column) for column in self._columns])
        self._by_pair = first.size < z.shape[1]
        if self._by_pair:  # then the differences are fewer
            self._columns = self._columns[..., first] - self._columns[..., second]
        if sample.n_groups == 1:
            summed = [sample.clustered(column) for column in self._columns]
            by_row = [column.T for column in summed]
            self._columns = np.concatenate(by_row).copy("C")  # (3 M, C), or per pair
        self.observed = self.deltas(np.ones((sample.n_clusters, 1), np.int8))[:, 0]

    def deltas(self, signs: Signs) -> FloatArray:
        """Differences, shape (P, k), for swap signs (C, k)."""
        swapped = self._swapped_sums(signs)
        width = max(_CELLS // max(swapped[0, 0].size, 1), 1)
        parts = [
            self._differences(swapped, rows)
            for start in range(0, self._first.size, width)
            for rows in [slice(start, start + width)]
        ]
        return np.concatenate(parts) if parts else np.zeros((0, signs.shape[1]))

    def _swapped_sums(self, signs: Signs) -> FloatArray:
        """Products of the columns with the signs by group, shape (3, M or P, G, k)."""
        if self._sample.n_groups == 1:
            flat = signed_sums(self._columns, signs)
            return flat.reshape(3, -1, 1, signs.shape[1])
        of_items = signs.astype(np.float64)[self._sample.clusters]
        n_columns = self._columns.shape[2]
        sums = np.empty((3, n_columns, self._sample.n_groups, signs.shape[1]))
        for kind, column in enumerate(self._columns):
            for metric in range(n_columns):
                sums[kind, metric] = self._sample.by_group(column[:, metric, None] * of_items)
        return sums

    def _differences(self, swapped: FloatArray, rows: slice) -> FloatArray:
        first, second = self._first[rows], self._second[rows]
        both = self._totals[:, :, first] + self._totals[:, :, second]  # (3, G, pairs)
        even = both.transpose(0, 2, 1)[..., None] / 2.0
        odd = swapped[:, rows] if self._by_pair else swapped[:, first] - swapped[:, second]
        odd = odd / 2.0
        difference = self._correlations(even + odd) - self._correlations(even - odd)
        mean: FloatArray = difference.mean(axis=1)
        return mean

    def _correlations(self, sums: FloatArray) -> FloatArray:
        """Pearson's r from its three sums (3, pairs, G, k); 0 for a constant hybrid."""
        total, square, product = sums
        spread = square - total**2 / self._sample.sizes[:, None]
        varied = spread > _NO_SPREAD * square
        root = np.sqrt(np.where(varied, spread, 1.0))
        correlations: FloatArray = np.where(varied, product / root, 0.0)
        return correlations
