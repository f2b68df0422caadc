"""Rankings made on demand: any slice, the mean of several skills, any selection of entries."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import TypeVar, cast

import numpy as np

from benchmarks.schema import Card
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.draws import read_draws
from leaderboard.ranking.slices import Ranked, Slice, mean_over_skills, ranked
from leaderboard.store.interface import Store

_KEPT_BYTES = 256 << 20
"""Draws of slices and rankings kept at a time: a slice of thirty metrics takes about 200 KB, one of
forty skills together 8 MB."""
_KEPT = 512
"""However small they are: some have no draws at all."""
_AGREEMENT = 1e-6
"""A value's contributions add up to it; where they do not, they are of another publication."""

_Found = TypeVar("_Found", Slice, Ranked)


class Orders:
    """Ranks what is looked at, and remembers it; one object for one version of the snapshot.

    Args:
        store: where the draws are.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Slice | Ranked] = OrderedDict()

    def slice(self, card: Card, cells: Sequence[Cell]) -> Slice:
        """The cells of one slice with their draws."""
        key = ("slice", card.name, tuple((cell.entry_id, cell.row) for cell in cells))
        return self._remembered(key, lambda: self._read(card, cells))

    def slices(self, card: Card, slices: Sequence[Sequence[Cell]]) -> list[Slice]:
        """Several slices of one benchmark; the files of a run are read once for all of them."""
        every = [cell for cells in slices for cell in cells]
        whole = self.slice(card, every)
        ends = np.cumsum([len(cells) for cells in slices])[:-1]
        return [
            Slice(tuple(whole.cells[i] for i in part), whole.draws.of(part))
            for part in np.split(np.arange(len(every)), ends)
        ]

    def ranked(
        self,
        card: Card,
        skills: Sequence[Sequence[Cell]],
        entry_ids: Collection[str] | None = None,
    ) -> Ranked:
        """A ranking, best first.

        Args:
            card: the benchmark.
            skills: the cells of one measure, of one skill or of several; the mean of several is
                ranked.
            entry_ids: those that take part; None: all. Ranks, ranges, P(best), tests and tiers are
                those of the selection.
        """
        chosen = None if entry_ids is None else frozenset(entry_ids)
        cells = tuple((cell.entry_id, cell.row) for of_skill in skills for cell in of_skill)
        key = ("ranked", card.name, len(skills), cells, chosen)
        return self._remembered(key, lambda: self._rank(card, skills, chosen))

    def _rank(
        self, card: Card, skills: Sequence[Sequence[Cell]], chosen: frozenset[str] | None
    ) -> Ranked:
        if chosen is None:
            return ranked(mean_over_skills(self.slices(card, skills)), card).best_first(card)
        # A selection is ranked anew and corrected anew, but its pairs were tested before.
        whole = self.ranked(card, skills)
        kept = np.array([i for i, c in enumerate(whole.cells) if c.entry_id in chosen], np.intp)
        one = Slice(tuple(whole.cells[i] for i in kept), whole.draws.of(kept))
        tests = whole.ordering.tests
        return ranked(one, card, tests=tests.of(kept) if tests else None).best_first(card)

    def _read(self, card: Card, cells: Sequence[Cell]) -> Slice:
        found = read_draws(self._store, card, cells)
        values = np.array([np.nan if cell.value is None else cell.value for cell in cells])
        with np.errstate(invalid="ignore"):
            off = np.abs(found.contributions.sum(axis=1) - values)
            stale = off > _AGREEMENT * np.maximum(1.0, np.abs(values))
        found.contributions[stale] = np.nan
        found.resamples[stale] = np.nan
        return Slice(tuple(cells), found)

    def _remembered(self, key: Hashable, make: Callable[[], _Found]) -> _Found:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return cast(_Found, self._kept[key])
        # Made outside the lock: two readers of one new slice may both make it, none waits long.
        made = make()
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > _KEPT or self._bytes() > _KEPT_BYTES:
                self._kept.popitem(last=False)
        return made

    def _bytes(self) -> int:
        return sum(one.draws.nbytes for one in self._kept.values())
