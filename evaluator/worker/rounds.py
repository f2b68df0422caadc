"""The worker's loop: one thing after another, a pause where there is none, longer ones in trouble."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.errors import TransientError
from evaluator.worker.claims.backoff import Backoff
from evaluator.worker.claims.heartbeat import Heartbeat
from evaluator.worker.upkeep.disk_room import is_full
from leaderboard.store.interface import NOT_LET_IN

_STOP_SEEN_WITHIN_S = 0.5

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Rounds:
    """Does the next thing again and again.

    Attributes:
        step: does it; False if there was nothing to do.
        heart: says why nothing is done.
        wake: set where something new may be waiting.
        backoff: pauses while the store fails.
    """

    step: Callable[[], bool]
    heart: Heartbeat
    wake: threading.Event | None = None
    backoff: Backoff = field(default_factory=Backoff)

    def until(self, stop: threading.Event, poll_s: float) -> None:
        """Go on until told to stop.

        Args:
            stop: ends it, within half a second where nothing is done.
            poll_s: the pause where there is nothing to do and nothing wakes it.
        """
        while not stop.is_set():
            pause = self._once(poll_s)
            if pause:
                self._wait(stop, pause)

    def _once(self, poll_s: float) -> float:
        """One step, and for how long to pause after it."""
        try:
            worked = self.step()
        except TransientError as error:
            log.warning("Nothing can be done for now: %s", error)
            self.heart.waiting(f"waiting: {_why(error)}")
            return self.backoff.next_s()
        except Exception:
            log.exception("The worker met a defect and goes on.")
            return poll_s
        if self.backoff.failing:
            self.backoff.reset()
            self.heart.working_on("")
        return 0.0 if worked else poll_s

    def _wait(self, stop: threading.Event, seconds: float) -> None:
        if self.wake is None:
            stop.wait(seconds)
            return
        ends = time.monotonic() + seconds
        while not stop.is_set() and (left := ends - time.monotonic()) > 0.0:
            if self.wake.wait(min(left, _STOP_SEEN_WITHIN_S)):
                self.wake.clear()
                return


def _why(error: TransientError) -> str:
    if is_full(error):
        return "the disk has no room"
    if error.code in NOT_LET_IN:
        return "the Hub refuses the token"
    return "the store does not answer"
