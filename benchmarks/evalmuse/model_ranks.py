"""Ranks of text-to-image models as the paper prints them."""

from __future__ import annotations

import math
from collections.abc import Sequence


def competition_ranks(values: Sequence[float], decimals: int) -> tuple[int, ...]:
    """1 + the number of models that are strictly better, all values rounded as they are printed.

    Args:
        values: one per model, higher is better.
        decimals: printed after the point.

    Returns:
        One rank per model; equal printed values share one (1, 2, 2, 4).

    Raises:
        ValueError: a value is not finite, so it has no place.
    """
    if not all(map(math.isfinite, values)):
        raise ValueError("a model without a value has no rank")
    printed = [round(value, decimals) for value in values]
    return tuple(1 + sum(other > value for other in printed) for value in printed)
