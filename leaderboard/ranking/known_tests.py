"""The tests between entries that are known: published with the board, or made for a look before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.schema import Card
from benchmarks.statistics.resampling import seed_of
from benchmarks.statistics.sign_flips import MOST_DRAWN, FlipTests
from leaderboard.cache import MemoryCache
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.pairs import Pairs, read_pairs, tests_of
from leaderboard.ranking.slices import Slice
from leaderboard.store.interface import Repository

_BYTES = 48 << 20  # Tests of slices: one of five hundred entries takes 10 MB
_KEPT = 512
_OF_PAIRS = ("p_value", "n_units", "n_patterns", "exact")
"""What is kept of a test; the difference is taken from the draws each time."""


class KnownTests:
    """Tests entries of slices against each other, each two of a slice once.

    A pair's test depends on that pair and the seed of the board alone, so those of any selection
    hold in any other. A published test is used for entries whose draws are those of their values.
    Where too many pairs would have to be drawn for while somebody waits, their p-values are upper
    bounds, until a smaller selection draws for them.
    """

    def __init__(self, public: Repository) -> None:
        self._public = public
        self._kept: MemoryCache[Pairs] = MemoryCache(_bytes, _BYTES, _KEPT)

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
        return found or Pairs(card.revision, (), _untested(0))


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
    found = _untested(len(every))
    for name in _OF_PAIRS:
        target = getattr(found, name)
        target[np.ix_(before, before)] = getattr(known.tests, name)
        target[one, other] = target[other, one] = getattr(tests, name)[a[made], b[made]]
    return Pairs(known.revision, every, found)


def _untested(n: int) -> FlipTests:
    shape = (n, n)
    return FlipTests(
        difference=np.full(shape, np.nan),
        p_value=np.full(shape, np.nan),
        n_units=np.zeros(shape, np.intp),
        n_patterns=np.zeros(shape, np.intp),
        exact=np.zeros(shape, bool),
    )


def _bytes(pairs: Pairs) -> int:
    return pairs.tests.nbytes
