"""What was asked of the test Hub, counted."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime


@dataclass
class Tally:
    """Requests by method, repository and kind; commits by repository with their times."""

    _requests: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    _commits: dict[str, list[datetime]] = field(default_factory=lambda: defaultdict(list))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note_request(self, method: str, repository: str, what: str) -> None:
        with self._lock:
            self._requests[method, repository, what] += 1

    def note_commit(self, repository: str, when: datetime) -> None:
        with self._lock:
            self._commits[repository].append(when)

    def requests(self, method: str = "", repository: str = "", what: str = "") -> int:
        """How many requests: of a method, of a repository, of a kind (`commit`, `resolve`...)."""
        with self._lock:
            return sum(
                number
                for (had, name, kind), number in self._requests.items()
                if method in {"", had} and repository in {"", name} and what in {"", kind}
            )

    def commits(self, repository: str = "") -> int:
        """How many commits were made, by whatever way, in one repository or in all."""
        return len(self._times(repository))

    def peak_commits(self, repository: str = "", *, window_s: float = 3600.0) -> int:
        """The most commits in any window of time, by the server's clock."""
        return peak(self._times(repository), window_s)

    def reset(self) -> None:
        """Begin to count anew."""
        with self._lock:
            self._requests.clear()
            self._commits.clear()

    def _times(self, repository: str) -> list[datetime]:
        with self._lock:
            names = [repository] if repository else list(self._commits)
            return sorted(when for name in names for when in self._commits.get(name, ()))


def peak(times: Sequence[datetime], window_s: float) -> int:
    """The most of these times, in order, that lie within any window."""
    most = first = 0
    for last, when in enumerate(times):
        while (when - times[first]).total_seconds() >= window_s:
            first += 1
        most = max(most, last - first + 1)
    return most
