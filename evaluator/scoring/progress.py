"""How far a run is, and when it will be done."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """A moment of a run.

    Attributes:
        done: pairs that have been scored, those of an earlier start included.
        total: pairs of the run.
        rate: pairs per second since this start; 0 where nothing is done yet.
        eta_s: seconds that are left at this rate; None where that is not known.
        stage: what is being done, in one word.
    """

    done: int
    total: int
    rate: float
    eta_s: float | None
    stage: str


Listener = Callable[[Progress], None]


class Tracker:
    """Counts, and tells a listener now and then; the first and last word always get through."""

    def __init__(
        self,
        total: int,
        listener: Listener | None = None,
        *,
        already_done: int = 0,
        stage: str = "scoring",
        every_s: float = 0.5,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total = total
        self._listener = listener
        self._already_done = already_done
        self._done = already_done
        self._stage = stage
        self._every_s = every_s
        self._clock = clock
        self._started = clock()
        self._told = float("-inf")
        self._tell()

    def advance(self, pairs: int) -> None:
        """So many more pairs are done."""
        self._done += pairs
        if self._done >= self._total or self._clock() - self._told >= self._every_s:
            self._tell()

    def now(self) -> Progress:
        """Where the run is."""
        seconds = self._clock() - self._started
        fresh = self._done - self._already_done
        rate = fresh / seconds if fresh and seconds > 0 else 0.0
        left = self._total - self._done
        eta = 0.0 if left <= 0 else left / rate if rate else None
        return Progress(self._done, self._total, rate, eta, self._stage)

    def _tell(self) -> None:
        self._told = self._clock()
        if self._listener is not None:
            self._listener(self.now())
