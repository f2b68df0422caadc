"""Stopping a worker in good order when its process is told to end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from benchmarks.errors import TransientError

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StoppedError(TransientError):
    """The worker was told to stop; nothing failed."""

    def __init__(self) -> None:
        super().__init__("stopped", "The worker was stopped; what was finished is kept.")


@contextmanager
def stop_on_signals(
    stop: threading.Event,
    wake: threading.Event | None = None,
    also: Callable[[], object] = lambda: None,
) -> Iterator[None]:
    """Until this is left, the first signal to end sets the event, and the next one interrupts.

    Only the main thread may enter.
    """
    signals = 0

    def set_events() -> None:
        stop.set()
        if wake is not None:
            wake.set()
        also()

    def told(_: int, __: FrameType | None) -> None:
        nonlocal signals
        signals += 1
        if signals > 1:
            raise KeyboardInterrupt
        # The main thread may be within the lock of one of these events just now.
        threading.Thread(target=set_events, name="stop", daemon=True).start()

    before = {number: signal.signal(number, told) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
