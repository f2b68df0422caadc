"""What whoever types may see of a submission: all of their own, of others what is public."""

from __future__ import annotations

from benchmarks.errors import SubmitterError
from evaluator.commands.person import this_person
from leaderboard.ledger import Ledger
from leaderboard.own import Own
from leaderboard.records import Event, RunResult, Status
from leaderboard.results import read_results
from leaderboard.store.interface import Store


def visible_status(store: Store, submission_id: str) -> Status:
    """A submission, whole where it is one's own.

    Raises:
        SubmitterError: `unknown_submission`.
    """
    public = Ledger(store).status(submission_id)
    return Own(store, this_person()).status(submission_id) if _is_own(store, public) else public


def visible_events(store: Store, submission_id: str) -> tuple[Event, ...]:
    """What happened to it, oldest first; with reasons and logs where it is one's own.

    Raises:
        SubmitterError: `unknown_submission`.
    """
    public = Ledger(store).status(submission_id)
    if _is_own(store, public):
        return Own(store, this_person()).events(submission_id)
    return Ledger(store).events(submission_id)


def visible_results(store: Store, submission_id: str) -> tuple[RunResult, ...]:
    """Its results; of somebody else's those on the boards.

    Raises:
        SubmitterError: `unknown_submission`.
    """
    public = Ledger(store).status(submission_id)
    if _is_own(store, public):
        return Own(store, this_person()).results(submission_id)
    return () if public.submission.private else read_results(store, public.submission)


def _is_own(store: Store, public: Status) -> bool:
    try:
        Own(store, this_person()).status(public.submission.submission_id)
    except SubmitterError as error:
        if error.code != "not_yours":
            raise
        return False
    return True
