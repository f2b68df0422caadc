"""The boards of earlier editions as pages read them: once per change of the store."""

from __future__ import annotations

import threading

from benchmarks.schema import Card
from leaderboard.reevaluation.archive import old_places
from leaderboard.reevaluation.earlier_boards import EarlierBoard, earlier_tags, read_board
from leaderboard.store.interface import Repository


class EarlierBoards:
    """Keeps what was read until the store moves on.

    Args:
        public: where the boards are.
    """

    def __init__(self, public: Repository) -> None:
        self._public = public
        self._lock = threading.Lock()
        self._head: str | None = None
        self._tags: dict[str, tuple[str, ...]] = {}
        self._boards: dict[tuple[str, str], EarlierBoard | None] = {}
        self._old: dict[str, dict[str, tuple[str, ...]]] = {}

    def tags(self, card: Card) -> tuple[str, ...]:
        """The editions of a benchmark whose boards are kept, the latest first, but for its own."""
        with self._lock:
            self._refresh()
            if card.name not in self._tags:
                self._tags[card.name] = earlier_tags(self._public, card.name, card)
            return self._tags[card.name]

    def board(self, card: Card, tag: str) -> EarlierBoard | None:
        """The last board of an edition; None where none is kept."""
        if tag not in self.tags(card):
            return None  # A tag comes with a link: only what is listed is ever asked for.
        with self._lock:
            key = card.name, tag
            if key not in self._boards:
                self._boards[key] = read_board(self._public, card.name, tag)
            return self._boards[key]

    def old_results(self, submission_id: str) -> dict[str, tuple[str, ...]]:
        """Tag to the benchmarks of which a submission has old results under it."""
        with self._lock:
            self._refresh()
            if submission_id not in self._old:
                self._old[submission_id] = old_places(self._public, submission_id)
            return self._old[submission_id]

    def _refresh(self) -> None:
        head = self._public.head()
        if head != self._head:
            self._head, self._tags, self._boards, self._old = head, {}, {}, {}
