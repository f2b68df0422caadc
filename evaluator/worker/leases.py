"""Renewal of the leases on what a worker holds, all of them in one commit every now and then."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Self

from benchmarks.errors import TransientError
from evaluator.worker.liveness import LEASE
from evaluator.worker.tasks import Setting
from leaderboard.ledger.batch import Batch
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Event, Status
from leaderboard.states import RENEWED

log = logging.getLogger(__name__)

_JOIN_S = 5.0
_AGAIN_AFTER = timedelta(minutes=1)


@dataclass
class LeaseRenewal:
    """While entered, a thread renews what runs out soon: a run may take longer than any lease."""

    at: Setting
    held: Callable[[], Iterable[str]]  # ids of what this worker holds now
    lease: Callable[[], timedelta]  # how long a claim that is made now is to hold
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._stop.clear()
        self._thread = threading.Thread(target=self._go_on, name="leases", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_JOIN_S)  # It may be waiting for a commit, which is then lost.

    def renew_due(self) -> timedelta:
        """Renew all leases if half of one is over; how long the next look may wait."""
        names = tuple(self.held())
        if not names:
            return LEASE / 2
        # Of its own: this is another thread than the worker's.
        ledger, now, lease = Ledger(self.at.store), self.at.now(), self.lease()
        left = self._left(ledger, names, now)
        if left <= lease / 2:
            ledger.write(lambda: self._batch(ledger, names), f"renewed by {self.at.name}")
            left = lease
        return min(left - lease / 2, LEASE / 2)

    def _left(self, ledger: Ledger, names: Iterable[str], now: datetime) -> timedelta:
        ends = [s.lease_until for s in self._mine(ledger, names) if s.lease_until is not None]
        return min(ends, default=now + self.lease()) - now

    def _mine(self, ledger: Ledger, names: Iterable[str]) -> list[Status]:
        wanted = set(names)
        found = (s for s in ledger.statuses() if s.submission.submission_id in wanted)
        return [status for status in found if self.at.holds(status)]

    def _batch(self, ledger: Ledger, names: Iterable[str]) -> Batch:
        now = self.at.now()
        until = now + self.lease()
        return Batch(
            events={
                status.submission.submission_id: [
                    Event(
                        at=now,
                        state=status.state,
                        by=self.at.name,
                        code=RENEWED,
                        lease_until=until,
                    )
                ]
                for status in self._mine(ledger, names)
            }
        )

    def _go_on(self) -> None:
        pause = LEASE / 2
        while not self._stop.wait(pause.total_seconds()):
            try:
                pause = self.renew_due()
            except TransientError as error:
                log.warning("Leases are renewed later: %s", error)
                pause = _AGAIN_AFTER
            except Exception:
                log.exception("Leases are not renewed.")
                pause = _AGAIN_AFTER
