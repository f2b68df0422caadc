"""A process whose own clock is wrong, whoever asks it: `time`, `datetime`, and file locks too."""

from __future__ import annotations

import datetime as datetime_module
import sys
import time
from typing import Any

OURS = ("benchmarks", "leaderboard", "evaluator", "pydantic", "filelock", "email", "logging")


def set_wrong(seconds: float) -> None:
    """From now on this process takes it to be so much later; for a process that ends with it."""
    right, right_ns = time.time, time.time_ns
    time.time = lambda: right() + seconds
    time.time_ns = lambda: right_ns() + int(seconds * 1e9)
    right_class = datetime_module.datetime

    class Wrong(right_class):  # type: ignore[valid-type, misc]
        """Its `now` is that of the wrong clock; in all else it is the right class."""

        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return right_class.now(tz) + datetime_module.timedelta(seconds=seconds)

        @classmethod
        def utcnow(cls) -> Any:
            return right_class.now() + datetime_module.timedelta(seconds=seconds)

    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in OURS and vars(module).get("datetime") is right_class:
            module.datetime = Wrong  # type: ignore[attr-defined]
