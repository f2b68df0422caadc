"""How CROC puts accuracies on a scale from -1 to 1 with 0 for guessing."""

from __future__ import annotations

from typing import overload

import numpy as np

from benchmarks.arrays import FloatArray


@overload
def scale(accuracy: float, chance: float) -> float: ...
@overload
def scale(accuracy: FloatArray, chance: float) -> FloatArray: ...
def scale(accuracy: float | FloatArray, chance: float) -> float | FloatArray:
    """Stretch accuracies so that 0 becomes -1, chance becomes 0 and 1 stays 1.

    Either side of chance is linear on its own: with chance 1/2 this is 2a - 1, and with chance 5/6
    the values below chance are spread over the longer side.

    Args:
        accuracy: in 0..1, any shape; NaN stays NaN.
        chance: what a guess reaches, strictly between 0 and 1.

    Returns:
        Values in -1..1 of the same shape. CROC prints them with three decimals; nothing is rounded
        here.

    Raises:
        ValueError: the chance level is not strictly between 0 and 1.
    """
    if not 0.0 < chance < 1.0:
        raise ValueError(f"a chance level lies strictly between 0 and 1, not at {chance}")
    above = np.asarray(accuracy, np.float64) - chance
    scaled: FloatArray = np.where(above <= 0.0, above / chance, above / (1.0 - chance))
    return scaled if isinstance(accuracy, np.ndarray) else float(scaled)
