"""Progress of a run, and its estimated end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """A moment of a run."""

    done: int  # pairs that have been scored, those of an earlier start included
    total: int  # pairs of the run
    # pairs per second of this start; 0 where nothing is done yet. The time up to the first pairs
    # counts only until there are others: it goes to loading a model
    rate: float
    eta_s: float | None  # seconds that are left at this rate; None where that is not known
    stage: str  # what is being done, in one word


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
        self._done = already_done
        self._stage = stage
        self._every_s = every_s
        self._clock = clock
        self._since = (clock(), already_done)
        self._after_first: tuple[float, int] | None = None
        self._told = float("-inf")
        self._tell()

    def advance(self, pairs: int) -> None:
        """So many more pairs are done."""
        self._done += pairs
        if pairs and self._after_first is None:
            self._after_first = (self._clock(), self._done)
        if self._done >= self._total or self._clock() - self._told >= self._every_s:
            self._tell()

    def enter(self, stage: str) -> None:
        """From now on this is being done; told with the next word."""
        if stage != self._stage:
            self._stage = stage
            self._told = float("-inf")

    def now(self) -> Progress:
        """Where the run is."""
        rate = self._rate()
        left = self._total - self._done
        eta = 0.0 if left <= 0 else left / rate if rate else None
        return Progress(self._done, self._total, rate, eta, self._stage)

    def _rate(self) -> float:
        now = self._clock()
        for moment in (self._after_first, self._since):
            if moment is not None and self._done > moment[1] and now > moment[0]:
                return (self._done - moment[1]) / (now - moment[0])
        return 0.0

    def _tell(self) -> None:
        self._told = self._clock()
        if self._listener is not None:
            self._listener(self.now())
