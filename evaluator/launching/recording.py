"""Jobs that ended without scores, recorded as attempts: all that are found at once in one commit."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from benchmarks.errors import TransientError
from evaluator.launching.outcomes import events_of_failure
from leaderboard.ledger.batch import Batch
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.versions import Further, superseding
from leaderboard.records import Event, Status
from leaderboard.states import State

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Failure:
    """A job that failed its submission.

    Attributes:
        submission_id: what it was to score.
        worker: the name of the worker within it.
        seen: the state in which the submission was found: held by that worker, or waiting.
        error: why it ended.
    """

    submission_id: str
    worker: str
    seen: State
    error: TransientError

    def counts(self, status: Status) -> bool:
        """Whether its submission was not moved since."""
        waits = self.seen is State.QUEUED
        return status.state is self.seen and (waits or status.by == self.worker)


def record(ledger: Ledger, failures: Sequence[Failure], now: datetime) -> int:
    """Record failed attempts, but for those whose submission was moved meanwhile.

    Args:
        ledger: of the store.
        failures: at most one for a submission.
        now: the current time, by the store's clock.

    Returns:
        How many were recorded.

    Raises:
        TransientError: the store failed for now.
    """
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
