"""Bradley-Terry model: strengths of items from comparisons of two, here of the images of one prompt.

Bradley and Terry, Biometrika 1952: i is preferred to j with chance 1 / (1 + exp(s_j - s_i)). A tie
is half a win of either. A quadratic penalty keeps the strengths of an item that always wins finite,
and those of items that were never compared with one another on one scale, each group around 0.
"""

from __future__ import annotations

import numpy as np

from benchmarks.arrays import FloatArray, IntArray

RIDGE = 0.25
"""Weight of the sum of squared strengths: a prior with standard deviation 2."""
_STEPS = 50
_NEAR = 1e-12


def strengths(
    first: IntArray, second: IntArray, won: FloatArray, n: int, ridge: float = RIDGE
) -> FloatArray:
    """Strengths that maximise sum(w log p + (1 - w) log(1 - p)) - ridge / 2 sum(s**2).

    `first`, `second`: shape (c,), items of each comparison, 0..n-1; `won`: shape (c,), 1 where the
    first was preferred, 0 where the second was, 0.5 for a tie.
    Returns: shape (n,), their sum 0; NaN for items of no comparison.
    """
    design = np.zeros((len(won), n))
    lines = np.arange(len(won))
    design[lines, first], design[lines, second] = 1.0, -1.0
    found = np.zeros(n)
    for _ in range(_STEPS):
        chance = 1.0 / (1.0 + np.exp(-(design @ found)))
        slope = design.T @ (won - chance) - ridge * found
        bend = (design * (chance * (1.0 - chance))[:, None]).T @ design + ridge * np.eye(n)
        step = np.linalg.solve(bend, slope)
        # Far from the maximum a whole step of Newton's can go too far.
        found = found + step * min(1.0, 2.0 / max(float(np.abs(step).max(initial=0.0)), 1e-300))
        if np.abs(step).max(initial=0.0) < _NEAR:
            break
    compared = np.zeros(n, bool)
    compared[first] = compared[second] = True
    return np.where(compared, found, np.nan)
