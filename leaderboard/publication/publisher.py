"""Builds the snapshot of everything that is on the boards, from the one that is published."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import datetime

from benchmarks.schema import Benchmark, Card
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.boards import Snapshot
from leaderboard.publication.draws_shelf import DrawsShelf
from leaderboard.publication.earlier_boards import archived, cards_to_show
from leaderboard.publication.model_entries import PATH as MODELS
from leaderboard.publication.model_entries import track_bytes
from leaderboard.publication.origins import Origin
from leaderboard.publication.published import Published
from leaderboard.publication.snapshot_file import (
    PATH,
    parse_snapshot,
    read_snapshot,
    snapshot_changes,
)
from leaderboard.publication.static_page import STATIC_PATH, static_page
from leaderboard.publication.updating import Update
from leaderboard.ranking.pairs import pairs_file, pairs_path
from leaderboard.records import Status
from leaderboard.store.interface import NotFoundError, Repository, Store, transact


def cards_of(registry: Mapping[str, Benchmark]) -> dict[str, Card]:
    """The cards of the benchmarks that rank metrics, by name."""
    ranking = {name: one for name, one in registry.items() if one.track == "metrics"}
    return {name: benchmark.card for name, benchmark in ranking.items()}


def changes_of(public: Repository, update: Update, built: Snapshot) -> dict[str, bytes | None]:
    """What to commit so that a repository shows a snapshot, and the tests behind its tiers.

    The boards as one page lie beside it, for when the service does not answer.

    Args:
        public: the repository.
        update: what made the snapshot.
        built: the snapshot.
    """
    changes = snapshot_changes(public, built)
    changes[STATIC_PATH] = static_page(built)
    if update.track.entries or public.has(MODELS):
        changes[MODELS] = track_bytes(update.track)
    for name, pairs in update.ranked.items():
        if pairs is not None:
            changes[pairs_path(name)] = pairs_file(name, pairs)
        elif public.has(pairs_path(name)):
            changes[pairs_path(name)] = None
    return changes


class Publisher:
    """Builds the snapshot anew only when what is on the boards has changed, and of it only that.

    Several threads may share one.

    Args:
        store: what is published there.
        cards: the benchmarks that have boards.
    """

    def __init__(self, store: Store, cards: Mapping[str, Card]) -> None:
        self._store = store
        self._cards = dict(cards)
        self._shelf = DrawsShelf(store, store.cache and store.cache / "draws")
        self._lock = threading.Lock()
        self._built: tuple[object, dict[str, bytes | None]] | None = None
        self._last: tuple[bytes, Snapshot] | None = None

    def snapshot_files(
        self, built_at: datetime, statuses: Sequence[Status], new: Sequence[Published] = ()
    ) -> dict[str, bytes | None]:
        """The snapshot of the submissions that are on the boards, as changes of the store.

        A commit that loses its race calls this again; unless the race was lost to another
        publication, the answer is at hand.

        Args:
            built_at: the current time.
            statuses: all submissions as they will be after the commit.
            new: runs that are published with the commit; they replace older ones.
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
        update = Update(self._store, cards, self._shelf, last, new)
        # Of a commit that several share, the version before it is the one there was.
        version = public.head().partition("+")[0]
        built = update.snapshot(shown, built_at, version)
        changes = changes_of(public, update, built)
        self._shelf.tidy()
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
