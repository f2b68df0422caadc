"""Asymptotic confidence sequence: intervals of a mean that hold together, however often one looks.

Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024), Annals of Statistics 52 (6), theorem 2.2. An
interval for a fixed number of values holds at that number alone: who looks after each value, and
stops where it excludes zero, finds a difference sooner or later where there is none. These hold at
all numbers at once with the chance of 1 - level, as far as means from `MIN_VALUES` on are near
normal, so that looking and stopping are free. The price is an interval 1.55 times as wide.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.arrays import FloatArray

MIN_VALUES = 40
"""Before so many values there is no interval: the standard deviation is not known well enough."""


def mixing_scale(level: float, narrowest: float) -> float:
    """rho, by which the intervals are narrowest near a number of values (their equation 10).

    `level`: in (0, 1), of all looks together; `narrowest`: that number, > 0.
    """
    return math.sqrt((-2 * math.log(level) + math.log(1 - 2 * math.log(level))) / narrowest)


def confidence_sequence(
    values: ArrayLike, level: float, narrowest: float
) -> tuple[FloatArray, FloatArray]:
    """Two-sided intervals of the mean after each value, with the standard deviation so far.

    `values`: (n,), finite, independent and in an order that does not depend on them; `level` and
    `narrowest` as in `mixing_scale`, set before any value is looked at.
    Returns: lower and upper ends, each (n,); NaN before `MIN_VALUES`.
    """
    x = np.asarray(values, np.float64)
    n = np.arange(1, x.size + 1, dtype=np.float64)
    moved = x - x.mean() if x.size else x  # squares of small numbers
    mean = np.cumsum(moved) / n
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.maximum(np.cumsum(np.square(moved)) - n * np.square(mean), 0.0) / (n - 1)
        half = np.sqrt(variance) * half_width(n, level, mixing_scale(level, narrowest))
    half[: MIN_VALUES - 1] = np.nan
    centre = mean + (x.mean() if x.size else 0.0)
    return centre - half, centre + half


def half_width(n: FloatArray, level: float, rho: float) -> FloatArray:
    """Half the interval's width after n values, in standard deviations of a value."""
    square = n * rho**2
    half: FloatArray = np.sqrt(
        2 * (square + 1) / (n * square) * np.log(np.sqrt(square + 1) / level)
    )
    return half
