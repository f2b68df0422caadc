"""The log of a box: always read, so that a talkative scorer never blocks; kept only in part."""

from __future__ import annotations

import os
import threading
from collections import deque

from evaluator.isolation.supervising.text import plain_text

_CHUNK = 65536


class BoundedLog:
    """Keeps the first and the last part of what it is fed, and counts what is between."""

    def __init__(self, limit: int) -> None:
        self._head_room = limit // 2
        self._tail_room = limit - limit // 2
        self._head = bytearray()
        self._tail: deque[int] = deque(maxlen=self._tail_room)
        self.total = 0

    def feed(self, data: bytes) -> None:
        """Take in more output."""
        self.total += len(data)
        room = self._head_room - len(self._head)
        self._head += data[:room]
        # Only the end of a chunk can survive in the tail.
        self._tail.extend(data[max(room, len(data) - self._tail_room, 0) :])

    def text(self) -> str:
        """What was kept, harmless to show."""
        left_out = self.total - len(self._head) - len(self._tail)
        middle = f"\n[{left_out} bytes left out]\n".encode() if left_out else b""
        return plain_text(bytes(self._head) + middle + bytes(self._tail))


class LogDrain:
    """Reads a pipe to its end on a thread of its own."""

    def __init__(self, fd: int, limit: int) -> None:
        self._fd = fd
        self._log = BoundedLog(limit)
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._drain, name="box log", daemon=True)
        self._thread.start()

    def text(self) -> str:
        """What was kept so far."""
        with self._lock:
            return self._log.text()

    def finish(self, timeout_s: float) -> bool:
        """Wait for the end of the pipe, which comes once every process of the box is gone."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _drain(self) -> None:
        while data := os.read(self._fd, _CHUNK):
            with self._lock:
                self._log.feed(data)
