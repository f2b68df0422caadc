"""Commands that others end: what they leave is what Ctrl-C leaves."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ended_in_order() -> Iterator[None]:
    """While this is entered, SIGTERM is as Ctrl-C, so that temporary folders are removed.

    They may hold private uploads, and whoever makes backups by the clock ends them by SIGTERM.
    """
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
