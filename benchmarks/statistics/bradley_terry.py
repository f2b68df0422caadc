"""Bradley-Terry model: strengths of items from comparisons of two, here of the images of one prompt.

Bradley and Terry, Biometrika 1952: i is preferred to j with chance 1 / (1 + exp(s_j - s_i)). A tie
is half a win of either. A quadratic penalty keeps the strengths of an item that always wins finite,
and those of items that were never compared with one another on one scale, each group around 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.arrays import FloatArray, IntArray

RIDGE = 0.25
"""Weight of the sum of squared strengths: a prior with standard deviation 2."""
_STEPS = 50
_NEAR = 1e-12
_DECIMALS = 10


@dataclass(frozen=True)
class Posterior:
    """Normal approximation of what comparisons say about the strengths of n items."""

    strengths: FloatArray  # shape (n,), the mode; 0 for items of no comparison
    # shape (n, n), inverse of the curvature at the mode, penalty included. The level of a group of
    # items is the penalty's alone: differences within it are what the comparisons tell.
    covariance: FloatArray

    @property
    def contrasts(self) -> FloatArray:
        """Shape (n, n): strength of the row's item less that of the column's."""
        differences: FloatArray = self.strengths[:, None] - self.strengths
        return differences

    @property
    def variances(self) -> FloatArray:
        """Shape (n, n): posterior variances of the contrasts, 0 on the diagonal."""
        own = np.diag(self.covariance)
        found: FloatArray = own[:, None] + own - 2.0 * self.covariance
        return found


def win_matrix(
    first: IntArray, second: IntArray, won: FloatArray, n: int, weights: FloatArray | None = None
) -> FloatArray:
    """Wins of the row's item over the column's, shape (n, n), a tie as half a win of either.

    `first`, `second`, `won` as in `strengths`; `weights` (c,), how often each comparison counts;
    None: once.
    """
    often = np.ones(len(won)) if weights is None else weights
    wins: FloatArray = np.zeros((n, n))
    np.add.at(wins, (first, second), often * won)
    np.add.at(wins, (second, first), often * (1.0 - won))
    return wins


def posterior(wins: FloatArray, ridge: float = RIDGE, start: FloatArray | None = None) -> Posterior:
    """Mode and covariance of the strengths under the penalised likelihood, by Newton's method.

    `wins` (n, n) as from `win_matrix`, not negative, 0 on the diagonal; `start` (n,), strengths to
    begin at, such as those before the last vote; None: all 0.
    """
    compared = wins + wins.T
    found = np.zeros(len(wins)) if start is None else start
    bend = _curvature(found, compared, ridge)
    for _ in range(_STEPS):
        slope = (wins - compared * _chances(found)).sum(axis=1) - ridge * found
        step = np.linalg.solve(bend, slope)
        # Far from the maximum a whole step of Newton's can go too far.
        found = found + step * min(1.0, 2.0 / max(float(np.abs(step).max(initial=0.0)), 1e-300))
        bend = _curvature(found, compared, ridge)
        if np.abs(step).max(initial=0.0) < _NEAR:
            break
    covariance: FloatArray = np.linalg.inv(bend).astype(np.float64)
    return Posterior(found, covariance)


def _chances(strengths: FloatArray) -> FloatArray:
    """Chance that the row's item is preferred to the column's."""
    chances: FloatArray = 1.0 / (1.0 + np.exp(strengths - strengths[:, None]))
    return chances


def _curvature(strengths: FloatArray, compared: FloatArray, ridge: float) -> FloatArray:
    """Negative second derivatives of the penalised likelihood."""
    chances = _chances(strengths)
    told = compared * chances * (1.0 - chances)
    bend: FloatArray = np.diag(told.sum(axis=1) + ridge) - told
    return bend


def strengths(
    first: IntArray, second: IntArray, won: FloatArray, n: int, ridge: float = RIDGE
) -> FloatArray:
    """Strengths that maximise sum(w log p + (1 - w) log(1 - p)) - ridge / 2 sum(s**2).

    `first`, `second`: shape (c,), items of each comparison, 0..n-1; `won`: shape (c,), 1 where the
    first was preferred, 0 where the second was, 0.5 for a tie.
    Returns: shape (n,), their sum 0; NaN for items of no comparison. To ten decimals, so that
    items that are equally strong have one value, whichever order they were added up in.
    """
    wins = win_matrix(first, second, won, n)
    compared = (wins + wins.T).any(axis=1)
    return np.where(compared, posterior(wins, ridge).strengths.round(_DECIMALS), np.nan)


def strengths_of_many(
    first: IntArray, second: IntArray, won: FloatArray, n: int, ridge: float = RIDGE
) -> FloatArray:
    """The same where items fall into many groups that never met: each group on its own.

    The penalty parts them, so this is `strengths`, in a time that grows with the number of groups.
    """
    found = np.full(n, np.nan)
    if not len(won):
        return found
    from scipy.sparse import coo_array  # noqa: PLC0415 - heavy, for those who compare alone
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    met = coo_array((np.ones(len(won)), (first, second)), shape=(n, n))
    _, group = connected_components(met, directed=False)
    of_two = np.bincount(group, minlength=n)[group[first]] == 2
    # Of two items only the wins of one and the number of comparisons matter: few cases in all.
    low, high = np.minimum(first, second)[of_two], np.maximum(first, second)[of_two]
    wins = np.where(first < second, won, 1.0 - won)[of_two]
    items, at = np.unique(low, return_inverse=True)
    others = np.zeros(len(items), np.intp)
    others[at] = high
    cases = np.column_stack([np.bincount(at, wins), np.bincount(at)])
    kinds, which = np.unique(cases, axis=0, return_inverse=True)
    level = np.array([_lead(total, int(number), ridge) for total, number in kinds.tolist()])
    found[items], found[others] = level[which], -level[which]
    rest = np.flatnonzero(~of_two)
    rest = rest[np.argsort(group[first[rest]], kind="stable")]
    starts = np.flatnonzero(np.diff(group[first[rest]])) + 1
    for lines in np.split(rest, starts) if len(rest) else ():
        members, places = np.unique([first[lines], second[lines]], return_inverse=True)
        one, other = places.reshape(2, -1)
        found[members] = strengths(one, other, won[lines], len(members), ridge)
    return found


def _lead(wins: float, number: int, ridge: float) -> float:
    """Strength of the first of two items that won so many of their comparisons."""
    shares = np.full(number, wins / number)
    zeros = np.zeros(number, np.intp)
    return float(strengths(zeros, zeros + 1, shares, 2, ridge)[0])
