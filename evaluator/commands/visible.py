"""Visibility of submissions at the terminal: all of one's own, of others what is public.

All of it raises SubmitterError `unknown_submission`.
"""

from __future__ import annotations

from benchmarks.errors import SubmitterError
from evaluator.commands.person import this_person
from leaderboard.governance.rights import owns
from leaderboard.ledger.ledger import Ledger
from leaderboard.publication.archive import old_results, old_tags
from leaderboard.publication.results import read_results
from leaderboard.records import Event, RunResult, Status
from leaderboard.store.interface import Store


def visible_status(store: Store, submission_id: str) -> Status:
    """A submission, whole where it is one's own."""
    ledger = Ledger(store)
    whole = ledger.whole_status(submission_id)
    return whole if owns(whole, this_person()) else ledger.status(submission_id)


def visible_events(store: Store, submission_id: str) -> tuple[Event, ...]:
    """What happened to it, oldest first; with reasons and logs where it is one's own."""
    ledger = Ledger(store)
    own = owns(ledger.whole_status(submission_id), this_person())
    return ledger.whole_events(submission_id) if own else ledger.events(submission_id)


def visible_results(store: Store, submission_id: str) -> tuple[RunResult, ...]:
    """Its results; of somebody else's those on the boards."""
    whole = Ledger(store).whole_status(submission_id)
    hidden = whole.submission.private and not owns(whole, this_person())
    return () if hidden else read_results(store, whole.submission)


def visible_old_results(store: Store, submission_id: str, revision: str) -> tuple[RunResult, ...]:
    """Its results of an earlier revision, or of this one; of somebody else's the public ones.

    Raises:
        SubmitterError: `unknown_revision`, naming those there are.
    """
    whole = Ledger(store).whole_status(submission_id)
    hidden = whole.submission.private and not owns(whole, this_person())
    now = visible_results(store, submission_id)
    if hidden:
        return ()
    old = tuple(one.result for one in old_results(store, whole.submission, revision))
    found = (*old, *(result for result in now if result.revision == revision))
    if not found:
        tags = old_tags(store, whole.submission)
        known = dict.fromkeys((*tags, *(result.revision for result in now)))
        raise SubmitterError(
            "unknown_revision",
            f"{submission_id} has no results of revision {revision[:80]!r}.",
            f"It has results of: {', '.join(known)}." if known else "",
        )
    return found
