"""Record of a job that ended without scores: an attempt, with a reason people can read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from benchmarks.errors import PlatformError, TransientError
from evaluator.launching.planning import SeenJob
from evaluator.worker.ending.concluding import MAX_ATTEMPTS
from leaderboard.records import Event, Status
from leaderboard.states import State
from leaderboard.store.live.interface import readable

LINES_TOLD = 5
_CHARS = 600
_HIDDEN = "***"
_BOX = ("│", "╭", "╰", "┌", "└")
"""Lines of a traceback in a box: the error's own words come after it."""
_HINT = "The operator sees the whole log on the page of the job."


def why_it_ended(job: SeenJob | None, lines: Sequence[str]) -> TransientError:
    """A job's end in one sentence, with the last lines of its log.

    Args:
        job: None where the Hub knows of none.
        lines: the end of its log, as far as it may be told; hostile.
    """
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
    """The end of a log as it may be shown: readable, short, and without any secret.

    Args:
        raw: lines as the Hub has them.
        secrets: what the job was given, which it may have printed.
    """
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
    """The events by which a job counts as an attempt that failed, in its worker's name.

    Args:
        status: of its submission: held by that worker, or waiting because none took it.
        worker: the name of the worker within the job.
        error: why it ended.
        now: the current time, by the store's clock.
    """
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
