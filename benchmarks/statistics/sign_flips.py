"""Sign-flip tests of two metrics' contributions by cluster, and the bound of their p-values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from benchmarks.arrays import FloatArray, IntArray

AT_A_TIME = 1 << 10
"""Patterns made together; a block of them stays in the cache of the processor."""
_KEPT = 80
"""Blocks remembered: two boards' worth, of 32 KB each for 250 units."""


def sign_patterns(n_units: int, seed: int, begin: int, end: int) -> Iterator[FloatArray]:
    """Patterns begin..end-1 of random signs, in blocks of shape (n_units, k)."""
    for block in range(begin // AT_A_TIME, -(-end // AT_A_TIME)):
        flips = np.unpackbits(np.frombuffer(_flips(n_units, seed, block), np.uint8))
        signs = 1 - 2 * flips.view(np.int8).reshape(n_units, AT_A_TIME)
        offset = block * AT_A_TIME
        kept = signs[:, max(begin - offset, 0) : min(end - offset, AT_A_TIME)]
        yield kept.astype(np.float64)


@lru_cache(maxsize=_KEPT)
def _flips(n_units: int, seed: int, block: int) -> bytes:
    """The bits of a block of patterns; every slice of a board needs the same ones."""
    return np.random.default_rng([seed, block]).bytes(n_units * AT_A_TIME // 8)


FACTOR = 1.0 / (2.0 * math.erfc(1.0))
"""c: 4 P(Z >= √2) = 2 erfc(1)."""


def flip_bound(difference: FloatArray, squares: FloatArray) -> FloatArray:
    """An upper bound of the two-sided p-value of a sign-flip test, at most 1.

    Whatever the d_g are, with Z standard normal and the best possible constant,

        P(|Σ ± d_g| >= t σ) <= c P(|Z| >= t),  σ² = Σ d_g²,  c = 1 / (4 P(Z >= √2)) = 3.178

    (Bentkus and Dzindzalieta 2015, Bernoulli 21 (2), 1231-1237). So it is never too small, however
    few or unequal the blocks are; where they are many it is about three times the test's p-value.

    `squares`: Σ d_g², of the same shape; 0 is no difference, NaN no test.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        sizes = np.abs(difference) / np.sqrt(2.0 * squares)
    bound = np.minimum(FACTOR * scipy.special.erfc(np.where(squares == 0.0, 0.0, sizes)), 1.0)
    return np.asarray(bound, np.float64)


def tightened(hoeffding: FloatArray) -> FloatArray:
    """The smaller of `flip_bound` and Hoeffding's bound, 2 exp(-t² / 2) in (0, 2], given the latter."""
    gauss = FACTOR * scipy.special.erfc(np.sqrt(np.maximum(-np.log(hoeffding / 2.0), 0.0)))
    return np.asarray(np.minimum(np.minimum(hoeffding, gauss), 1.0), np.float64)


ENUMERATED = 14
"""With so many blocks that differ, or fewer, every pattern of signs is looked at."""
FIRST_DRAWS = 9_999
"""Patterns drawn for every other pair."""
ALL_DRAWS = 39_999
"""Patterns drawn where the first ones leave too few hits to tell the size of p."""
FEW_HITS = 20
"""Fewer hits than this among the first patterns call for all of them."""
MOST_DRAWN = 20_000
"""Where somebody waits: with more pairs than this to draw for (200 metrics), bounds are given."""
BOUND = 1.0 / (1.0 + ALL_DRAWS)
"""Where the exact p-value is known to lie below the smallest that drawing can give, its upper bound
is given instead and nothing is drawn."""

SLACK = 1e-9  # share of the size of both sides within which two sums are equal but for rounding
_PAIR_CELLS = 1 << 17
"""Pairs times patterns compared at a time: with fewer, the calls cost more than the comparing."""
_PAIRS_AT_A_TIME = 128
"""Pairs whose differences are taken at a time; they stay in the cache."""


def less_rounding(a: FloatArray, b: FloatArray) -> FloatArray:
    """Rows of a less rows of b; zero where they differ by rounding only."""
    d = a - b
    size = np.maximum(np.abs(a), np.abs(b)).max(axis=1, keepdims=True, initial=0.0)
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(d) <= SLACK * size, 0.0, d)


@dataclass(frozen=True)
class PairTests:
    """Tests of p pairs of metrics, each alone; all arrays have shape (p,)."""

    p_value: FloatArray  # two-sided; NaN where a metric has no contributions
    n_units: NDArray[np.int32]  # blocks of clusters in which the two differ
    # patterns of signs behind the p-value: all 2^n_units where `exact`, none where the p-value is
    # the upper bound
    n_patterns: NDArray[np.int32]
    exact: NDArray[np.bool_]  # whether every pattern was looked at


def pair_tests(
    contributions: ArrayLike,
    first: IntArray,
    second: IntArray,
    seed: int,
    *,
    most_draws: int = ALL_DRAWS,
    most_drawn: int | None = None,
) -> PairTests:
    """Test some pairs of rows, each alone.

    Were two metrics exchangeable within clusters, the difference of their contributions d_g = P_a,g
    - P_b,g could as well have had the other sign in each block g. The statistic is |Σ d_g|, its
    reference distribution |Σ ± d_g| over all patterns of signs: for a mean of cluster values and
    blocks of one size the permutation test that swaps the metrics' scores within them (Good 2005,
    section 3.2), for any other measure that test of its linear part. All pairs share the signs; a
    pair's p-value depends on that pair and the seed alone.

    Drawn patterns give p = (1 + hits) / (1 + K) (Phipson and Smyth 2010), with a hit where
    |Σ ± d_g| reaches |Σ d_g|; where all patterns are looked at, p is the share of hits. Where
    2 exp(-(Σ d_g)² / (2 Σ d_g²)), which the share over all patterns cannot exceed (Hoeffding 1963,
    theorem 2), lies below `BOUND`, p is that bound. Two metrics that differ in no block have
    p = 1.

    Drawing for a hundred thousand pairs takes ten seconds. Where somebody waits for that, p-values
    that would be drawn are upper bounds instead (`flip_bound`), about three times as large: what
    differs by them differs. A later test of few of these pairs may draw.

    `contributions` (R, G); `first` (p,), one row of each pair; `second` (p,), the other;
    `most_draws`: patterns where the first leave few hits, >= `FIRST_DRAWS`; `most_drawn`: pairs
    that are drawn for; where there are more, none is. None: any number.
    Returns: p-value NaN for pairs with a row that has a NaN.
    """
    shares = np.asarray(contributions, np.float64)
    size = np.asarray(first).size
    found = PairTests(
        np.full(size, np.nan),
        np.zeros(size, np.int32),
        np.zeros(size, np.int32),
        np.zeros(size, bool),
    )
    whole = testable(shares)
    able = np.flatnonzero(whole[first] & whole[second])
    pairs = RowPairs.of(shares, first[able], second[able])
    found.n_units[able] = pairs.n_units
    few, bound = pairs.n_units <= ENUMERATED, pairs.bound
    far = ~few & (bound < BOUND)
    found.exact[able] = few
    found.n_patterns[able[few]] = 2 ** pairs.n_units[few]
    found.p_value[able[few]] = _enumerate_few(shares, pairs.where(few))
    found.p_value[able[far]] = bound[far]
    if most_drawn is not None and np.count_nonzero(~few & ~far) > most_drawn:
        found.p_value[able[~few & ~far]] = tightened(bound[~few & ~far])
        return found
    drawn = able[~few & ~far]
    hits = _hits(shares, pairs.where(~few & ~far), seed, 0, FIRST_DRAWS)
    found.p_value[drawn] = (1.0 + hits) / (1.0 + FIRST_DRAWS)
    found.n_patterns[drawn] = FIRST_DRAWS
    if most_draws > FIRST_DRAWS:
        rare = hits < FEW_HITS
        scarce = np.flatnonzero(~few & ~far)[rare]
        more = _hits(shares, pairs.at(scarce), seed, FIRST_DRAWS, most_draws)
        found.p_value[drawn[rare]] = (1.0 + hits[rare] + more) / (1.0 + most_draws)
        found.n_patterns[drawn[rare]] = most_draws
    return found


def testable(shares: FloatArray) -> NDArray[np.bool_]:
    """Rows that have contributions: some, and all of them."""
    found: NDArray[np.bool_] = np.asarray(np.isfinite(shares).all(axis=1))
    return found & bool(shares.shape[1])


@dataclass(frozen=True)
class RowPairs:
    """Pairs of rows of contributions with the sums of their differences d_g; all of shape (p,)."""

    first: IntArray  # one row of each pair
    second: IntArray  # the other
    n_units: IntArray  # blocks in which the two differ
    total: FloatArray  # Σ d_g
    least: FloatArray  # what a sum under flipped signs must reach: |Σ d_g| but for rounding
    square: FloatArray  # Σ d_g²

    @property
    def bound(self) -> FloatArray:
        """Hoeffding's bound of the p-value; 1 where the two do not differ."""
        unequal = self.square > 0
        bound = np.ones(self.first.size)
        total, square = self.total[unequal], self.square[unequal]
        bound[unequal] = 2.0 * np.exp(-(total**2) / (2.0 * square))
        return bound

    @classmethod
    def of(cls, shares: FloatArray, first: IntArray, second: IntArray) -> RowPairs:
        """Pairs of rows of contributions (R, G) without NaN."""
        n_units = np.zeros(first.size, np.intp)
        total, least, square = np.zeros((3, first.size))
        largest = np.abs(shares).max(axis=1, initial=0.0)
        for begin in range(0, first.size, _PAIRS_AT_A_TIME):
            part = slice(begin, begin + _PAIRS_AT_A_TIME)
            one, other = first[part], second[part]
            size = np.maximum(largest[one], largest[other])
            d = _differences(shares[one], shares[other], size[:, None])
            n_units[part] = np.count_nonzero(d, axis=1)
            total[part], square[part] = d.sum(axis=1), np.square(d).sum(axis=1)
            least[part] = np.abs(total[part]) - SLACK * np.abs(d).sum(axis=1)
        return cls(first, second, n_units, total, least, square)

    def where(self, chosen: NDArray[np.bool_]) -> RowPairs:
        """Those of a mask (p,)."""
        return self.at(np.flatnonzero(chosen))

    def at(self, chosen: IntArray) -> RowPairs:
        """Those at some places."""
        return RowPairs(*(getattr(self, field.name)[chosen] for field in fields(self)))


def _differences(a: FloatArray, b: FloatArray, size: FloatArray) -> FloatArray:
    """Differences of a and b; zero where only rounding parts them, which their largest share tells."""
    d: FloatArray = a - b
    d[np.abs(d) <= SLACK * size] = 0.0
    return d


def _enumerate_few(shares: FloatArray, pairs: RowPairs) -> FloatArray:
    largest = np.abs(shares).max(axis=1, initial=0.0)
    found = [
        _enumerated(_differences(shares[a], shares[b], np.maximum(largest[a], largest[b])))
        for a, b in zip(pairs.first, pairs.second, strict=True)
    ]
    return np.array(found, np.float64)


def _enumerated(d: FloatArray) -> float:
    """Share of all patterns of signs whose sum is as large; the first sign may be held."""
    d = d[d != 0.0]
    if d.size == 0:
        return 1.0
    sums = np.array([d[0]])
    for step in d[1:]:
        sums = np.concatenate([sums + step, sums - step])
    return float((np.abs(sums) >= np.abs(d.sum()) - SLACK * np.abs(d).sum()).mean())


def _hits(shares: FloatArray, pairs: RowPairs, seed: int, begin: int, end: int) -> FloatArray:
    """Patterns begin..end-1 in which each pair's sum is as large as without flips, shape (p,)."""
    found = np.zeros(pairs.first.size)
    if not found.size:
        return found
    used, place = np.unique(np.concatenate([pairs.first, pairs.second]), return_inverse=True)
    first, second = np.split(place, 2)
    step = max(_PAIR_CELLS // AT_A_TIME, 1)
    for signs in sign_patterns(shares.shape[1], seed, begin, end):
        sums = shares[used] @ signs
        work = _Work.of(step, signs.shape[1])
        for start in range(0, found.size, step):
            part = slice(start, start + step)
            found[part] += work.reached(sums, first[part], second[part], pairs.least[part])
    return found


@dataclass(frozen=True)
class _Work:
    """Memory in which sums of pairs are compared, taken once: it stays in the cache."""

    moved: FloatArray  # shape (p, k), differences of the sums
    other: FloatArray  # shape (p, k), sums of the second of each pair
    # shape (p, 8 w) with 8 w >= k and w <= 255, one byte for each pattern; none beyond k
    hit: NDArray[np.bool_]

    @classmethod
    def of(cls, n_pairs: int, n_patterns: int) -> _Work:
        """For so many pairs and patterns at a time; patterns <= 2,040."""
        shape = (n_pairs, n_patterns)
        return cls(
            np.empty(shape), np.empty(shape), np.zeros((n_pairs, -(-n_patterns // 8) * 8), bool)
        )

    def reached(
        self, sums: FloatArray, first: IntArray, second: IntArray, least: FloatArray
    ) -> IntArray:
        """In how many patterns two rows of sums (R, k) differ by `least`, shape (p,)."""
        n = first.size
        moved, other, hit = self.moved[:n], self.other[:n], self.hit[:n]
        # `clip` writes to the memory given; the default would go through a copy.
        np.take(sums, first, axis=0, out=moved, mode="clip")
        np.take(sums, second, axis=0, out=other, mode="clip")
        np.subtract(moved, other, out=moved)
        np.abs(moved, out=moved)
        np.greater_equal(moved, least[:, None], out=hit[:, : moved.shape[1]])
        # Eight counts in one sum of words: none of them exceeds a byte.
        eight = hit.view(np.uint64).sum(axis=1, dtype=np.uint64)
        counts: IntArray = eight.view(np.uint8).reshape(n, 8).sum(axis=1, dtype=np.intp)
        return counts
