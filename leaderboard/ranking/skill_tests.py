"""Tests between the metrics of each skill, corrected over a whole heatmap."""

from __future__ import annotations

import threading
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.schema import Card
from benchmarks.statistics.joint_tests import LEVEL
from benchmarks.statistics.multiplicity import benjamini_hochberg
from benchmarks.statistics.resampling import seed_of
from benchmarks.statistics.sign_flips import MOST_DRAWN, pair_tests
from leaderboard.cache import MemoryCache
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.orders import Orders
from leaderboard.ranking.slices import Slice

_KEPT = 1024  # Columns remembered; one of thirty metrics takes about 7 KB, one of a thousand 8 MB
_BYTES = 32 << 20
_OF_KEY = 150  # Bytes of what names an entry in the key of a column, about


@dataclass(frozen=True)
class TestedColumn:
    """The tests within one skill."""

    best: str | None  # entry with the best value; None where nothing was tested
    # p-value of each other tested entry against it after the correction, 0..1
    corrected: Mapping[str, float]
    n_tests: int = 0  # pairs of the column that were tested

    def as_good_as_best(self, entry_id: str) -> bool:
        """Whether it is the best entry, or was tested and does not differ significantly from it."""
        return entry_id == self.best or self.corrected.get(entry_id, 0.0) >= LEVEL


@dataclass(frozen=True)
class _Column:
    """A column before its tests."""

    key: Hashable  # of its tests, which a filter leaves as they are
    contributions: FloatArray  # shape (M, G), of its cells
    entries: tuple[str, ...]  # ids of its cells
    testable: IntArray  # shape (T,), places of the cells that may be tested
    # those of them that a filter leaves, the best of the column first; empty where the best
    # has no contributions
    shown: tuple[int, ...]


class SkillTests:
    """Makes the tests of heatmaps and remembers their p-values; safe among threads.

    The tests of a column are made for all its metrics at once, so a filter needs no new ones: only
    the correction is made again.
    """

    def __init__(self) -> None:
        self._kept: MemoryCache[FloatArray] = MemoryCache(_bytes, _BYTES, _KEPT)
        self._turn = threading.Lock()

    @property
    def nbytes(self) -> int:
        """What is remembered, in bytes."""
        return self._kept.nbytes

    def columns(
        self,
        orders: Orders,
        card: Card,
        columns: Sequence[Sequence[Cell]],
        entry_ids: Collection[str] | None = None,
    ) -> tuple[TestedColumn, ...]:
        """Test each column of a heatmap."""
        slices = orders.slices(card, columns)
        found = [_column(one, card, entry_ids) for one in slices]
        p_values = self._p_values(found, seed_of(card.name, card.revision))
        flat = [_upper(p, column.shown) for p, column in zip(p_values, found, strict=True)]
        ends = np.cumsum([of_column.size for of_column in flat])
        corrected = benjamini_hochberg(np.concatenate(flat)) if flat and ends[-1] else np.empty(0)
        return tuple(
            _tested_column(column, of_column)
            for column, of_column in zip(found, np.split(corrected, ends[:-1]), strict=True)
        )

    def _p_values(self, columns: Sequence[_Column], seed: int) -> list[FloatArray]:
        """Between each two entries of each column, from memory or made together."""
        known = [self._kept.get(column.key) for column in columns]
        if any(p is None for p in known):
            with self._turn:  # Heatmaps of a large board at once would fill the memory.
                self._make(columns, known, seed)
        return [np.zeros((0, 0)) if p is None else p for p in known]

    def _make(self, columns: Sequence[_Column], known: list[FloatArray | None], seed: int) -> None:
        """Fill in what is not known; another may have made it meanwhile."""
        for i, column in enumerate(columns):
            known[i] = self._kept.get(column.key) if known[i] is None else known[i]
        new = [i for i, p in enumerate(known) if p is None]
        for i, made in zip(new, _tested([columns[i] for i in new], seed), strict=True):
            known[i] = made
            self._kept.put(columns[i].key, made)


def _column(one: Slice, card: Card, entry_ids: Collection[str] | None) -> _Column:
    cells, shares = one.cells, one.draws.contributions
    # Without a single block there is nothing to flip: a row of no numbers is not a tested one.
    whole = np.isfinite(shares).all(axis=1) & (shares.shape[1] > 0)
    able = [c.value is not None and c.fit for c in cells]
    entries = tuple(cell.entry_id for cell in cells)
    sign = 1.0 if not cells or card.higher_is_better(cells[0].measure) else -1.0
    shown = sorted(
        (i for i, e in enumerate(entries) if able[i] and (entry_ids is None or e in entry_ids)),
        key=lambda i: -sign * (cells[i].value or 0.0),
    )
    # Tests against the second best would make that one look like the best.
    first = bool(shown) and bool(whole[shown[0]])
    return _Column(
        key=(card.name, tuple((cell.entry_id, cell.row) for cell in cells)),
        contributions=shares,
        entries=entries,
        testable=np.array([i for i, ok in enumerate(able) if ok and whole[i]], np.intp),
        shown=tuple(i for i in shown if whole[i]) if first else (),
    )


def _upper(p_values: FloatArray, shown: Sequence[int]) -> FloatArray:
    """The p-values of each two places, those of the first place first; shape (k (k - 1) / 2,)."""
    places = np.array(shown, np.intp)
    a, b = np.triu_indices(places.size, 1)
    return p_values[places[a], places[b]]


def _tested_column(column: _Column, corrected: FloatArray) -> TestedColumn:
    """What is shown of a column; `corrected` is in the order of `_upper`."""
    if not corrected.size:
        return TestedColumn(None, {})
    best, *others = column.shown
    against_best = corrected[: len(others)].tolist()
    return TestedColumn(
        best=column.entries[best],
        corrected={column.entries[i]: p for i, p in zip(others, against_best, strict=True)},
        n_tests=corrected.size,
    )


def _tested(columns: Sequence[_Column], seed: int) -> list[FloatArray]:
    """Shape (M, M) for each column; all of them share the signs and one product."""
    if not columns:
        return []
    sides: list[tuple[IntArray, IntArray]] = []
    start = 0
    for column in columns:
        a, b = np.triu_indices(column.testable.size, 1)
        sides.append((start + column.testable[a], start + column.testable[b]))
        start += len(column.entries)
    shares = np.concatenate([column.contributions for column in columns])
    first, second = (np.concatenate(side) for side in zip(*sides, strict=True))
    p = pair_tests(shares, first, second, seed, most_drawn=MOST_DRAWN).p_value
    made: list[FloatArray] = []
    for column, of_column in zip(
        columns, np.split(p, np.cumsum([a.size for a, _ in sides])[:-1]), strict=True
    ):
        matrix = np.full((len(column.entries),) * 2, np.nan)
        a, b = (column.testable[side] for side in np.triu_indices(column.testable.size, 1))
        matrix[a, b] = matrix[b, a] = of_column
        made.append(matrix)
    return made


def _bytes(p_values: FloatArray) -> int:
    """Of the tests of a column; its key names every entry."""
    return p_values.nbytes + _OF_KEY * len(p_values)
