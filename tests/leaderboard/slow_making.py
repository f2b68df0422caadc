"""Something that takes as long to be made as a test wants it to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Slow:
    """Makes something once it is let go, and counts how often."""

    def __init__(self, result: Callable[[], Any]) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        self.times = 0
        self._result = result

    def __call__(self) -> Any:
        self.times += 1
        self.begun.set()
        assert self.go.wait(60)
        return self._result()
