"""Work in several threads whose results come in order, a bounded number of them ahead."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_AHEAD = 2


def usable_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0))


def in_order(work: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """What `work` makes of each item, in the order of the items.

    Args:
        work: called in any thread.
        items: read here, and at most two for each thread ahead of what is taken from the results.
        threads: at most so many at work.
    """
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="look") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > _AHEAD * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for left in waiting:
                left.cancel()
