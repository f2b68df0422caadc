"""Tests between each two metrics of a board, made together: which differ, and which are not best.

One family of tests, by step-down maxima (Westfall and Young 1993; Romano and Wolf 2005). Were the
metrics of a pair exchangeable within clusters, the difference of their contributions d_g could as well
have had the other sign in each block g; all pairs share the signs. A pair's statistic is

    T = |Σ d_g| / (Σ d_g²)^½,

whose denominator no sign changes, so pairs with much and with little noise are on one scale. A pair
differs if its T is beyond what the largest T of all pairs that are not yet told apart reaches under
flipped signs. Metrics that go together have maxima that go together, which Holm's correction cannot use.

Few clusters: sums of flipped signs are symmetric, and a linear part is all that a contribution is of.
Skewed differences, and correlations of metrics whose noise is unlike, exceed both. With t = T ((n - 1) /
(n - T²))^½ the statistic of Student for n blocks that differ, t / (1 + `CAUTION` / n) is tested instead.
In the simulations of `tools/calibration`, from 12 clusters on, false orders then come up on 5 % of the
boards or fewer, but for two designs of 64; it costs 2 % of t at 300.

Who may be best is a question of fewer comparisons (Hsu 1996): an entry i is not best where its largest
T against an entry with a higher value is beyond what such maxima reach under flipped signs, for all
entries together that are not yet shown to be worse than another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics.sign_flips import RowPairs, sign_patterns, testable

LEVEL = 0.05
"""Of all tests of a board together: the chance of any false order."""
CAUTION = 6.0
"""How much fewer blocks lessen t; see above."""
PATTERNS = 4_999
"""Patterns of signs drawn for all pairs together."""
PATTERNS_OF_MANY = 999
"""The same where there are more than `MANY` pairs: enough for the level, and somebody waits."""
MANY = 20_000
"""Pairs of 200 metrics."""
ENUMERATED = 12
"""With so many blocks in which any two differ, or fewer, every pattern of signs is looked at."""
_PAIRS_AT_A_TIME = 64


@dataclass(frozen=True)
class JointTests:
    """Tests between each two of M metrics, corrected for all of them together."""

    difference: FloatArray  # shape (M, M), value of the row's metric less that of the column's
    # shape (M, M), corrected p-values, symmetric; NaN on the diagonal and where one is not tested
    p_value: FloatArray
    better: BoolArray  # shape (M, M), whether the row's metric is significantly better
    # shape (M,), p-value of being the best or as good, corrected; NaN where it is not tested
    p_best: FloatArray
    n_units: IntArray  # shape (M, M), blocks in which the two differ
    n_patterns: int = 0  # patterns of signs behind the p-values; 0 where nothing was tested
    exact: bool = False  # whether those are all

    @classmethod
    def of(
        cls,
        contributions: ArrayLike,
        seed: int,
        *,
        higher_is_better: bool = True,
        board_blocks: Sequence[int] | None = None,
    ) -> JointTests:
        """Test the metrics of a board.

        Args:
            contributions: shape (M, G), see `statistics.influence`; a row with NaN is not tested.
            seed: of the signs; stored with the results.
            higher_is_better: False where smaller values are better.
            board_blocks: number of blocks of each board whose contributions are added up; None:
                all are of one.
        """
        shares = np.asarray(contributions, np.float64)
        n = len(shares)
        found = cls(
            difference=np.full((n, n), np.nan),
            p_value=np.full((n, n), np.nan),
            better=np.zeros((n, n), bool),
            p_best=np.full(n, np.nan),
            n_units=np.zeros((n, n), np.intp),
        )
        able = np.flatnonzero(testable(shares))
        if not able.size:
            return found
        rows = shares[able] if higher_is_better else -shares[able]
        family = _Family.of(rows, board_blocks)
        pairs = family.pairs
        signs = _Signs.of(rows, seed, pairs.first.size)
        first, second = able[pairs.first], able[pairs.second]
        p_value = family.p_values(rows, signs)
        for one, other in ((first, second), (second, first)):
            found.p_value[one, other] = p_value
            found.n_units[one, other] = pairs.n_units
        totals = shares[able].sum(axis=1)
        found.difference[np.ix_(able, able)] = np.subtract.outer(totals, totals)
        found.better[first, second] = (p_value < LEVEL) & (pairs.total > 0)
        found.better[second, first] = (p_value < LEVEL) & (pairs.total < 0)
        found.p_best[able] = family.p_best(rows, signs, found.p_value[np.ix_(able, able)])
        return replace(found, n_patterns=signs.n_patterns, exact=signs.exact)

    def at(self, order: IntArray) -> JointTests:
        """The same with its metrics in another order; every one must be there."""
        square = np.ix_(order, order)
        return replace(
            self,
            difference=self.difference[square],
            p_value=self.p_value[square],
            better=self.better[square],
            p_best=self.p_best[order],
            n_units=self.n_units[square],
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        arrays = (self.difference, self.p_value, self.better, self.p_best, self.n_units)
        return sum(array.nbytes for array in arrays)


def cautious(statistic: FloatArray, n_units: IntArray | FloatArray) -> FloatArray:
    """T as it is tested: lessened for few blocks, by Student's t; 0 where nothing differs.

    `statistic` T >= 0 of any shape; what exceeds the root of `n_units` is that root.
    """
    n = np.maximum(np.asarray(n_units, np.float64), 1.0)
    left = np.maximum(n - statistic**2, 0.0)
    # With u = t² (1 + c / n)⁻², T² = n u / (n - 1 + u); both sides times what is left.
    squared = statistic**2 * (n - 1.0) / (1.0 + CAUTION / n) ** 2
    whole = (n - 1.0) * left + squared
    same = whole <= 0.0  # One block that differs: T is 1 whatever its sign.
    found = np.sqrt(n * squared / np.where(same, 1.0, whole))
    return np.asarray(np.where(same, statistic, found), np.float64)


@dataclass(frozen=True)
class _Signs:
    """Patterns of signs, the same for all pairs of a board."""

    n_blocks: int  # number G of blocks
    seed: int
    n_patterns: int
    exact: bool
    moving: BoolArray  # shape (G,), blocks in which any two metrics differ

    @classmethod
    def of(cls, rows: FloatArray, seed: int, n_pairs: int) -> _Signs:
        moving = np.asarray((rows != rows[:1]).any(axis=0))
        n_units = int(np.count_nonzero(moving))
        if n_units <= ENUMERATED:
            return cls(rows.shape[1], seed, 1 << n_units, exact=True, moving=moving)
        drawn = PATTERNS_OF_MANY if n_pairs > MANY else PATTERNS
        return cls(rows.shape[1], seed, drawn, exact=False, moving=moving)

    def __iter__(self) -> Iterator[FloatArray]:
        """Blocks of patterns, shape (G, k) each."""
        if not self.exact:
            yield from sign_patterns(self.n_blocks, self.seed, 0, self.n_patterns)
            return
        signs = np.ones((self.n_blocks, self.n_patterns))
        bits = np.arange(self.n_patterns) >> np.arange(np.count_nonzero(self.moving))[:, None]
        signs[self.moving] = 1.0 - 2.0 * (bits & 1)
        yield signs

    def p_value(self, hits: FloatArray) -> FloatArray:
        """Of so many patterns whose maximum is as large; what was seen counts among drawn ones."""
        seen = 0.0 if self.exact else 1.0
        return np.asarray((seen + hits) / (seen + self.n_patterns), np.float64)


@dataclass(frozen=True)
class _Family:
    """All pairs of rows of a board, by rising T."""

    pairs: RowPairs
    scale: FloatArray  # shape (p,), (Σ d_g²)^-½; 0 where the two do not differ
    tested: FloatArray  # shape (p,), T as it is tested, rising

    @classmethod
    def of(cls, rows: FloatArray, board_blocks: Sequence[int] | None) -> _Family:
        pairs = RowPairs.of(rows, *np.triu_indices(len(rows), 1))
        scale = np.zeros(pairs.first.size)
        scale[pairs.square > 0] = pairs.square[pairs.square > 0] ** -0.5
        n_units = pairs.n_units if board_blocks is None else _units_of(rows, pairs, board_blocks)
        tested = cautious(np.maximum(pairs.least, 0.0) * scale, n_units)
        order = np.argsort(tested, kind="stable")
        return cls(pairs.at(order), scale[order], tested[order])

    def p_values(self, rows: FloatArray, signs: _Signs) -> FloatArray:
        """Corrected p-values of the pairs, shape (p,)."""
        first, second = self.pairs.first, self.pairs.second
        hits = np.zeros(first.size)
        for of_signs in signs:
            sums = rows @ of_signs
            largest = np.zeros((1, of_signs.shape[1]))
            for begin in range(0, first.size, _PAIRS_AT_A_TIME):
                part = slice(begin, begin + _PAIRS_AT_A_TIME)
                moved = sums[first[part]]
                moved -= sums[second[part]]
                np.abs(moved, out=moved)
                moved *= self.scale[part, None]
                np.maximum(moved[:1], largest, out=moved[:1])
                np.maximum.accumulate(moved, axis=0, out=moved)
                hits[part] += np.count_nonzero(moved >= self.tested[part, None], axis=1)
                largest = moved[-1:]
        return _stepped(signs.p_value(hits))

    def p_best(self, rows: FloatArray, signs: _Signs, corrected: FloatArray) -> FloatArray:
        """P-values of being the best, shape (M,), given those of all pairs, shape (M, M)."""
        n = len(rows)
        statistic, scale = np.zeros((2, n, n))
        first, second = self.pairs.first, self.pairs.second
        scale[first, second] = scale[second, first] = self.scale
        rises = self.pairs.total > 0
        worse, better = np.where(rises, second, first), np.where(rises, first, second)
        statistic[worse, better] = self.tested
        p: FloatArray = np.where(statistic > 0, corrected, 1.0).min(axis=1, initial=1.0)
        left = np.flatnonzero(p >= LEVEL)
        if left.size < 2 or left.size == n:
            return p  # Nobody to tell apart, or no step down: the pairs are the same comparisons.
        left = left[np.argsort(statistic[left].max(axis=1), kind="stable")]
        hits = np.zeros(left.size)
        for of_signs in signs:
            sums = rows @ of_signs
            largest = np.zeros(of_signs.shape[1])
            for k, i in enumerate(left):
                moved = (sums[i] - sums) * scale[i, :, None]
                np.maximum(largest, moved.max(axis=0), out=largest)
                hits[k] += np.count_nonzero(largest >= statistic[i].max())
        p[left] = np.minimum(p[left], _stepped(signs.p_value(hits)))
        return p


def _units_of(rows: FloatArray, pairs: RowPairs, board_blocks: Sequence[int]) -> FloatArray:
    """Blocks behind each pair, shape (p,): of several boards, as many as where the scatter comes from.

    1/n = Σ_k s_k / n_k, where s_k is the share of board k in Σ d_g².
    """
    inverse = np.zeros(pairs.first.size)
    for of_board in np.split(rows, np.cumsum(board_blocks)[:-1], axis=1):
        own = RowPairs.of(of_board, pairs.first, pairs.second)
        there = own.n_units > 0
        inverse[there] += own.square[there] / pairs.square[there] / own.n_units[there]
    found: FloatArray = 1.0 / np.where(inverse > 0, inverse, 1.0)
    return found


def _stepped(p_values: FloatArray) -> FloatArray:
    """P-values of rising statistics, none smaller than that of a larger statistic."""
    return np.asarray(np.maximum.accumulate(p_values[::-1])[::-1], np.float64)
