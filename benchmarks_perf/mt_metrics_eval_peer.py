"""The evaluator mt-metrics-eval of Google Research as a peer: what it says of our tables.

It is installed for these benchmarks only, from its repository, into an environment of its own
that also has numpy and scipy, at the commit that all figures were taken with:

    pip install "git+https://github.com/google-research/mt-metrics-eval@544e0fc0529d63bd61430061b6e5333720a9d4d8"

What `pip install mt-metrics-eval` finds by its name alone is an unrelated package of somebody else,
which has none of these functions and should not be installed.

Its tables are systems x items, here images x prompts; an image that a prompt lacks has no gold.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.pairwise import Calibrated
from benchmarks.statistics.permutation.pair_nulls import Statistic
from benchmarks.statistics.permutation.signs import threshold
from benchmarks_perf.permutation_peers import SCIPY

REPOSITORY = "https://github.com/google-research/mt-metrics-eval"
COMMIT = "544e0fc0529d63bd61430061b6e5333720a9d4d8"
HOW_TO_INSTALL = (
    f"mt-metrics-eval is not installed: pip install git+{REPOSITORY}@{COMMIT} "
    "(what that name alone finds in an index is another package)"
)
_NEEDED = ("Correlation", "KendallVariants", "KendallWithTiesOpt", "PermutationSigDiff")


@dataclass(frozen=True)
class Board:
    """Two metrics on the items of some prompts.

    Attributes:
        scores: shape (n, 2); items lie by prompt.
        gold: shape (n,).
        sizes: shape (G,), items of each prompt, over which is averaged; None: one pool of items.
    """

    scores: FloatArray
    gold: FloatArray
    sizes: IntArray | None = None

    @property
    def groups(self) -> IntArray | None:
        """Shape (n,), prompt of each item."""
        return None if self.sizes is None else np.repeat(np.arange(self.sizes.size), self.sizes)

    @property
    def bounds(self) -> IntArray:
        """Shape (G + 1,), where prompts begin and end."""
        sizes = [self.gold.size] if self.sizes is None else self.sizes
        return np.append(0, np.cumsum(sizes)).astype(np.intp)

    def packed(self, values: FloatArray, absent: float | None) -> list[float | None]:
        """Values (n,), row after row of images."""
        if self.sizes is None:
            return list(values.tolist())
        table = np.full((self.sizes.size, int(self.sizes.max())), absent, dtype=object)
        table[np.arange(table.shape[1]) < self.sizes[:, None]] = values.tolist()
        return list(table.T.ravel())


@dataclass(frozen=True)
class Swapped:
    """What a permutation test of the peer looked at.

    Attributes:
        observed: value of the first metric less that of the second one.
        deltas: shape (k,), the same of the hybrids, with their signs.
        reported: the peer's own p-value: the share of draws in which the second hybrid leads by at
            least as much as the second metric does, compared without a tolerance.
    """

    observed: float
    deltas: FloatArray
    reported: float

    @property
    def p_value(self) -> float:
        """Two-sided, the sample counted as a draw, equal but for rounding being equal."""
        hits = int((np.abs(self.deltas) >= threshold(np.array(self.observed))).sum())
        return (1 + hits) / (1 + self.deltas.size)

    @property
    def rounded_off(self) -> int:
        """Draws that are as extreme as the sample to one side, but lost or won by rounding."""
        limit = -self.observed
        equal = np.abs(-self.deltas - limit) < 1e-12
        return int((equal & (-self.deltas < limit)).sum())


@dataclass(frozen=True)
class Evaluator:
    """The statistics module of the package."""

    module: ModuleType

    @classmethod
    def installed(cls) -> Evaluator | None:
        """The package, if it can be imported and is the right one."""
        if importlib.util.find_spec("mt_metrics_eval") is None:
            return None
        module = importlib.import_module("mt_metrics_eval.stats")
        return cls(module) if all(hasattr(module, name) for name in _NEEDED) else None

    @property
    def swaps_pairs(self) -> bool:
        """Whether this version has the test of pairwise accuracy, too."""
        return hasattr(self.module, "PairwisePermutationSigDiff")

    def _tables(self, board: Board) -> tuple[list[Any], str]:
        gold = board.packed(board.gold, None)
        rows = 1 if board.sizes is None else int(board.sizes.max())
        packed = [board.packed(column, 0.0) for column in board.scores.T]
        tables = [self.module.Correlation(rows, gold, column) for column in packed]
        return tables, "none" if board.sizes is None else "item"

    def calibrated(self, board: Board, metric: int, variant: str = "acc23") -> Calibrated:
        """`KendallWithTiesOpt` over all pairs: value and threshold."""
        tables, average_by = self._tables(board)
        table = tables[metric]
        value, limit, _ = self.module.KendallWithTiesOpt(
            table.gold_scores, table.metric_scores, variant, table.num_sys, average_by, 1.0
        )
        return Calibrated(float(value), float(limit))

    def at_threshold(self, board: Board, metric: int, variant: str, limit: float) -> float:
        """`KendallVariants` at a threshold."""
        tables, average_by = self._tables(board)
        return float(tables[metric].KendallVariants(average_by, variant, limit)[0])

    def swapped(
        self,
        board: Board,
        statistic: Statistic,
        n_draws: int,
        *,
        stays: Iterable[NDArray[np.bool_]] | None = None,
        standardised: bool = False,
    ) -> Swapped:
        """`PermutationSigDiff`; undefined correlations within prompts count as 0.

        Args:
            board: the metrics.
            statistic: scipy's, but the package's own Kendall within prompts.
            n_draws: number of draws, without early stopping.
            stays: masks (n,) of the items that do not swap, one a draw, instead of drawn ones.
            standardised: the scores are taken as they are, without its z-scores.
        """
        tables, average_by = self._tables(board)
        own = statistic == "kendall" and board.sizes is not None
        with _drawn(stays), _without_z_scores(self.module, standardised):
            return _read(
                self.module.PermutationSigDiff(
                    *tables,
                    self.module.KendallVariants if own else SCIPY[statistic],
                    average_by=average_by,
                    k=n_draws,
                    params=self.module.PermutationSigDiffParams(block_size=n_draws + 1),
                    replace_nans_with_zeros=True,
                )
            )

    def swapped_pairs(
        self,
        board: Board,
        n_draws: int,
        *,
        limits: tuple[float | None, float | None] = (None, None),
        stays: Iterable[NDArray[np.bool_]] | None = None,
    ) -> Swapped:
        """`PairwisePermutationSigDiff` of the accuracy, calibrated unless limits are given.

        Args:
            board: the metrics.
            n_draws: number of draws, without early stopping.
            limits: thresholds of both metrics.
            stays: masks of the pairs that do not swap, one (n_g, n_g) a draw and prompt.
        """
        tables, average_by = self._tables(board)
        with _drawn(stays):
            return _read(
                self.module.PairwisePermutationSigDiff(
                    *tables,
                    "acc23",
                    average_by,
                    n_draws,
                    self.module.PermutationSigDiffParams(block_size=n_draws + 1),
                    *limits,
                )
            )


def _read(found: tuple[Any, ...]) -> Swapped:
    if len(found) < 4:
        raise ValueError(
            "this version of mt-metrics-eval does not return the resampled correlations; "
            f"install commit {COMMIT[:7]}"
        )
    hybrids = np.asarray(found[3], np.float64).reshape(-1, 2)  # none of 0 draws
    return Swapped(-float(found[1]), hybrids[:, 1] - hybrids[:, 0], float(found[0]))


@contextmanager
def _drawn(stays: Iterable[NDArray[np.bool_]] | None) -> Iterator[None]:
    """Its draws are numpy's global ones: seeded, or replaced by masks."""
    if stays is None:
        np.random.seed(1)
        yield
        return
    masks = iter(stays)

    def binomial(_trials: int, _p: float, size: int | tuple[int, int]) -> IntArray:
        mask = next(masks)
        if mask.shape != (size if isinstance(size, tuple) else (size,)):
            raise ValueError(f"the peer asks for {size} draws, the mask has {mask.shape}")
        return mask.astype(np.intp)

    with mock.patch.object(np.random, "binomial", binomial):
        yield


@contextmanager
def _without_z_scores(module: ModuleType, wanted: bool) -> Iterator[None]:
    if not wanted:
        yield
        return
    same: Callable[[FloatArray], FloatArray] = np.asarray
    with mock.patch.object(module.scipy.stats, "zscore", same):
        yield
