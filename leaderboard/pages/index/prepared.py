"""Inputs of the index before weights, made once for all pages that show it."""

from __future__ import annotations

import threading

from leaderboard.pages.index.base import IndexBase, index_base
from leaderboard.pages.reading import View

_KEPT = 2
"""Views: the boards of real data, and the simulated ones."""


class Prepared:
    """What no weight changes, kept for the latest views: new objects when the boards change."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: list[tuple[View, IndexBase]] = []

    def of(self, view: View) -> IndexBase:
        """Benchmarks with their resamples; made at the first use."""
        # Made inside the lock: whoever comes meanwhile would only do the same work.
        with self._lock:
            found = next((one for one in self._made if one[0] is view), None)
            if found is None:
                found = view, index_base(view)
            self._made = [found, *(one for one in self._made if one is not found)][:_KEPT]
            return found[1]
