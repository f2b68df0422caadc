"""The null distribution of each pair of metrics, by the cheapest exact way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.permutation.kendall import KendallForm, kendall_values
from benchmarks.statistics.permutation.null import LinearNull, Null, WholeGroups
from benchmarks.statistics.permutation.pearson import PearsonNull, pearson_values
from benchmarks.statistics.permutation.ranks import Ranks
from benchmarks.statistics.permutation.sample import Sample
from benchmarks.statistics.permutation.spearman import SpearmanForm, spearman_values
from benchmarks.statistics.permutation.tied import TiedKendall, TiedSpearman
from benchmarks.statistics.permutation.tied_by_draw import TiedKendallByDraw, too_many_cells

Statistic = Literal["pearson", "spearman", "kendall"]

_COEFFICIENTS = 1 << 24  # numbers of a matrix of coefficients (64 MiB of float32)


def nulls(
    sample: Sample, statistic: Statistic, first: IntArray, second: IntArray
) -> Iterator[tuple[IntArray, Null]]:
    """The null distributions of some pairs of metrics, in batches that fit in memory.

    Args:
        sample: scores and gold, without missing ones.
        statistic: the correlation.
        first: shape (P,), metrics.
        second: shape (P,), the metrics they are compared with.

    Yields:
        Which of the pairs, and their null distribution.
    """
    if not first.size:
        return
    everything = np.arange(first.size)
    if statistic == "pearson":
        if sample.n_groups > 1 and sample.groups_are_whole:
            yield everything, WholeGroups(pearson_values(sample), sample, first, second)
        else:
            yield everything, PearsonNull(sample, first, second)
        return
    ranks = [Ranks.of(column, sample) for column in sample.scores.T]
    if sample.n_groups > 1 and sample.groups_are_whole:
        values = _rank_values(sample, statistic, ranks)
        yield everything, WholeGroups(values, sample, first, second)
        return
    tied = np.array([not found.tie_free for found in ranks])
    plain = ~(tied[first] | tied[second])
    form = _linear_form(sample, statistic, ranks) if plain.any() else None
    width = max(_COEFFICIENTS // sample.n_clusters, 1)
    for batch in _batches(np.flatnonzero(plain), width):
        if form is not None:
            yield batch, LinearNull(_listed(first[batch], second[batch]), form.coefficients)
    if not plain.all():
        rest = np.flatnonzero(~plain)
        yield rest, _tied(sample, statistic, ranks, _listed(first[rest], second[rest]))


def _batches(rows: IntArray, width: int) -> Iterator[IntArray]:
    for start in range(0, rows.size, width):
        yield rows[start : start + width]


def _listed(first: IntArray, second: IntArray) -> list[tuple[int, int]]:
    return list(zip(first.tolist(), second.tolist(), strict=True))


def _rank_values(sample: Sample, statistic: Statistic, ranks: list[Ranks]) -> FloatArray:
    if statistic == "spearman":
        return spearman_values(ranks, sample)
    return kendall_values(ranks, sample)


def _linear_form(
    sample: Sample, statistic: Statistic, ranks: list[Ranks]
) -> SpearmanForm | KendallForm:
    return SpearmanForm(sample, ranks) if statistic == "spearman" else KendallForm(sample, ranks)


def _tied(
    sample: Sample, statistic: Statistic, ranks: list[Ranks], pairs: list[tuple[int, int]]
) -> Null:
    if statistic == "spearman":
        return TiedSpearman.of(sample, ranks, pairs)
    if too_many_cells(sample, ranks):
        return TiedKendallByDraw(sample, ranks, pairs)
    return TiedKendall.of(sample, ranks, pairs)
