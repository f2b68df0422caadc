"""Headline values of metrics on one benchmark, with resamples, rescaled and counted for an index."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import BoolArray, FloatArray
from benchmarks.schema import Scale
from benchmarks.statistics.sign_flips import squared_differences
from leaderboard.ranking.borda import borda_points


@dataclass(frozen=True)
class Headlines:
    """The headline measure on one benchmark of all metrics that have it."""

    benchmark: str  # registry name
    scale: Scale  # chance and ceiling of the headline
    metrics: tuple[str, ...]  # names, each once, in any order; n of them
    values: FloatArray  # shape (n,); NaN where the headline is undefined, which counts as missing
    # shape (n, B), resamples that the metrics share; NaN where undefined
    resamples: NDArray[np.floating]
    # shape (n, G), see `statistics.influence`; a row with NaN is not tested. None: nobody
    # is
    contributions: FloatArray | None = None

    def __post_init__(self) -> None:
        n, b = len(self.metrics), self.resamples.shape[-1]
        if len(set(self.metrics)) != n:
            raise ValueError(f"a metric comes twice on {self.benchmark}")
        if self.values.shape != (n,) or self.resamples.shape != (n, b) or b == 0:
            raise ValueError(
                f"{n} metrics on {self.benchmark} need values of shape ({n},) and resamples of "
                f"shape ({n}, B), B > 0, not {self.values.shape} and {self.resamples.shape}"
            )
        if self.contributions is not None and len(self.contributions) != n:
            raise ValueError(f"{n} metrics on {self.benchmark} need as many contributions")
        if np.isinf(self.values).any() or np.isinf(self.resamples).any():
            raise ValueError(f"an infinite headline on {self.benchmark} has no place on a scale")


@dataclass(frozen=True)
class AlignedBoard:
    """A benchmark and all M metrics of a comparison; draw 0 is the sample, then B resamples."""

    present: BoolArray  # shape (M,), which metrics it has
    # shape (M, 1 + B), rescaled headlines; 0 where missing, NaN where undefined
    rescaled: FloatArray
    points: FloatArray  # shape (M, 1 + B), Borda points, likewise
    met: FloatArray  # shape (1 + B,), how many others each of its metrics meets
    # shape (M, M), squared differences of the rescaled contributions, in single precision
    # to save memory; NaN where two metrics cannot be tested. None: nobody can
    squares: NDArray[np.float32] | None = None

    @property
    def nbytes(self) -> int:
        """What its arrays take in memory."""
        arrays = (self.present, self.rescaled, self.points, self.met, self.squares)
        return sum(array.nbytes for array in arrays if array is not None)

    @classmethod
    def of(cls, board: Headlines, metrics: tuple[str, ...]) -> AlignedBoard:
        """Rescale the headlines of a benchmark and count its Borda points, once for all weights."""
        at = {metric: i for i, metric in enumerate(metrics)}
        defined = np.isfinite(board.values)
        rows = np.array([at[metric] for metric in board.metrics], np.intp)[defined]
        drawn = np.column_stack([board.values, board.resamples])[defined].astype(np.float64)
        scaled = (drawn - board.scale.chance) / (board.scale.ceiling - board.scale.chance)
        present = np.zeros(len(metrics), bool)
        present[rows] = True
        rescaled, points = np.zeros((2, len(metrics), drawn.shape[1]))
        rescaled[rows] = scaled
        points[rows], met = borda_points(scaled)
        return cls(present, rescaled, points, met, _squares(board, rows, defined, len(metrics)))


def _squares(
    board: Headlines, rows: NDArray[np.intp], defined: BoolArray, n_metrics: int
) -> NDArray[np.float32] | None:
    """Squared differences between the metrics of a comparison, whose rows these are."""
    if board.contributions is None or not board.contributions.shape[1]:
        return None
    length = board.scale.ceiling - board.scale.chance
    found = np.full((n_metrics, n_metrics), np.nan, np.float32)
    found[np.ix_(rows, rows)] = squared_differences(board.contributions[defined] / length)
    return found
