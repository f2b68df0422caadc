"""Jobs that ended without scores, recorded as attempts with a reason people can read."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from benchmarks.errors import PlatformError, TransientError
from evaluator.launching.planning import SeenJob
from evaluator.worker.finalizer import MAX_ATTEMPTS
from leaderboard.ledger.batch import Batch
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.versions import Further, superseding
from leaderboard.records import Event, Status
from leaderboard.states import State
from leaderboard.store.live.interface import readable

log = logging.getLogger(__name__)

LINES_TOLD = 5
_CHARS = 600
_HIDDEN = "***"
_BOX = ("│", "╭", "╰", "┌", "└")
"""Lines of a traceback in a box: the error's own words come after it."""
_HINT = "The operator sees the whole log on the page of the job."


def why_it_ended(job: SeenJob | None, lines: Sequence[str]) -> TransientError:
    """A job's end in one sentence, with the last lines of its log."""
    if job is None:
        return TransientError("job_gone", "Its job is not on the Hub any more.", _HINT)
    told = f" ({one_line(job.message)})" if job.message else ""
    how = {
        "COMPLETED": "ended without handing over any scores",
        "CANCELED": "was cancelled",
        "DELETED": "was deleted",
    }.get(job.stage, "failed")
    said = " | ".join(lines)
    end = f" It said last: {said}" if said else ""
    return TransientError("job_failed", f"Job {job.job_id} {how}{told}.{end}", _HINT)


def last_lines(raw: Iterable[str], secrets: Iterable[str]) -> tuple[str, ...]:
    """The end of a log as it may be shown: readable, short, and without any secret."""
    hidden = sorted((each for each in secrets if each), key=len, reverse=True)
    found: list[str] = []
    for line in raw:
        # Hidden once more after the clean-up, which can join what was apart.
        shown = _without(one_line(_without(line, hidden)), hidden)
        if shown and not shown.startswith(_BOX):
            found.append(shown)
    kept: list[str] = []
    room = _CHARS
    for line in reversed(found[-LINES_TOLD:]):
        cut = line[:room]
        room -= len(cut)
        if cut:
            kept.append(cut)
    return tuple(reversed(kept))


def one_line(text: str) -> str:
    """A text of somebody else's as one readable line."""
    return " ".join(readable(text.encode("utf-8", errors="replace")).split())[:_CHARS]


def events_of_failure(
    status: Status, worker: str, error: TransientError, now: datetime
) -> list[Event]:
    """The events by which a job counts as an attempt that failed, in its worker's name."""
    held = status.held_by(worker)
    claim = Event(at=now, state=State.CLAIMED, by=worker, lease_until=now + timedelta(minutes=1))
    number = status.attempts + (0 if held else 1)
    end = _given_up(error, number) if number >= MAX_ATTEMPTS else _to_be_repeated(error, number)
    ending = Event.model_validate({"at": now, "by": worker, **end})
    return [ending] if held else [claim, ending]


def _to_be_repeated(error: TransientError, number: int) -> dict[str, str]:
    reason = f"Attempt {number} failed and will be repeated: {error.message}"
    return {"state": State.QUEUED, "reason": reason, "code": error.code, "fault": error.fault}


def _given_up(error: TransientError, number: int) -> dict[str, str]:
    return {
        "state": State.FAILED,
        "reason": f"Gave up after {number} attempts: {error.message}",
        "hint": error.hint,
        "code": error.code,
        "fault": PlatformError.fault,
    }


def _without(text: str, hidden: Sequence[str]) -> str:
    for secret in hidden:
        text = text.replace(secret, _HIDDEN)
    return text


@dataclass(frozen=True)
class Failure:
    """A job that failed its submission."""

    submission_id: str  # what it was to score
    worker: str  # the name of the worker within it
    seen: State  # the state in which the submission was found: held by that worker, or waiting
    error: TransientError  # why it ended

    def counts(self, status: Status) -> bool:
        """Whether its submission was not moved since."""
        waits = self.seen is State.QUEUED
        return status.state is self.seen and (waits or status.by == self.worker)


def record(ledger: Ledger, failures: Sequence[Failure], now: datetime) -> int:
    """Record failed attempts, but for those whose submission was moved meanwhile."""
    recorded: list[Failure] = []

    def batch() -> Batch:
        recorded.clear()
        events: dict[str, Sequence[Event]] = {}
        for each in failures:
            status = ledger.whole_status(each.submission_id)
            if each.counts(status):
                recorded.append(each)
                events[each.submission_id] = events_of_failure(status, each.worker, each.error, now)
        return Batch(events=events, further=_giving_way(recorded, now))

    for each in failures:
        log.warning("%s: %s", each.submission_id, each.error.message)
    if failures:
        ledger.write(batch, _message(failures))
    return len(recorded)


def _giving_way(failures: Sequence[Failure], now: datetime) -> Further:
    """What all of them do to other versions; what several do to one happens once."""
    each_does = [superseding(each.submission_id, now, each.worker) for each in failures]

    def further(statuses: Sequence[Status]) -> dict[str, Sequence[Event]]:
        found: dict[str, Sequence[Event]] = {}
        for does in each_does:
            found = {**does(statuses), **found}
        return found

    return further


def _message(failures: Sequence[Failure]) -> str:
    names = " ".join(each.submission_id for each in failures)
    return f"failed {names}" if len(failures) == 1 else f"{len(failures)} failed jobs\n\n{names}"
