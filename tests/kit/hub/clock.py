"""The test Hub's own time, and what it counts by it: requests, commits, rate limits."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from tests.kit.hub.messages import Reply, error


class ServerClock:
    """A server's own idea of the time: that of this machine until it is told otherwise."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._base = datetime.now(UTC)
        self._since = time.monotonic()
        self._rate = 1.0

    def now(self) -> datetime:
        with self._lock:
            return self._read()

    def set(self, when: datetime) -> None:
        """Go on from another time."""
        with self._lock:
            self._move(when, self._rate)

    def advance(self, seconds: float) -> None:
        """Jump ahead; with a negative number back."""
        with self._lock:
            self._move(self._read() + timedelta(seconds=seconds), self._rate)

    def run(self, rate: float) -> None:
        """Let so many seconds of the server pass in one; 0 stops the clock."""
        with self._lock:
            self._move(self._read(), rate)

    def header(self) -> str:
        """The time as the header `Date` tells it: whole seconds."""
        return format_datetime(self.now(), usegmt=True)

    def _read(self) -> datetime:
        return self._base + timedelta(seconds=(time.monotonic() - self._since) * self._rate)

    def _move(self, when: datetime, rate: float) -> None:
        self._base, self._since, self._rate = when, time.monotonic(), rate


def told(when: datetime) -> str:
    """A time as the Hub's API tells it."""
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


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


@dataclass
class CommitLimit:
    """So many commits of the whole server within any hour; the tightest limit of the Hub's."""

    quota: int | None = None  # how many; None for no limit
    says: str = "You have exceeded the rate limit for repository commits ({quota} per hour)."
    window_s: float = 3600.0
    _taken: deque[datetime] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, now: datetime) -> Reply | None:
        """Count one more; a refusal where that would be too many."""
        if self.quota is None:
            return None
        with self._lock:
            while self._taken and (now - self._taken[0]).total_seconds() >= self.window_s:
                self._taken.popleft()
            if len(self._taken) < self.quota:
                self._taken.append(now)
                return None
            wait = self.window_s - (now - self._taken[0]).total_seconds()
        seconds = max(1, math.ceil(wait))
        headers = {
            "Retry-After": str(seconds),
            "RateLimit": f'"commits";r=0;t={seconds}',
            "RateLimit-Policy": f'"fixed window";"commits";q={self.quota};w={self.window_s:.0f}',
        }
        return error(429, self.says.format(quota=self.quota), "", **headers)

    def give_back(self, taken: datetime) -> None:
        """What was counted was not done after all."""
        with self._lock:
            if taken in self._taken:
                self._taken.remove(taken)
