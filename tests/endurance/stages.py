"""At which stage of its work a worker is, read off what its main thread does."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from evaluator.worker.claims import Claims
from evaluator.worker.handoff import RunSpool
from evaluator.worker.publishing import RunPublisher
from evaluator.worker.worker import Leftovers, Scoring


class Stage(IntEnum):
    """What a worker does."""

    BETWEEN = 0
    """Starting, looking, or passing from one stage to the next."""
    CLAIM = 1
    SCORE = 2
    OUTBOX = 3
    COMPUTE = 4
    PUBLISH = 5
    CLEAR = 6


_STAGE_OF = {
    Claims.more.__code__: Stage.CLAIM,
    Claims.take.__code__: Stage.CLAIM,
    Scoring.scores.__code__: Stage.SCORE,
    RunSpool.put.__code__: Stage.OUTBOX,
    RunSpool.take.__code__: Stage.OUTBOX,
    RunPublisher.judged.__code__: Stage.COMPUTE,
    RunPublisher.publish.__code__: Stage.PUBLISH,
    Leftovers.clear.__code__: Stage.CLEAR,
}


def current_stage() -> Stage:
    """Stage of this process, whichever of its threads asks."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        if frame.f_code in _STAGE_OF:
            return _STAGE_OF[frame.f_code]
        frame = frame.f_back
    return Stage.BETWEEN


@dataclass(frozen=True)
class Trace:
    """Stages of a worker's steps, a byte each, in a file that outlives the worker."""

    file: Path

    def open(self) -> int:
        """A descriptor to note steps by."""
        return os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def read(self) -> tuple[Stage, ...]:
        """The stage of each step so far; a worker that died at a step has noted it."""
        return tuple(map(Stage, self.file.read_bytes())) if self.file.exists() else ()
