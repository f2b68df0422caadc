"""How far one rating goes with the mean of the others: what one person reaches as a metric."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.arrays import FloatArray


def one_against_the_others(
    ratings: ArrayLike, agreement: Callable[[FloatArray, FloatArray], float]
) -> FloatArray:
    """Each column of ratings in turn as a metric, the mean of the other columns as the labels.

    Args:
        ratings: shape (units, R), R >= 2; NaN where a unit has fewer ratings than others. A unit
            counts for a column where it has that rating and another one.
        agreement: of scores with labels, both of shape (n,) and finite: the measure of a board.

    Returns:
        Shape (R,), in the unit of `agreement`.

    Raises:
        ValueError: there are not two columns.
    """
    table = np.asarray(ratings, np.float64)
    if table.ndim != 2 or table.shape[1] < 2:
        raise ValueError(f"ratings need shape (units, 2 or more), not {table.shape}")
    return np.array([_one(table, column, agreement) for column in range(table.shape[1])])


def _one(
    table: FloatArray, column: int, agreement: Callable[[FloatArray, FloatArray], float]
) -> float:
    one, others = table[:, column], np.delete(table, column, axis=1)
    rated = np.isfinite(one) & np.isfinite(others).any(axis=1)
    return agreement(one[rated], np.nanmean(others[rated], axis=1))
