"""Tests of the best metric of each skill against the others, corrected over a whole heatmap.

Hypothesis of each test: the best metric of a skill and another one have the same value of the
measure there (see `benchmarks.statistics.sign_flips`). Benjamini and Hochberg's correction over all
tests of the heatmap holds the expected share of false findings among the findings at 5 %.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.arrays import FloatArray
from benchmarks.schema import Card
from benchmarks.statistics.multiplicity import benjamini_hochberg
from benchmarks.statistics.resampling import seed_of
from benchmarks.statistics.sign_flips import FIRST_DRAWS, pair_tests
from leaderboard.cells import Cell
from leaderboard.orders import Orders
from leaderboard.ranking import LEVEL
from leaderboard.slices import Slice

_KEPT = 4096
"""Columns remembered; one of thirty metrics takes about 300 bytes."""


@dataclass(frozen=True)
class TestedColumn:
    """The tests within one skill.

    Attributes:
        best: entry with the best value; None where nothing was tested.
        corrected: p-value of each other tested entry after the correction over the heatmap, 0..1.
    """

    best: str | None
    corrected: Mapping[str, float]

    def as_good_as_best(self, entry_id: str) -> bool:
        """Whether it is the best entry, or was tested and not told apart from it."""
        return entry_id == self.best or self.corrected.get(entry_id, 0.0) >= LEVEL


@dataclass(frozen=True)
class _Column:
    """A column before its tests: its key, cells, contributions and the place of its best entry."""

    key: Hashable
    cells: tuple[Cell, ...]
    contributions: FloatArray
    able: tuple[int, ...]
    best: int | None


class SkillTests:
    """Makes the tests of heatmaps and remembers their p-values; safe among threads.

    The tests of a column are made for all its metrics at once, so a filter that leaves the best
    metric in needs no new ones: only the correction is made again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, FloatArray] = OrderedDict()

    def columns(
        self,
        orders: Orders,
        card: Card,
        columns: Sequence[Sequence[Cell]],
        entry_ids: Collection[str] | None = None,
    ) -> tuple[TestedColumn, ...]:
        """Test each column of a heatmap.

        Args:
            orders: reads what the tests are made from.
            card: the benchmark.
            columns: the cells of one skill each, of any measure.
            entry_ids: those that are shown; None: all. The best of a column is the best of these,
                and only their tests are corrected.
        """
        slices = orders.slices(card, columns)
        found = [_column(one, card, entry_ids) for one in slices]
        p_values = self._p_values(found, seed_of(card.name, card.revision))
        tests = [
            [place for place in column.able if place != column.best]
            if column.best is not None
            else []
            for column in found
        ]
        flat = [p_values[i][place] for i, places in enumerate(tests) for place in places]
        corrected = iter(benjamini_hochberg(np.array(flat)).tolist() if flat else ())
        return tuple(
            TestedColumn(
                best=column.cells[column.best].entry_id
                if column.best is not None and places
                else None,
                corrected={column.cells[place].entry_id: next(corrected) for place in places},
            )
            for column, places in zip(found, tests, strict=True)
        )

    def _p_values(self, columns: Sequence[_Column], seed: int) -> list[FloatArray]:
        """Of the best entry of each column against every entry, from memory or made together."""
        known = [self._remembered(column.key) for column in columns]
        new = [i for i, p in enumerate(known) if p is None and columns[i].best is not None]
        for i, made in zip(new, _tested([columns[i] for i in new], seed), strict=True):
            known[i] = made
            self._remember(columns[i].key, made)
        return [np.zeros(0) if p is None else p for p in known]

    def _remembered(self, key: Hashable) -> FloatArray | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _remember(self, key: Hashable, p_values: FloatArray) -> None:
        with self._lock:
            self._kept[key] = p_values
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)


def _column(one: Slice, card: Card, entry_ids: Collection[str] | None) -> _Column:
    cells, shares = one.cells, one.draws.contributions
    # Without a single block there is nothing to flip: a row of no numbers is not a tested one.
    whole = np.isfinite(shares).all(axis=1) & (shares.shape[1] > 0)
    ranked = [
        i
        for i, cell in enumerate(cells)
        if cell.value is not None
        and cell.orderable
        and cell.complete
        and (entry_ids is None or cell.entry_id in entry_ids)
    ]
    sign = 1.0 if not cells or card.higher_is_better(cells[0].measure) else -1.0
    best = max(ranked, key=lambda i: sign * (cells[i].value or 0.0), default=None)
    # Tests against the second best would make that one look like the best.
    if best is None or not whole[best]:
        return _Column(None, cells, shares, (), None)
    able = tuple(i for i in ranked if whole[i])
    of = tuple((cell.entry_id, cell.row) for cell in cells)
    return _Column((card.name, of, cells[best].entry_id), cells, shares, able, best)


def _tested(columns: Sequence[_Column], seed: int) -> list[FloatArray]:
    """Best against each entry of its column; all columns share the signs and one product."""
    if not columns:
        return []
    sizes = [len(column.cells) for column in columns]
    starts = np.cumsum([0, *sizes[:-1]])
    best = [start + (column.best or 0) for start, column in zip(starts, columns, strict=True)]
    shares = np.concatenate([column.contributions for column in columns])
    first = np.repeat(np.array(best, np.intp), sizes)
    second = np.arange(len(shares), dtype=np.intp)
    p = pair_tests(shares, first, second, seed, FIRST_DRAWS).p_value
    return np.split(p, starts[1:])
