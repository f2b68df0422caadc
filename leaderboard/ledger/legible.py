"""Check that the records of submissions can be read: one that cannot stops no other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.errors import PlatformError
from leaderboard.folding import fold
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Event, Status
from leaderboard.states import State


def fault_of(ledger: Ledger, status: Status, further: Sequence[Event] = ()) -> PlatformError | None:
    """Why a submission cannot be moved on by this program; None: it can, or was moved meanwhile.

    Its record and its events are read: what is written next is added to them.

    Args:
        ledger: where it is.
        status: as the queue has it.
        further: what is to follow.

    Raises:
        TransientError: the store fails, and nothing is known.
    """
    name = status.submission.submission_id
    try:
        ledger.with_record(status)
        events = ledger.whole_events(name)
        _check_state(name, fold(status.submission, events).state, status.state)
        fold(status.submission, (*events, *further))
    except PlatformError as error:
        now = ledger.status(name)
        moved = (now.state, now.since, now.by) != (status.state, status.since, status.by)
        return None if moved else error
    return None


def faults(ledger: Ledger) -> Iterator[tuple[str, PlatformError]]:
    """The submissions that wait or are in work and cannot be moved on, with the reason.

    Raises:
        TransientError: the store fails.
        PlatformError: `queue_damaged`, `queue_too_new`: nothing can be said of any.
    """
    for status in ledger.statuses():
        error = fault_of(ledger, status) if status.unfinished else None
        if error is not None:
            yield status.submission.submission_id, error


def _check_state(submission_id: str, by_events: State, in_queue: State) -> None:
    if by_events is not in_queue:
        raise PlatformError(
            "record_damaged",
            f"{submission_id} is {by_events} by its events and {in_queue} in the queue.",
            "Build the queue anew: python -m evaluator doctor --repair",
        )
