"""A worker's sign of life: what it does, told every few seconds from a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from benchmarks.errors import TransientError
from evaluator.scoring.progress import Progress
from leaderboard.store.live import Live, Pulse

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
        self._clock = clock
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._depth = 0
        self._thread: threading.Thread | None = None

    def idle_as(self, idle: Pulse) -> None:
        """From now on the worker waits with this pulse, for example because it can do less."""
        self._idle = idle
        self._replace(idle)

    def working_on(self, submission_id: str) -> None:
        """From now on the pulse names this submission; empty: the worker waits."""
        self._replace(self._idle.model_copy(update={"submission_id": submission_id}))

    def tell(self, run: RunProgress) -> None:
        """From now on the pulse shows this progress."""
        progress = run.progress
        self._replace(
            self._idle.model_copy(
                update={
                    "submission_id": run.submission,
                    "stage": f"{run.benchmark}: {progress.stage}",
                    "done": progress.done,
                    "total": progress.total,
                    "rate_per_s": progress.rate,
                    "eta_s": progress.eta_s,
                }
            )
        )

    def beat(self) -> None:
        """One beat now. A pulse may be lost: a fault of the store is logged, no more."""
        with self._lock:
            pulse = self._pulse.model_copy(update={"at": self._clock()})
        try:
            self._live.beat(pulse)
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

    def _replace(self, pulse: Pulse) -> None:
        with self._lock:
            self._pulse = pulse

    def _go_on(self) -> None:
        while not self._stop.wait(BEAT_S):
            self.beat()
