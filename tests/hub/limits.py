"""Rate limits, by the server's clock, told as the Hub tells them."""

from __future__ import annotations

import math
import threading
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime

from tests.hub.messages import Reply, error


@dataclass
class Limit:
    """So many of something in any window of time.

    Attributes:
        resource: what is counted, as the header names it.
        says: the text of the refusal.
        quota: how many; None for no limit.
        window_s: in how many seconds.
    """

    resource: str
    says: str
    quota: int | None = None
    window_s: float = 3600.0
    _taken: deque[datetime] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, now: datetime) -> Reply | None:
        """Count one more; a refusal where that would be too many."""
        if self.quota is None:
            return None
        with self._lock:
            self._drop_old(now)
            if len(self._taken) < self.quota:
                self._taken.append(now)
                return None
            wait = self.window_s - (now - self._taken[0]).total_seconds()
        seconds = max(1, math.ceil(wait))
        headers = {"Retry-After": str(seconds), **self._headers(0, seconds)}
        return error(429, self.says.format(quota=self.quota), "", **headers)

    def give_back(self, taken: datetime) -> None:
        """What was counted was not done after all."""
        with self._lock:
            if taken in self._taken:
                self._taken.remove(taken)

    def told(self, now: datetime) -> dict[str, str]:
        """The headers of a reply: what is left."""
        if self.quota is None:
            return {}
        with self._lock:
            self._drop_old(now)
            left = self.quota - len(self._taken)
            first = self._taken[0] if self._taken else now
        seconds = max(1, math.ceil(self.window_s - (now - first).total_seconds()))
        return self._headers(left, seconds)

    def _headers(self, left: int, seconds: int) -> dict[str, str]:
        policy = f'"fixed window";"{self.resource}";q={self.quota};w={round(self.window_s)}'
        return {"RateLimit": f'"{self.resource}";r={left};t={seconds}', "RateLimit-Policy": policy}

    def _drop_old(self, now: datetime) -> None:
        while self._taken and (now - self._taken[0]).total_seconds() >= self.window_s:
            self._taken.popleft()


def commit_limit() -> Limit:
    """On commits, of the whole server; the tightest of the Hub's."""
    return Limit(
        "commits",
        "You have exceeded the rate limit for repository commits ({quota} per hour).",
    )


def request_limit() -> Limit:
    """On all requests, in five minutes."""
    return Limit("api", "You have exceeded the rate limit of {quota} requests.", window_s=300.0)
