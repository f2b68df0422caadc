"""Rankings made on demand: any slice, the mean of several skills, any selection of entries."""

from __future__ import annotations

import threading
from collections.abc import Collection, Hashable, Sequence

import numpy as np

from benchmarks.schema import Card
from leaderboard.cache import MemoryCache
from leaderboard.ranking.cells import Cell, best_first
from leaderboard.ranking.draws import RowDraws, read_rows, stacked_draws
from leaderboard.ranking.slices import Ranked, Slice, mean_over_skills, ranked
from leaderboard.store.interface import Store

_KEPT = 512  # However small they are: some have no draws at all
_SLICES_BYTES = 64 << 20  # Draws of slices: one of five hundred metrics takes 3 MB
_RANKED_BYTES = 64 << 20
"""Rankings with their tests: one of thirty metrics takes 200 KB, one of five hundred 15 MB."""
_ROWS_BYTES = 24 << 20  # Draws of single values, 6 KB each, for selections of them
_ROWS = 1 << 16
_AGREEMENT = 1e-6
"""A value's contributions add up to it; where they do not, they are of another publication."""


class Orders:
    """Ranks what is looked at, and remembers it; one object for one version of the snapshot."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._slices: MemoryCache[Slice] = MemoryCache(
            lambda one: one.draws.nbytes, _SLICES_BYTES, _KEPT
        )
        self._ranked: MemoryCache[Ranked] = MemoryCache(
            lambda one: one.draws.nbytes + one.ordering.nbytes, _RANKED_BYTES, _KEPT
        )
        self._rows: MemoryCache[RowDraws] = MemoryCache(lambda one: one.nbytes, _ROWS_BYTES, _ROWS)
        # A large board takes 100 MB while it is ranked, and numpy all processors: one at a time.
        self._turn = threading.Lock()

    @property
    def nbytes(self) -> int:
        """What is remembered, in bytes."""
        return self._slices.nbytes + self._ranked.nbytes + self._rows.nbytes

    def slice(self, card: Card, cells: Sequence[Cell]) -> Slice:
        """The cells of one slice with their draws."""
        return self._slices.of(("slice", *_key(card, [cells])), lambda: self._read(card, cells))

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
        self, card: Card, skills: Sequence[Sequence[Cell]], entry_ids: Collection[str] | None = None
    ) -> Ranked:
        """A ranking, best first."""
        chosen = None if entry_ids is None else frozenset(entry_ids)
        key = ("ranked", len(skills), chosen, *_key(card, skills))

        def made() -> Ranked:
            with self._turn:
                return self._rank(card, skills, chosen)

        return self._ranked.of(key, made)

    def _rank(
        self, card: Card, skills: Sequence[Sequence[Cell]], chosen: frozenset[str] | None
    ) -> Ranked:
        one = None if chosen is None else self._selection(card, skills, chosen)
        if one is None:
            one = mean_over_skills(self.slices(card, skills))
        if chosen is not None:
            one = _part(one, card, chosen)
        return ranked(one, card).best_first(card)

    def _selection(
        self, card: Card, skills: Sequence[Sequence[Cell]], chosen: frozenset[str]
    ) -> Slice | None:
        """The draws of a selection alone; None where they depend on those of the others.

        Which plan of resamples counts is for the whole slice to say. Values that have a chance to
        be best in the snapshot are of that plan, so where all of them are, nobody else is asked.
        """
        some = [[cell for cell in cells if cell.entry_id in chosen] for cells in skills]
        for cells in some:
            fit = [cell for cell in cells if cell.rank is not None]
            if not fit or any(cell.best_share is None for cell in fit):
                return None
        rows = self._rows_of(card, [cell for cells in some for cell in cells])
        for lengths in (
            {0 if row.resamples is None else row.resamples.size for row in rows},
            {0 if row.contributions is None else row.contributions.size for row in rows},
        ):
            if len(lengths) != 1 or 0 in lengths:
                return None
        ends = np.cumsum([len(cells) for cells in some])[:-1]
        parts = np.split(np.arange(len(rows)), ends)
        return mean_over_skills(
            [
                _with_draws(cells, [rows[i] for i in part])
                for cells, part in zip(some, parts, strict=True)
            ]
        )

    def _read(self, card: Card, cells: Sequence[Cell]) -> Slice:
        return _with_draws(cells, read_rows(self._store, card, cells))

    def _rows_of(self, card: Card, cells: Sequence[Cell]) -> list[RowDraws]:
        """The draws of each cell; those not remembered are read together."""
        keys = [(card.name, card.revision, cell.entry_id, cell.row) for cell in cells]
        found = {key: self._rows.get(key) for key in keys}
        new = [cell for key, cell in zip(keys, cells, strict=True) if found[key] is None]
        for cell, row in zip(new, read_rows(self._store, card, new), strict=True):
            key = (card.name, card.revision, cell.entry_id, cell.row)
            found[key] = row
            self._rows.put(key, row)
        return [one for key in keys if (one := found[key]) is not None]


def _key(card: Card, skills: Sequence[Sequence[Cell]]) -> tuple[Hashable, ...]:
    cells = tuple((cell.entry_id, cell.row) for cells in skills for cell in cells)
    return card.name, card.revision, cells


def _with_draws(cells: Sequence[Cell], rows: Sequence[RowDraws]) -> Slice:
    """Cells with their draws; those of another publication than the value are left out."""
    found = stacked_draws(rows)
    values = np.array([np.nan if cell.value is None else cell.value for cell in cells])
    with np.errstate(invalid="ignore"):
        off = np.abs(found.contributions.sum(axis=1) - values)
        stale = off > _AGREEMENT * np.maximum(1.0, np.abs(values))
    found.contributions[stale] = np.nan
    found.resamples[stale] = np.nan
    return Slice(tuple(cells), found)


def _part(one: Slice, card: Card, chosen: frozenset[str]) -> Slice:
    """Those of a slice that take part, in the order of the whole board."""
    rises = not one.cells or card.higher_is_better(one.cells[0].measure)
    place = {cell.entry_id: i for i, cell in enumerate(one.cells)}
    kept = best_first(
        (cell for cell in one.cells if cell.entry_id in chosen), higher_is_better=rises
    )
    places = np.array([place[cell.entry_id] for cell in kept], np.intp)
    return Slice(kept, one.draws.of(places))
