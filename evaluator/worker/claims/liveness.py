"""Liveness of the worker that holds a submission, by its heartbeat, its lock and its lease."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from benchmarks.errors import TransientError
from evaluator.worker.claims.presence import Presence
from leaderboard.records import Status
from leaderboard.states import State
from leaderboard.store.live.interface import Live, Pulse

SILENT_AFTER = timedelta(seconds=60)
"""A worker that has not beaten for so long is dead, whatever its lease says."""
LEASE_SLACK = timedelta(minutes=2)
"""A lease that has just run out may be of somebody whose clock reads a little less."""


@dataclass(frozen=True)
class Gone:
    """Why a claim holds no more.

    Attributes:
        why: for people, one sentence.
        begun: whether its worker had begun with it, as far as can be told.
    """

    why: str
    begun: bool


@dataclass(frozen=True)
class Liveness:
    """Judges other workers. All times are the medium's: whose own clock is wrong loses nothing.

    Attributes:
        name: of the worker that judges.
        live: where pulses are.
        presence: the locks of this machine.
        beat: makes this worker beat once.
        clock: of the medium.
        silent_after: how long a pulse may be missing.
    """

    name: str
    live: Live
    presence: Presence
    beat: Callable[[], None]
    clock: Callable[[], datetime]
    silent_after: timedelta = SILENT_AFTER

    def look(self) -> Look:
        """A look at all workers as they are now."""
        return Look(self)

    def workers(self) -> int:
        """How many workers beat now, this one included."""
        now = self.clock()
        beating = {
            pulse.worker for pulse in self.pulses() if abs(now - pulse.at) <= self.silent_after
        }
        return len(beating | {self.name})

    def others_idle(self) -> bool:
        """Whether another worker beats, may run code, and holds nothing."""
        now = self.clock()
        return any(
            pulse.isolation_ok and not pulse.submission_id and not pulse.claimed
            for pulse in self.pulses()
            if pulse.worker != self.name and abs(now - pulse.at) <= self.silent_after
        )

    def pulses(self) -> tuple[Pulse, ...]:
        """The latest of every worker; none where they cannot be read, so that leases decide."""
        try:
            return self.live.pulses()
        except (OSError, TransientError):
            return ()


class Look:
    """One look at all workers; pulses are read once, and only if they matter.

    Args:
        liveness: of the worker that looks.
    """

    def __init__(self, liveness: Liveness) -> None:
        self._by = liveness

    def gone(self, status: Status) -> Gone | None:
        """Why a submission that is in work may be taken from whoever holds it; None: it may not."""
        by, pulse, now = self._by, self._pulses.get(status.by), self._now
        if by.presence.ended(status.by):
            return Gone(f"The process of {status.by} ended.", _begun(status, pulse))
        # What claims to come from the future says nothing about when its worker beat.
        if pulse is not None and pulse.at <= now + by.silent_after:
            if pulse.at >= now - by.silent_after:
                return None
            if self._is_heard:
                why = f"{status.by} was silent since {_told(pulse.at)}."
                return Gone(why, _begun(status, pulse))
        if status.expired(now - LEASE_SLACK):
            until = "" if status.lease_until is None else f" at {_told(status.lease_until)}"
            return Gone(f"The lease of {status.by} ran out{until}.", begun=True)
        return None

    @cached_property
    def _now(self) -> datetime:
        return self._by.clock()

    @cached_property
    def _pulses(self) -> dict[str, Pulse]:
        return {pulse.worker: pulse for pulse in self._by.pulses()}

    @cached_property
    def _is_heard(self) -> bool:
        """Whether this worker's own pulse arrives: if not, the silence of others proves nothing."""
        self._by.beat()
        own = {pulse.worker: pulse for pulse in self._by.pulses()}.get(self._by.name)
        return own is not None and own.at >= self._now - self._by.silent_after


def _begun(status: Status, pulse: Pulse | None) -> bool:
    """Whether the last a worker told was that it is at it; what nobody told of counts as begun."""
    if pulse is None or status.state is State.SCORING:
        return True
    return pulse.submission_id == status.submission.submission_id


def _told(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")
