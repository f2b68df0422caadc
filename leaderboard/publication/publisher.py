"""Builds the snapshot from everything that is on the boards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from benchmarks.schema import Benchmark, Card
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication import snapshot
from leaderboard.publication.results import read_published
from leaderboard.publication.snapshot import Published
from leaderboard.records import Status
from leaderboard.store.interface import Store, transact


def cards_of(registry: Mapping[str, Benchmark]) -> dict[str, Card]:
    """The cards of benchmarks, by name."""
    return {name: benchmark.card for name, benchmark in registry.items()}


class Publisher:
    """Builds the snapshot anew only when what is on the boards has changed.

    Args:
        store: what is published there.
        cards: the benchmarks that have boards.
    """

    def __init__(self, store: Store, cards: Mapping[str, Card]) -> None:
        self._store = store
        self._cards = dict(cards)
        self._built_from: object = None
        self._built: dict[str, bytes] = {}

    def snapshot_files(
        self, built_at: datetime, statuses: Sequence[Status], new: Sequence[Published] = ()
    ) -> dict[str, bytes]:
        """The snapshot of the submissions that are on the boards.

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
        if key != self._built_from:
            built = snapshot.build_snapshot(self._runs(shown, new), self._cards, built_at)
            self._built = {snapshot.PATH: built.model_dump_json().encode()}
            self._built_from = key
        return self._built

    def publish_cards(self, built_at: datetime) -> None:
        """Make the boards show the benchmarks known here, if the snapshot shows others."""
        shown = snapshot.read_snapshot(self._store.public)
        if shown is None or {n: b.card for n, b in shown.boards.items()} != self._cards:
            ledger = Ledger(self._store)
            transact(
                self._store.public,
                lambda: self.snapshot_files(built_at, ledger.statuses()),
                "boards of new cards",
            )

    def _runs(self, shown: Sequence[Status], new: Sequence[Published]) -> list[Published]:
        replaced = {published.submission.submission_id for published in new}
        kept = [s for s in shown if s.submission.submission_id not in replaced]
        on_boards = {s.submission.submission_id for s in shown}
        fresh = [p for p in new if p.submission.submission_id in on_boards]
        return [*read_published(self._store, kept, self._cards), *fresh]
