"""Types of the arrays that statistics and protocols pass on, and the unit that keeps their squares finite."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]


def unit_of(*arrays: FloatArray) -> float:
    """Power of two u with u <= largest size < 2 u; 1 where nothing is finite and above 0.

    Divided by it, values keep all their digits, and their squares stay within the range of doubles.
    """
    largest = max(float(np.abs(one[np.isfinite(one)]).max(initial=0.0)) for one in arrays)
    return math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest else 1.0


def extreme_unit(values: FloatArray) -> float:
    """`unit_of` values whose squares would leave the range of doubles; 1 of all others."""
    unit = unit_of(values)
    # Bounded so that its inverse is finite too.
    return 1.0 if 1e-100 < unit < 1e100 else min(max(unit, 2.0**-1000), 2.0**1000)
