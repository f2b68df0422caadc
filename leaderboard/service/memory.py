"""Gives memory back that the C library keeps for a process that serves pages for weeks.

A cold board of five hundred metrics is read from a thousand files, in threads. What they freed lies
between what is still used, in the pools that glibc keeps for each thread, and stays the process's.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

import pyarrow as pa

EVERY_S = 5.0
_ARENA_MAX = -8  # M_ARENA_MAX of <malloc.h>
_ARENAS = 2


def keep_small(every_s: float = EVERY_S) -> Callable[[], None]:
    """Share few pools among all threads, and give back what is free every few seconds.

    Arrow takes its memory from the C library too, instead of a pool of its own that keeps what was
    freed. Where the C library is not glibc nothing is done. Call it before other threads are started.
    """
    ended = threading.Event()
    library = ctypes.CDLL(None)
    if not hasattr(library, "malloc_trim"):
        return ended.set
    library.mallopt(_ARENA_MAX, _ARENAS)
    pa.set_memory_pool(pa.system_memory_pool())

    def run() -> None:
        while not ended.wait(every_s):
            library.malloc_trim(0)

    threading.Thread(target=run, name="memory", daemon=True).start()
    return ended.set
