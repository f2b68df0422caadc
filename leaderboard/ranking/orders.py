"""Rankings made on demand: any slice, the mean of several skills, any selection of entries."""

from __future__ import annotations

import threading
from collections.abc import Collection, Hashable, Sequence

import numpy as np

from benchmarks.schema import Card
from benchmarks.statistics.resampling import seed_of
from benchmarks.statistics.sign_flips import MOST_DRAWN, FlipTests
from leaderboard.cache import MemoryCache
from leaderboard.ranking.cells import Cell, best_first
from leaderboard.ranking.draws import RowDraws, read_rows, stacked_draws
from leaderboard.ranking.pairs import TESTED, Pairs, read_pairs, tests_of
from leaderboard.ranking.slices import Ranked, Slice, mean_over_skills, ranked
from leaderboard.store.interface import Repository, Store

_BYTES = 48 << 20  # Tests of slices: one of five hundred entries takes 10 MB
_KEPT = 512  # However small they are: some have no draws at all


class KnownTests:
    """Tests entries of slices against each other, each two of a slice once.

    A pair's test depends on that pair and the seed of the board alone, so those of any selection
    hold in any other. A published test is used for entries whose draws are those of their values.
    Where too many pairs would have to be drawn for while somebody waits, their p-values are upper
    bounds, until a smaller selection draws for them.
    """

    def __init__(self, public: Repository) -> None:
        self._public = public
        self._kept: MemoryCache[Pairs] = MemoryCache(lambda one: one.tests.nbytes, _BYTES, _KEPT)

    @property
    def nbytes(self) -> int:
        """What is remembered, in bytes."""
        return self._kept.nbytes

    def of(self, card: Card, skills: Sequence[Sequence[Cell]], one: Slice) -> FlipTests:
        """The tests between the entries of a slice that may rank, in its order."""
        cells = tuple((cell.entry_id, cell.row) for of_skill in skills for cell in of_skill)
        key = (card.name, card.revision, len(skills), cells)
        known = self._kept.of(key, lambda: self._published(card, skills))
        fit = np.array([cell.fit and cell.value is not None for cell in one.cells], bool)
        shares = np.where(fit[:, None], one.draws.contributions, np.nan)
        ids = tuple(cell.entry_id for cell in one.cells)
        seed = seed_of(card.name, card.revision)
        tests = tests_of(ids, shares, seed, known, MOST_DRAWN)
        grown = _grown(known, ids, tests)
        if grown is not known:
            self._kept.put(key, grown)
        return tests

    def _published(self, card: Card, skills: Sequence[Sequence[Cell]]) -> Pairs:
        """The tests of a headline; none of any other slice."""
        found: Pairs | None = None
        if len(skills) == 1 and _is_headline(card, skills[0]):
            usable = [cell.entry_id for cell in skills[0] if cell.fit and cell.value is not None]
            found = read_pairs(self._public, card.name, card.revision, usable)
        return found or Pairs(card.revision, (), FlipTests.untested(0))


def _is_headline(card: Card, cells: Sequence[Cell]) -> bool:
    return bool(cells) and cells[0].skill is None and cells[0].selector == card.headline


def _grown(known: Pairs, ids: Sequence[str], tests: FlipTests) -> Pairs:
    """What is known with the tests just made; the same object where nothing is new."""
    place = {entry_id: i for i, entry_id in enumerate(known.entry_ids)}
    at = np.array([place.get(entry_id, -1) for entry_id in ids], np.intp)
    a, b = np.triu_indices(len(ids), 1)
    made = np.isfinite(tests.p_value[a, b])
    old = (at[a] >= 0) & (at[b] >= 0)
    if place:
        old &= np.isfinite(known.tests.p_value[at[a], at[b]])
    if not (made & ~old).any():
        return known
    every = (*known.entry_ids, *(entry_id for entry_id in ids if entry_id not in place))
    place = {entry_id: i for i, entry_id in enumerate(every)}
    before = np.arange(len(known.entry_ids))
    now = np.array([place[entry_id] for entry_id in ids], np.intp)
    one, other = now[a[made]], now[b[made]]
    found = FlipTests.untested(len(every))
    for name in TESTED:
        target = getattr(found, name)
        target[np.ix_(before, before)] = getattr(known.tests, name)
        target[one, other] = target[other, one] = getattr(tests, name)[a[made], b[made]]
    return Pairs(known.revision, every, found)


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
        self._tests = KnownTests(store.public)
        # A large board takes 100 MB while it is ranked, and numpy all processors: one at a time.
        self._turn = threading.Lock()

    @property
    def nbytes(self) -> int:
        """What is remembered, in bytes."""
        return self._slices.nbytes + self._ranked.nbytes + self._rows.nbytes + self._tests.nbytes

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
        tests: FlipTests | None = None
        if one.draws.contributions.shape[1]:
            tests = self._tests.of(card, skills, one)
        # A selection is ranked anew and corrected anew, from tests that may be older.
        return ranked(one, card, tests=tests).best_first(card)

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
            if not fit or any(cell.p_best is None for cell in fit):
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
