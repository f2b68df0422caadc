"""What of the index no weight changes, made once for all pages that show it."""

from __future__ import annotations

import threading

from leaderboard.pages.index.base import IndexBase, index_base
from leaderboard.pages.index.marks import Strips
from leaderboard.pages.reading import View


class Prepared:
    """What no weight changes, kept for the latest view: a new object when the boards change."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: tuple[View, IndexBase, Strips] | None = None

    def of(self, view: View) -> tuple[IndexBase, Strips]:
        """Benchmarks with their resamples, and the bars of all metrics; made at the first use."""
        # Made inside the lock: whoever comes meanwhile would only do the same work.
        with self._lock:
            if self._made is None or self._made[0] is not view:
                base = index_base(view)
                self._made = view, base, Strips.of(base)
            return self._made[1:]
