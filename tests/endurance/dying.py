"""Dying at a chosen step: just before the n-th change of a file, or beside the n-th request."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from benchmarks.sources.client import httpx

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGES = frozenset({"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link"})
_STEADY = frozenset({"heartbeat", "leases"})
"""They work when they do, and would make the count of another start another one."""


class Countdown:
    """Counts steps; the process is gone at one of them."""

    def __init__(self, at: int, tell: Callable[[int], None]) -> None:
        self._at = at
        self._tell = tell
        self._steps = 0

    def step(self) -> None:
        """One more."""
        if threading.current_thread().name in _STEADY:
            return
        self._steps += 1
        self._tell(self._steps)
        if self._steps == self._at:
            os.kill(os.getpid(), signal.SIGKILL)


def at_changes(below: tuple[str, ...], countdown: Countdown) -> None:
    """Count every change of a file below some folders, and every wait for the disk.

    Between two of them lies at most the writing of one file, so a death at each of them leaves
    everything that a death can leave, but for a file that is written in part.
    """

    def hook(event: str, given: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = given
            changes = bool(flags & _WRITING)
        elif event in _CHANGES:
            path, changes = given[0], True
        else:
            return
        if changes and isinstance(path, str | os.PathLike):
            if str(path).startswith(below):
                countdown.step()
        elif changes and event in {"os.remove", "os.rmdir"}:  # relative to an open folder
            countdown.step()

    whole = os.fsync

    def fsync(fd: Any) -> None:
        countdown.step()
        whole(fd)

    os.fsync = fsync
    sys.addaudithook(hook)


def at_requests(countdown: Countdown) -> None:
    """Count every HTTP request twice: before it is sent, and when its answer is there."""
    whole = httpx.Client.send

    def send(client: Any, request: Any, **options: Any) -> Any:
        countdown.step()
        answer = whole(client, request, **options)
        countdown.step()
        return answer

    setattr(httpx.Client, "send", send)  # noqa: B010 (not a method of ours to assign)
