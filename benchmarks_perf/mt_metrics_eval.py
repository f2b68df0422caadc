"""Tie calibration and permutation tests against the evaluator mt-metrics-eval of Google Research.

It is installed for this measurement only, from its repository, at the commit that all figures were
taken with. What `pip install mt-metrics-eval` finds by its name alone is an unrelated package of
somebody else, which should not be installed. Its tables are systems x items, here images x prompts;
an image that a prompt lacks has no gold. Where its definitions differ, they are made equal:

- It adds values up as it goes through the pairs: where several thresholds are equally good, its
  rounding decides. Then ours has to be the smallest of them, and its own must be as good to 1e-12.
- It standardises by z-scores over all items, ours within the prompt over which is averaged, and
  for rank correlations by ranks: so it is given scores standardised our way.
- Equal ranks of two metrics tie for it, and shrink the denominator. For us they are no tie of the
  data and count as ordered both ways, half each: so it is asked twice, with the second metric's
  ranks moved up and down by less than a rank, and the mean is compared.
- It leaves out prompts with an undefined correlation, or counts them all as 0. We leave out those
  of constant gold and count hybrids that are constant as 0. It is asked for 0; no prompt here has
  constant gold.
- Its p-value is one-sided, without the sample among the draws: the hybrids are compared instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, get_args
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.correlation import Groups
from benchmarks.statistics.pairwise_accuracy import (
    Calibrated,
    GroupedPairs,
    pairwise_accuracy,
    tie_calibrated,
)
from benchmarks.statistics.perm_both import Statistic, nulls, standardised
from benchmarks.statistics.permutation import Ranks, Sample, SwapSigns
from benchmarks_perf.measuring import Figure, NotAvailableError
from benchmarks_perf.permutation import SCIPY

COMMIT = "544e0fc0529d63bd61430061b6e5333720a9d4d8"
HOW_TO_INSTALL = (
    "mt-metrics-eval is not installed: pip install "
    f"git+https://github.com/google-research/mt-metrics-eval@{COMMIT}"
)
N_SWAPS = 40
Masks = Iterable[NDArray[np.bool_]]


@dataclass(frozen=True)
class _Table:
    """Metrics (n, M) and gold (n,) of items that lie by prompt."""

    scores: FloatArray  # of the metrics
    gold: FloatArray  # of people
    # items of each prompt, over which is averaged; None: one pool of items
    sizes: IntArray | None = None

    @property
    def groups(self) -> IntArray | None:
        return None if self.sizes is None else np.repeat(np.arange(self.sizes.size), self.sizes)

    @property
    def sample(self) -> Sample:
        items = np.arange(self.gold.size)
        return Sample.of(self.scores, self.gold, self.groups, items, items.size)

    def packed(self, values: FloatArray, absent: float | None) -> list[float | None]:
        """Values (n,), row after row of images."""
        if self.sizes is None:
            return list(values.tolist())
        table = np.full((self.sizes.size, int(self.sizes.max())), absent, dtype=object)
        table[np.arange(table.shape[1]) < self.sizes[:, None]] = values.tolist()
        return list(table.T.ravel())


@dataclass(frozen=True)
class _Swapped:
    """The difference of two metrics, and of the hybrids of each draw."""

    observed: float
    deltas: FloatArray


@dataclass(frozen=True)
class _Peer:
    """The statistics module of the package."""

    module: ModuleType

    def tables(self, table: _Table) -> tuple[list[Any], str]:
        gold = table.packed(table.gold, None)
        rows = 1 if table.sizes is None else int(table.sizes.max())
        columns = [table.packed(column, 0.0) for column in table.scores.T]
        found = [self.module.Correlation(rows, gold, column) for column in columns]
        return found, "none" if table.sizes is None else "item"

    def calibrated(self, table: _Table, metric: int) -> Calibrated:
        """Accuracy and threshold over all pairs."""
        tables, average_by = self.tables(table)
        one = tables[metric]
        value, limit, _ = self.module.KendallWithTiesOpt(
            one.gold_scores, one.metric_scores, "acc23", one.num_sys, average_by, 1.0
        )
        return Calibrated(float(value), float(limit))

    def at_zero(self, table: _Table, metric: int) -> float:
        """Accuracy at threshold 0."""
        tables, average_by = self.tables(table)
        return float(tables[metric].KendallVariants(average_by, "acc23", 0.0)[0])

    def swapped(self, table: _Table, statistic: Statistic, stays: Masks) -> _Swapped:
        """PERM-BOTH; `stays` are masks (n,) of the items that do not swap, one a draw."""
        tables, average_by = self.tables(table)
        own = statistic == "kendall" and table.sizes is not None
        with _drawn(stays):
            return self._read(
                self.module.PermutationSigDiff(
                    *tables,
                    self.module.KendallVariants if own else SCIPY[statistic],
                    average_by=average_by,
                    k=N_SWAPS,
                    params=self.module.PermutationSigDiffParams(block_size=N_SWAPS + 1),
                    replace_nans_with_zeros=True,
                )
            )

    def swapped_alike(self, table: _Table, statistic: Statistic, stays: Any) -> _Swapped:
        """PERM-BOTH of scores standardised our way."""
        sample = table.sample
        if statistic == "pearson":
            given = [standardised(sample)]
        else:
            ranks = [Ranks.of(column, sample).doubled / 2.0 for column in sample.scores.T]
            given = [np.stack([ranks[0], ranks[1] + step], axis=1) for step in (-0.25, 0.25)]
        with mock.patch.object(self.module.scipy.stats, "zscore", np.asarray):
            found = [
                self.swapped(replace(table, scores=scores), statistic, stays) for scores in given
            ]
        deltas: FloatArray = np.mean([one.deltas for one in found], axis=0)
        return _Swapped(float(np.mean([one.observed for one in found])), deltas)

    @staticmethod
    def _read(found: tuple[Any, ...]) -> _Swapped:
        hybrids = np.asarray(found[3], np.float64).reshape(-1, 2)
        return _Swapped(-float(found[1]), hybrids[:, 1] - hybrids[:, 0])


def agreement() -> Iterator[Figure]:
    """Calibration, and hybrids under the same swaps, from which p-values follow."""
    if find_spec("mt_metrics_eval") is None:
        raise NotAvailableError(HOW_TO_INSTALL)
    peer = _Peer(import_module("mt_metrics_eval.stats"))
    if not hasattr(peer.module, "PermutationSigDiff"):
        raise NotAvailableError(HOW_TO_INSTALL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of hybrids that are constant within a prompt
        yield from _calibration(peer)
        yield from _same_swaps(peer)


def _calibration(peer: _Peer) -> Iterator[Figure]:
    for kind in ("mean of 3", "0 or 1", "no ties"):
        for where in ("flat", "by prompt", "by uneven prompts"):
            value, limit, drawn = 0.0, 0.0, 0
            for seed in range(2):
                table = _graded(kind, where, np.random.default_rng(seed))
                best, accuracy_at = _ours(table)
                for metric in range(table.scores.shape[1]):
                    found, theirs = best(metric), peer.calibrated(table, metric)
                    at_zero = accuracy_at(metric, 0.0) - peer.at_zero(table, metric)
                    value = max(value, abs(found.accuracy - theirs.accuracy), abs(at_zero))
                    as_good = accuracy_at(metric, theirs.threshold) - found.accuracy
                    if found.threshold < theirs.threshold and abs(as_good) <= 1e-12:
                        drawn += 1
                    else:
                        limit = max(limit, abs(found.threshold - theirs.threshold))
            name = f"calibrated, {kind}, {where}"
            details = f"{drawn} of 14 thresholds are another of several that are equally good"
            yield Figure(f"{name}: accuracies apart", value, at_most=1e-9)
            yield Figure(f"{name}: thresholds apart", limit, at_most=1e-12, details=details)


def _graded(kind: str, where: str, rng: np.random.Generator) -> _Table:
    """Good, weak, opposite metrics, of 2 decimals, of 5 levels, constant, and float32."""
    sizes = None if where == "flat" else np.full(60, 12)
    if "uneven" in where:
        sizes = np.append(12, rng.integers(2, 13, 59))
    n = 200 if sizes is None else int(sizes.sum())
    gold = np.asarray(rng.permutation(n) / n, np.float64)
    if kind != "no ties":
        ratings = rng.integers(1, 6, (n, 3)).mean(axis=1)
        gold = ratings if kind == "mean of 3" else rng.integers(0, 2, n).astype(np.float64)
    z, noise = (gold - gold.mean()) / gold.std(), rng.normal(size=(7, n))
    columns = [
        z + 0.3 * noise[0],
        z + 3.0 * noise[1],
        0.3 * noise[2] - z,
        np.round(z + 0.5 * noise[3], 2),
        np.round(z + 0.7 * noise[4]),
        np.full(n, 0.25),
        (z + noise[6]).astype(np.float32).astype(np.float64),
    ]
    return _Table(np.stack(columns, axis=1), gold, sizes)


def _ours(table: _Table) -> tuple[Callable[[int], Calibrated], Callable[[int, float], float]]:
    """Calibration of a metric, and its accuracy at a threshold."""
    columns = np.ascontiguousarray(table.scores.T)
    if table.groups is None:
        return (
            lambda metric: tie_calibrated(columns[metric], table.gold),
            lambda metric, limit: pairwise_accuracy(columns[metric], table.gold, limit),
        )
    pairs = GroupedPairs.of(table.gold, Groups.of(table.groups))
    return (
        lambda metric: pairs.tie_calibrated(columns[metric]),
        lambda metric, limit: float(np.mean(pairs.accuracy(columns[metric], limit))),
    )


def _two(*, tied: bool = False, where: str) -> _Table:
    """Two metrics of 20 prompts with up to 8 images; equally good."""
    rng = np.random.default_rng(4)
    sizes = rng.integers(3, 9, 20) if "uneven" in where else np.full(20, 8)
    gold = rng.integers(1, 6, (sizes.sum(), 3)).mean(axis=1)
    for start in np.append(0, np.cumsum(sizes)[:-1]):
        gold[start : start + 2] = 1.0, 5.0  # no prompt of constant gold
    scores = gold[:, None] + rng.normal(size=(gold.size, 2))
    if tied:
        scores = np.round(scores * [1.0, 1.7])
    return _Table(scores, gold, None if where == "flat" else sizes)


def _same_swaps(peer: _Peer) -> Iterator[Figure]:
    for statistic in get_args(Statistic):
        for where in ("flat", "by prompt", "by uneven prompts"):
            largest = 0.0
            for tied in (False, True):
                table = _two(tied=tied, where=where)
                signs = np.hstack(list(SwapSigns(table.gold.size, N_SWAPS, 0).blocks()))
                null = next(nulls(table.sample, statistic, np.array([0]), np.array([1])))[1]
                ours = np.append(null.deltas(signs)[0], null.observed[0])
                found = peer.swapped_alike(table, statistic, signs.T > 0)
                apart = np.abs(ours - np.append(found.deltas, found.observed)).max()
                largest = max(largest, float(apart))
            yield Figure(f"same swaps, {statistic} {where}: apart", largest, at_most=1e-9)


@contextmanager
def _drawn(stays: Masks) -> Iterator[None]:
    """The peer's draws, which are numpy's global ones, replaced by masks."""
    masks = iter(stays)

    def binomial(_trials: int, _p: float, size: int | tuple[int, int]) -> IntArray:
        mask = next(masks)
        if mask.shape != (size if isinstance(size, tuple) else (size,)):
            raise ValueError(f"the peer asks for {size} draws, the mask has {mask.shape}")
        return mask.astype(np.intp)

    with mock.patch.object(np.random, "binomial", binomial):
        yield
