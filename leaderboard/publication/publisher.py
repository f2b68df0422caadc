"""Builds the snapshot of everything that is on the boards, from the one that is published.

The cells of all runs of a benchmark make its board: ranks, ranges and tiers in each slice.
"""

from __future__ import annotations

import hashlib
import threading
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks import cases, parquet
from benchmarks.arrays import FloatArray
from benchmarks.schema import Benchmark, Card
from leaderboard.cache import Budget, DiskCache, MemoryCache
from leaderboard.ledger import queue_file
from leaderboard.ledger.editions import Edition, is_current
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication import pairs_file, snapshot
from leaderboard.publication.earlier_boards import archived, cards_to_show
from leaderboard.publication.entries import Entry, StoredEntries, entries_of, stored
from leaderboard.publication.model_entries import PATH as MODELS
from leaderboard.publication.model_entries import (
    ModelEntry,
    ModelTrack,
    entry_of,
    readable_track,
    track_bytes,
)
from leaderboard.publication.pairs_file import pairs_bytes, pairs_path
from leaderboard.publication.results import (
    Origin,
    Published,
    RunOrigin,
    origin_of,
    read_result,
    with_clearance,
)
from leaderboard.publication.snapshot import (
    PATH,
    Board,
    SliceKey,
    Snapshot,
    key_of,
    parse_snapshot,
    read_snapshot,
    snapshot_changes,
)
from leaderboard.publication.static_page import STATIC_PATH, static_page
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.draws import Draws, read_draws, stacked
from leaderboard.ranking.slices import Ranked, Slice, ranked
from leaderboard.records import RunResult, Status, Submission
from leaderboard.store.interface import NotFoundError, Repository, Store, transact


@dataclass(frozen=True)
class RunDraws:
    """The draws of one run as far as boards need them."""

    resamples: NDArray[np.float32]  # shape (rows, B)
    contributions: FloatArray  # shape (rows, G)

    @classmethod
    def of(cls, draws: Draws) -> RunDraws:
        """What a board needs of the draws of a run."""
        # In single precision they are published, so in single precision they are ranked by.
        return cls(np.asarray(draws.resamples, np.float32), draws.contributions)

    @property
    def nbytes(self) -> int:
        """What they take in memory."""
        return self.resamples.nbytes + self.contributions.nbytes


@dataclass(frozen=True)
class BoardRun:
    """One run on a board."""

    cells: Sequence[Cell]  # of all its rows, in their order; ranks they may have are not looked at
    # of its rows; called once for each board that is ranked. None: there are none.
    draws: Callable[[], RunDraws | None]


def ranked_board(card: Card, runs: Sequence[BoardRun]) -> tuple[Board, Ranked | None]:
    """The board of a benchmark, and its ranked headline; None where that has no entry."""
    slices: dict[SliceKey, list[tuple[RunDraws | None, Cell]]] = {}
    for run in runs:
        draws = run.draws()
        for cell in run.cells:
            slices.setdefault(key_of(cell), []).append((draws, cell))
    of = card.headline
    headline: SliceKey = (of.measure, of.variant, of.split, of.facet, None)
    in_order = {
        key: ranked(_slice(found, tested=key == headline or len(found) <= MOST_TESTED), card)
        for key, found in slices.items()
    }
    cells = [cell for one in in_order.values() for cell in one.cells]
    return Board(card, cells), in_order.get(headline)


MOST_TESTED = 60
"""Entries of a slice that is no headline above which it is tested when somebody looks at it: all
slices of a board of hundreds would take minutes."""


def _slice(found: Sequence[tuple[RunDraws | None, Cell]], *, tested: bool = True) -> Slice:
    draws = Draws(
        resamples=stacked([d.resamples[cell.row] if d else None for d, cell in found]),
        contributions=stacked(
            [d.contributions[cell.row] if d and tested else None for d, cell in found]
        ),
    )
    return Slice(tuple(cell for _, cell in found), draws)


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

    def draws(
        self, card: Card, submission_id: str, origin: RunOrigin, cells: Sequence[Cell]
    ) -> RunDraws:
        """The draws of a published run, whose rows are `cells` in their order."""
        key = _key(card, submission_id, origin)
        found = self._memory.get(key) or self._from_disk(key)
        if found is None:
            found = RunDraws.of(read_draws(self._store, card, cells))
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
                return RunDraws(found["resamples"], found["contributions"])
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            # A copy that cannot be read, of what the store has: it is read there again.
            self._disk.drop(key)
            return None

    def _to_disk(self, key: str, draws: RunDraws) -> None:
        if self._disk is None:
            return
        content = BytesIO()
        np.savez(content, resamples=draws.resamples, contributions=draws.contributions)
        self._disk.put(key, content.getvalue())


def _key(card: Card, submission_id: str, origin: RunOrigin) -> str:
    words = (card.name, submission_id, origin.sha256)
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
        name: ranked_board(card, [_on_board(r) for r in current if r.result.benchmark == name])[0]
        for name, card in cards.items()
    }
    return Snapshot(built_at=built_at, entries=_entries(current), boards=boards)


def _on_board(run: Published) -> BoardRun:
    cells, draws = run.cells(), run.draws
    return BoardRun(cells, lambda: None if draws is None else RunDraws.of(draws))


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


@dataclass(frozen=True)
class _Entry:
    """One submission on the boards."""

    submission: Submission  # its public record
    origin: Origin  # what of it is there
    # benchmark to result, as far as they were read; those that are not are as before
    results: Mapping[str, RunResult]
    known: bool  # whether the last snapshot has the very same of it
    cleared: str = ""  # why it is cleared of the suspicion of a lookup

    def on(self, card: Card | None) -> RunOrigin | None:
        """Its run on the board of a benchmark; None where there is none."""
        run = self.origin.runs.get(card.name) if card else None
        return run if card and run and run.stands_on(card) else None


class Update:
    """Makes one snapshot."""

    def __init__(
        self,
        store: Store,  # where results are
        cards: Mapping[str, Card],  # the benchmarks that have boards
        cache: DrawsCache,  # keeps draws from one snapshot to the next
        last: Snapshot | None = None,  # the snapshot before; None: everything is read and ranked
        new: Sequence[Published] = (),  # runs that are being published; they replace older ones
    ) -> None:
        self._store, self._cards, self._cache = store, cards, cache
        self._last = last
        self._last_cards = {n: b.card for n, b in last.boards.items()} if last else {}
        self._new: dict[str, dict[str, Published]] = {}
        for run in new:
            name = run.submission.submission_id
            self._new.setdefault(name, {})[run.result.benchmark] = run
        self.tests: dict[str, bytes | None] = {}
        """Boards that were ranked, with the file of the tests of their headlines."""
        self.track = ModelTrack()
        """The models of the last snapshot that was made."""

    def snapshot(self, shown: Sequence[Status], built_at: datetime, built_from: str) -> Snapshot:
        """The snapshot of these submissions, in their order."""
        present = [self._present(status) for status in shown]
        self.track = self._models(present)
        return Snapshot(
            built_at=built_at,
            entries=self._entries(present),
            boards={name: self._board(card, present) for name, card in self._cards.items()},
            built_from=built_from,
            origins={one.submission.submission_id: one.origin for one in present},
        )

    def _present(self, status: Status) -> _Entry:
        name = status.submission.submission_id
        before = self._last.origins.get(name) if self._last else None
        new = self._new.get(name, {})
        cleared = status.cleared
        if before is not None and before.since == status.since and not new:
            return _Entry(status.submission, before, {}, known=True, cleared=cleared)
        if cleared:
            new = {
                n: replace(run, result=with_clearance(run.result, cleared))
                for n, run in new.items()
            }
            self._new[name] = new
        results = {benchmark: run.result for benchmark, run in new.items()}
        for benchmark in status.submission.benchmarks:
            if benchmark not in results:
                found = read_result(self._store, status.submission, benchmark)
                results |= {} if found is None else {benchmark: with_clearance(found, cleared)}
        # Other files of the same results make no other board: the order is always one.
        ordered = {b: results[b] for b in sorted(results)}
        runs = {benchmark: origin_of(result) for benchmark, result in ordered.items()}
        origin = Origin(since=status.since, runs=runs)
        return _Entry(status.submission, origin, ordered, known=False, cleared=cleared)

    def _models(self, present: Sequence[_Entry]) -> ModelTrack:
        """The models among what is shown, by the order in which they came."""
        models = [one for one in present if one.submission.images is not None]
        before = readable_track(self._store.public).entries if self._last and models else {}
        found: dict[str, ModelEntry] = {}
        for one in models:
            name, since = one.submission.submission_id, one.origin.since
            entry = before.get(name)
            if not one.known or entry is None or entry.since != since:
                read = [self._result(one, benchmark) for benchmark in one.origin.runs]
                made = [entry_of(one.submission, result, since) for result in read if result]
                entry = made[0] if made else None
            if entry is not None:
                found[name] = entry
        return ModelTrack(found)

    def _entries(self, present: Sequence[_Entry]) -> StoredEntries:
        before: dict[str, dict[str, bytes]] = {}
        last = stored(self._last.entries if self._last else {})
        for entry_id, line in last.lines.items():
            before.setdefault(entry_id.rpartition("/")[0], {})[entry_id] = line
        found: dict[str, bytes] = {}
        for one in present:
            on_boards = [n for n in one.origin.runs if one.on(self._cards.get(n))]
            were = [n for n in one.origin.runs if one.on(self._last_cards.get(n))]
            if one.known and on_boards == were:
                found |= before.get(one.submission.submission_id, {})
            else:
                read = (self._result(one, name) for name in on_boards)
                results = [result for result in read if result is not None]
                found |= stored(entries_of(one.submission, results)).lines
        return StoredEntries(found)

    def _result(self, one: _Entry, benchmark: str) -> RunResult | None:
        read = one.results.get(benchmark) or read_result(self._store, one.submission, benchmark)
        return read and with_clearance(read, one.cleared)

    def _board(self, card: Card, present: Sequence[_Entry]) -> Board:
        runs = [(one, run) for one in present if (run := one.on(card)) is not None]
        before = self._last_runs(card)
        same = [(one.submission.submission_id, run.sha256) for one, run in runs] == before
        # Without origins, as after a change of the code, not even an empty board is known to be so.
        known = self._last is not None and bool(self._last.origins)
        if self._last and known and same and _ranks_alike(card, self._last_cards.get(card.name)):
            columns = self._last.boards[card.name].columns
            return Board(card, load=lambda: columns.table)
        cells, hashes = self._last_cells(card), dict(before)
        there = [self._run(card, one, run, cells, hashes) for one, run in runs]
        board, headline = ranked_board(card, there)
        self.tests[card.name] = None if headline is None else pairs_bytes(card, headline)
        return board

    def _last_runs(self, card: Card) -> list[tuple[str, str]]:
        """Submissions on the last board of this revision, with the hashes of their results."""
        last_card = self._last_cards.get(card.name)
        if self._last is None or last_card is None or not _of_one_edition(card, last_card):
            return []
        runs = ((name, o.runs.get(card.name)) for name, o in self._last.origins.items())
        return [(n, r.sha256) for n, r in runs if r is not None and r.stands_on(card)]

    def _last_cells(self, card: Card) -> dict[str, list[Cell]]:
        """Submission to the cells of its run on the last board."""
        found: dict[str, list[Cell]] = {}
        if self._last is None or card.name not in self._last.boards:
            return found
        for cell in self._last.boards[card.name].cells:
            found.setdefault(cell.entry_id.rpartition("/")[0], []).append(cell)
        return {name: sorted(cells, key=lambda cell: cell.row) for name, cells in found.items()}

    def _run(
        self,
        card: Card,
        one: _Entry,
        run: RunOrigin,
        last_cells: Mapping[str, Sequence[Cell]],
        last_hashes: Mapping[str, str],
    ) -> BoardRun:
        name = one.submission.submission_id
        published = self._new.get(name, {}).get(card.name)
        if published is not None and published.draws is not None:
            cells: Sequence[Cell] = published.cells()
            draws = RunDraws.of(published.draws)
            self._cache.put(card, name, run, draws)
            return BoardRun(cells, lambda: draws)
        if last_hashes.get(name) == run.sha256 and name in last_cells:
            cells = last_cells[name]
        else:
            result = self._result(one, card.name)
            cells = Published(one.submission, result).cells() if result else ()
        return BoardRun(cells, partial(self._cache.draws, card, name, run, cells))


def _ranks_alike(card: Card, other: Card | None) -> bool:
    """Whether two cards give the same ranks to the same runs."""
    if other is None:
        return False
    measures = {*card.measures, *other.measures}
    same = _of_one_edition(card, other) and card.headline == other.headline
    return same and all(
        card.higher_is_better(one) == other.higher_is_better(one) for one in measures
    )


def _of_one_edition(card: Card, other: Card) -> bool:
    return Edition.of_card(card) == Edition.of_card(other)


def cards_of(registry: Mapping[str, Benchmark]) -> dict[str, Card]:
    """The cards of the benchmarks that rank metrics, by name, as boards show and keep them.

    What a family adds to a card for its protocol is left out.
    """
    ranking = {name: one.card for name, one in registry.items() if one.track == "metrics"}
    fields = Card.model_fields
    return {
        name: Card.model_validate({field: getattr(card, field) for field in fields})
        for name, card in ranking.items()
    }


def changes_of(public: Repository, update: Update, built: Snapshot) -> dict[str, bytes | None]:
    """What to commit so that a repository shows a snapshot, and the tests behind its tiers.

    The boards as one page lie beside it, for when the service does not answer.
    """
    changes = snapshot_changes(public, built)
    changes[STATIC_PATH] = static_page(built)
    if update.track.entries or public.has(MODELS):
        changes[MODELS] = track_bytes(update.track)
    for name, tests in update.tests.items():
        path = pairs_path(name)
        if tests is not None or public.has(path):
            changes[path] = tests
    return changes


class Publisher:
    """Builds the snapshot anew only when what is on the boards has changed, and of it only that.

    Several threads may share one.
    """

    def __init__(self, store: Store, cards: Mapping[str, Card]) -> None:
        self._store = store
        self._cards = dict(cards)
        self._cache = DrawsCache(store, store.cache and store.cache / "draws")
        self._lock = threading.Lock()
        self._built: tuple[object, dict[str, bytes | None]] | None = None
        self._last: tuple[bytes, Snapshot] | None = None

    def snapshot_files(
        self, built_at: datetime, statuses: Sequence[Status], new: Sequence[Published] = ()
    ) -> dict[str, bytes | None]:
        """The snapshot of the submissions that are on the boards, as changes of the store.

        A commit that loses its race calls this again; unless the race was lost to another
        publication, the answer is at hand.
        """
        shown = [status for status in statuses if status.on_boards]
        fresh = [published.result for published in new]
        key = (
            [(s.submission.submission_id, s.since) for s in shown],
            [(r.submission_id, r.benchmark, r.judged_at) for r in fresh],
        )
        with self._lock:
            if self._built is None or self._built[0] != key:
                self._built = key, self._build(built_at, shown, new)
            return self._built[1]

    def origins(self) -> Mapping[str, Origin]:
        """Submission to what of it the published snapshot shows; none where there is none."""
        with self._lock:
            last = self._published()
        return last.origins if last else {}

    def publish_cards(self, built_at: datetime) -> None:
        """Make the boards show the benchmarks known here, if the snapshot shows others.

        A snapshot of an older form, or of other submissions than are on the boards, is built
        again as well.
        """
        ledger = Ledger(self._store)
        if self._is_current(ledger.statuses()):
            return
        transact(
            self._store.public,
            lambda: self.snapshot_files(built_at, ledger.statuses()),
            "boards of new cards",
        )

    def _is_current(self, statuses: Sequence[Status]) -> bool:
        shown = read_snapshot(self._store.public)
        cards = cards_to_show(self._store.public, shown, self._cards)
        if shown is None or {n: b.card for n, b in shown.boards.items()} != cards:
            return False
        on_boards = {s.submission.submission_id for s in statuses if s.on_boards}
        return self._store.public.has(PATH) and set(shown.origins) == on_boards

    def _build(
        self, built_at: datetime, shown: Sequence[Status], new: Sequence[Published]
    ) -> dict[str, bytes | None]:
        public = self._store.public
        last = self._published()
        cards = cards_to_show(public, last, self._cards)
        update = Update(self._store, cards, self._cache, last, new)
        # Of a commit that several share, the version before it is the one there was.
        version = public.head().partition("+")[0]
        built = update.snapshot(shown, built_at, version)
        changes = changes_of(public, update, built)
        # What makes way for another edition of a benchmark stays to be looked at.
        return {**archived(public, last, cards), **changes}

    def _published(self) -> Snapshot | None:
        """The snapshot that is published; parsed again only when it has changed."""
        try:
            content = self._store.public.read(PATH)
        except NotFoundError:
            return None
        if self._last is None or self._last[0] != content:
            self._last = content, parse_snapshot(content)
        return self._last[1]


def table_schemas() -> Mapping[str, pa.Schema]:
    """Name of a table to its columns; each benchmark's own are those of `scores` and `cases`."""
    return {
        "submissions": queue_file.SCHEMA,
        "boards": snapshot.SCHEMA,
        "pairs": pairs_file.SCHEMA,
        "scores": parquet.SCHEMA,
        "cases": cases.SCHEMA,
    }
