"""From the cells of all runs of a benchmark to its board: ranks, ranges and tiers in each slice."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray
from benchmarks.schema import Card
from benchmarks.statistics.resampling import seed_of
from leaderboard.cache import Budget, DiskCache, MemoryCache
from leaderboard.ledger.editions import is_current
from leaderboard.publication.entries import Entry, entries_of
from leaderboard.publication.origins import RunOrigin
from leaderboard.publication.results import Published
from leaderboard.publication.snapshot import Board, SliceKey, Snapshot, key_of
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.draws import Draws, read_draws, stacked
from leaderboard.ranking.pairs import Pairs, tests_of
from leaderboard.ranking.slices import Slice, ranked
from leaderboard.records import RunResult
from leaderboard.store.interface import Store


@dataclass(frozen=True)
class RunDraws:
    """The draws of one run as far as boards need them."""

    resamples: NDArray[np.float32]  # shape (rows, B)
    # row to its contributions, shape (G,), for rows of the headline
    contributions: dict[int, FloatArray]

    @classmethod
    def of(cls, draws: Draws, cells: Sequence[Cell], card: Card) -> RunDraws:
        """What a board needs of the draws of a run."""
        tested = (cell.row for cell in cells if key_of(cell) == headline(card))
        # In single precision they are published, so in single precision they are ranked by.
        return cls(
            np.asarray(draws.resamples, np.float32),
            {row: draws.contributions[row] for row in tested},
        )

    @property
    def nbytes(self) -> int:
        """What they take in memory."""
        return self.resamples.nbytes + sum(one.nbytes for one in self.contributions.values())


@dataclass(frozen=True)
class BoardRun:
    """One run on a board."""

    cells: Sequence[Cell]  # of all its rows, in their order; ranks they may have are not looked at
    # of its rows; called once for each board that is ranked. None: there are none.
    draws: Callable[[], RunDraws | None]


def headline(card: Card) -> SliceKey:
    """The slice whose entries are tested against each other for the snapshot.

    What else somebody looks at is tested then: all slices of all boards would take minutes.
    """
    one = card.headline
    return (one.measure, one.variant, one.split, one.facet, None)


def ranked_board(
    card: Card, runs: Sequence[BoardRun], known: Pairs | None = None
) -> tuple[Board, Pairs | None]:
    """The board of a benchmark, and the tests of its headline; None where that has no entry."""
    slices: dict[SliceKey, list[tuple[RunDraws | None, Cell]]] = {}
    for run in runs:
        draws = run.draws()
        for cell in run.cells:
            slices.setdefault(key_of(cell), []).append((draws, cell))
    pairs = None
    cells: list[Cell] = []
    for key, found in slices.items():
        one = _slice(found, tested=key == headline(card))
        if key == headline(card):
            pairs = _tested(one, card, known)
            cells += ranked(one, card, tests=pairs.tests).cells
        else:
            cells += ranked(one, card, tested=False).cells
    return Board(card, cells), pairs


def _slice(found: Sequence[tuple[RunDraws | None, Cell]], *, tested: bool) -> Slice:
    draws = Draws(
        resamples=stacked([d.resamples[cell.row] if d else None for d, cell in found]),
        contributions=stacked(
            [d.contributions.get(cell.row) if d and tested else None for d, cell in found]
        ),
    )
    return Slice(tuple(cell for _, cell in found), draws)


def _tested(one: Slice, card: Card, known: Pairs | None) -> Pairs:
    """The tests between the entries of a slice that may rank."""
    fit = np.array([cell.fit and cell.value is not None for cell in one.cells], bool)
    shares = np.where(fit[:, None], one.draws.contributions, np.nan)
    entry_ids = tuple(cell.entry_id for cell in one.cells)
    seed = seed_of(card.name, card.revision)
    return Pairs(card.revision, entry_ids, tests_of(entry_ids, shares, seed, known))


IN_MEMORY = 512 << 20
ON_DISK = 4 << 30  # A run of sixty rows takes 240 KB


class DrawsCache:
    """The draws of runs: from memory, else from a folder of this machine, else from the store.

    What is kept is known by the hash of the result it stands behind: it is right or it is not used.
    """

    def __init__(
        self,
        store: Store,  # where they are published
        folder: Path | None = None,  # of this machine; None: memory alone
        *,
        in_memory: int = IN_MEMORY,  # bytes kept in memory
        on_disk: int = ON_DISK,  # bytes kept in the folder
    ) -> None:
        self._store = store
        self._memory = MemoryCache[RunDraws](lambda draws: draws.nbytes, budget=Budget(in_memory))
        self._disk = None if folder is None else DiskCache(folder, on_disk, largest=on_disk)
        self.read_from_store = 0  # Runs whose draws were read from the store, for reports

    def draws(
        self, card: Card, submission_id: str, origin: RunOrigin, cells: Sequence[Cell]
    ) -> RunDraws:
        """The draws of a published run, whose rows are `cells` in their order."""
        key = _key(card, submission_id, origin)
        found = self._memory.get(key) or self._from_disk(key)
        if found is None:
            found = RunDraws.of(read_draws(self._store, card, cells), cells, card)
            self.read_from_store += 1
            if found.resamples.size:  # Else there are none yet, which is nothing to remember.
                self._to_disk(key, found)
        if found.resamples.size:
            self._memory.put(key, found)
        return found

    def put(self, card: Card, submission_id: str, origin: RunOrigin, draws: RunDraws) -> None:
        """Keep the draws of a run that is being published."""
        key = _key(card, submission_id, origin)
        self._memory.put(key, draws)
        self._to_disk(key, draws)

    def _from_disk(self, key: str) -> RunDraws | None:
        content = self._disk.get(key) if self._disk is not None else None
        if self._disk is None or content is None:
            return None
        try:
            with np.load(BytesIO(content), allow_pickle=False) as found:
                rows = found["rows"].tolist()
                tested = dict(zip(rows, found["contributions"], strict=True))
                return RunDraws(found["resamples"], tested)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            # A copy that cannot be read, of what the store has: it is read there again.
            self._disk.drop(key)
            return None

    def _to_disk(self, key: str, draws: RunDraws) -> None:
        if self._disk is None:
            return
        content = BytesIO()
        np.savez(
            content,
            resamples=draws.resamples,
            rows=np.array(list(draws.contributions), np.int64),
            contributions=np.array(list(draws.contributions.values()), np.float64),
        )
        self._disk.put(key, content.getvalue())


def _key(card: Card, submission_id: str, origin: RunOrigin) -> str:
    # The headline decides which contributions are kept.
    words = (card.name, card.headline.model_dump_json(), submission_id, origin.sha256)
    return hashlib.sha256("\n".join(words).encode()).hexdigest() + ".npz"


def build_snapshot(
    runs: Iterable[Published], cards: Mapping[str, Card], built_at: datetime
) -> Snapshot:
    """All boards from all published runs, without regard to any earlier snapshot.

    Runs of a benchmark that has no card here, or of another revision of it, are left out: a
    board never mixes revisions.
    """
    current = [
        run
        for run in runs
        if run.result.benchmark in cards and is_current(run.result, cards[run.result.benchmark])
    ]
    boards = {
        name: ranked_board(
            card, [_on_board(r, card) for r in current if r.result.benchmark == name]
        )[0]
        for name, card in cards.items()
    }
    return Snapshot(built_at=built_at, entries=_entries(current), boards=boards)


def _on_board(run: Published, card: Card) -> BoardRun:
    cells, draws = run.cells(), run.draws
    return BoardRun(cells, lambda: None if draws is None else RunDraws.of(draws, cells, card))


def _entries(runs: Sequence[Published]) -> dict[str, Entry]:
    submissions = {run.submission.submission_id: run.submission for run in runs}
    results: dict[str, list[RunResult]] = {}
    for run in runs:
        results.setdefault(run.submission.submission_id, []).append(run.result)
    return {
        entry_id: entry
        for name, submission in submissions.items()
        for entry_id, entry in entries_of(submission, results[name]).items()
    }
