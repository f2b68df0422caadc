"""A worker's sign of life: what it does, told every few seconds from a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from benchmarks.errors import TransientError
from evaluator.scoring.progress import Progress
from leaderboard.store.live.interface import Live, Pulse

BEAT_S = 2.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunProgress:
    """Where a run (one submission on one benchmark) stands, for whoever listens.

    Attributes:
        submission: its id.
        metric: its name on the boards; says nothing where it is private.
        benchmark: the benchmark.
        progress: of this run.
    """

    submission: str
    metric: str
    benchmark: str
    progress: Progress


class Heartbeat:
    """Beats while entered, so that a long batch is no silence; may be entered within itself.

    Args:
        live: where pulses go.
        idle: the pulse of the worker while it waits.
        clock: the current time, with a time zone.
    """

    def __init__(self, live: Live, idle: Pulse, clock: Callable[[], datetime]) -> None:
        self._live = live
        self._idle = idle
        self._pulse = idle
        self._claimed: tuple[str, ...] = ()
        self._attempt = 0
        self._beaten = False
        self._clock = clock
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._depth = 0
        self._thread: threading.Thread | None = None

    @property
    def pulse(self) -> Pulse:
        """What is told of the worker now."""
        with self._lock:
            return self._pulse

    def idle_as(self, idle: Pulse) -> None:
        """From now on the worker waits with this pulse, for example because it can do less."""
        self._idle = idle
        self._replace()

    def holding(self, submission_ids: Iterable[str]) -> None:
        """From now on the pulse names these as claimed; public ids."""
        self._claimed = tuple(submission_ids)
        self._replace(keep=True)

    def working_on(self, submission_id: str, attempt: int = 0) -> None:
        """From now on the pulse names this submission; empty: the worker waits.

        A worker that beats does so at once: whatever kills it next is known by what it was at.
        """
        self._attempt = attempt
        self._replace(submission_id=submission_id, attempt=attempt)
        if submission_id and self._beaten:
            self.beat()

    def waiting(self, why: str) -> None:
        """From now on the pulse says why nothing is done."""
        self._replace(stage=why)

    def tell(self, run: RunProgress, last_line: str = "") -> None:
        """From now on the pulse shows this progress, and the last line that the scorer printed."""
        progress = run.progress
        self._replace(
            submission_id=run.submission,
            stage=f"{run.benchmark}: {progress.stage}",
            done=progress.done,
            total=progress.total,
            rate_per_s=progress.rate,
            eta_s=progress.eta_s,
            attempt=self._attempt,
            last_line=last_line,
        )

    def beat(self) -> None:
        """One beat now. A pulse may be lost: a fault of the store is logged, no more."""
        with self._lock:
            pulse = self._pulse
        self._beaten = True
        try:
            self._live.beat(pulse.model_copy(update={"at": self._clock()}))
        except (OSError, TransientError) as error:
            log.warning("No heartbeat: %s", error)

    def __enter__(self) -> Self:
        self._depth += 1
        if self._depth == 1:
            self.beat()
            self._stop.clear()
            self._thread = threading.Thread(target=self._go_on, name="heartbeat", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0 and self._thread is not None:
            self._stop.set()
            self._thread.join()

    def _replace(self, *, keep: bool = False, **shown: object) -> None:
        with self._lock:
            base = self._pulse if keep else self._idle
            self._pulse = base.model_copy(update={**shown, "claimed": self._claimed})

    def _go_on(self) -> None:
        while not self._stop.wait(BEAT_S):
            self.beat()
