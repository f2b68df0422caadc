"""The log of a box: always read, so that a talkative scorer never blocks; kept in part, and cleaned."""

from __future__ import annotations

import os
import re
import threading
import unicodedata
from collections import deque

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


_TERMINAL_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|.)")
"""One that sets a title and never ends takes its own line with it, and no more."""
_KEPT_CONTROLS = {"\n", "\t"}


def plain_text(data: bytes) -> str:
    """Readable text without terminal sequences, control, bidirectional or invisible characters."""
    text = data.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    text = _TERMINAL_SEQUENCE.sub("", text)
    return "".join(c for c in text if c in _KEPT_CONTROLS or _is_visible(c))


def one_line(data: bytes) -> str:
    """The same on a single line."""
    return " ".join(plain_text(data).split())


def _is_visible(character: str) -> bool:
    return unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
