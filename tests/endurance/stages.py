"""At which stage of its work a process is: in memory it shares, so that its death leaves it there."""

from __future__ import annotations

import functools
import mmap
import struct
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Any

from evaluator.worker.claims import ClaimedJobs, Claims
from evaluator.worker.handoff import RunSpool
from evaluator.worker.publishing import RunPublisher
from evaluator.worker.worker import Leftovers, Scoring
from leaderboard.ledger.ledger import Batch, Ledger
from leaderboard.states import State


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


_STEPS: tuple[tuple[type, str, Stage], ...] = (
    (Claims, "more", Stage.CLAIM),
    (Claims, "take", Stage.CLAIM),
    (Scoring, "scores", Stage.SCORE),
    (RunSpool, "put", Stage.OUTBOX),
    (RunSpool, "take", Stage.OUTBOX),
    (RunPublisher, "judged", Stage.COMPUTE),
    (RunPublisher, "publish", Stage.PUBLISH),
    (Leftovers, "clear", Stage.CLEAR),
)
_SLOT = struct.Struct("<BBxxI")


class Board:
    """A line for each process: stage, attempts, steps."""

    def __init__(self, file: Path, lines: int = 64) -> None:
        if not file.exists():
            file.write_bytes(bytes(_SLOT.size * lines))
        with file.open("r+b") as opened:
            self._map = mmap.mmap(opened.fileno(), 0)

    def read(self, line: int) -> tuple[Stage, int, int]:
        """Stage, number of the attempt under way (0: none), steps so far."""
        stage, attempt, steps = _SLOT.unpack_from(self._map, line * _SLOT.size)
        return Stage(stage), attempt, steps

    def write(
        self,
        line: int,
        *,
        stage: Stage | None = None,
        attempt: int | None = None,
        steps: int | None = None,
    ) -> None:
        """Change some of it."""
        old = self.read(line)
        new = (stage, attempt, steps)
        merged = [was if now is None else now for was, now in zip(old, new, strict=True)]
        _SLOT.pack_into(self._map, line * _SLOT.size, *merged)


def tell_stages(board: Board, line: int) -> None:
    """From now on this process tells where it is; for a process that does nothing else."""
    board.write(line, stage=Stage.BETWEEN, attempt=0, steps=0)
    for owner, name, stage in _STEPS:
        setattr(owner, name, _told(getattr(owner, name), stage, board, line))
    _tell_attempts(board, line)


def _told(
    function: Callable[..., Any], stage: Stage, board: Board, line: int
) -> Callable[..., Any]:
    @functools.wraps(function)
    def told(*given: Any, **more: Any) -> Any:
        before = board.read(line)[0]
        board.write(line, stage=stage)
        try:
            return function(*given, **more)
        finally:
            board.write(line, stage=before)

    return told


def _tell_attempts(board: Board, line: int) -> None:
    """Told before a claim is written, and taken back when nothing is held any more."""
    write, tell = Ledger.write, ClaimedJobs.let_go

    def written(self: Ledger, batch: Callable[[], Batch], message: str) -> Any:
        def noted() -> Batch:
            wanted = batch()
            for name, events in wanted.events.items():
                if any(e.state is State.CLAIMED for e in events):
                    attempt = self.whole_status(name).attempts + 1
                    board.write(line, attempt=max(attempt, board.read(line)[1]))
            return wanted

        return write(self, noted, message)

    def let_go(self: ClaimedJobs, task: Any) -> None:
        tell(self, task)
        if self.empty:
            board.write(line, attempt=0)

    setattr(Ledger, "write", written)  # noqa: B010 (not a method of ours to assign)
    setattr(ClaimedJobs, "let_go", let_go)  # noqa: B010
