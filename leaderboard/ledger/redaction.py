"""Redaction of private submissions: the public repository has their ids and states only.

The whole record lies in the private repository below `held/<id>/`, with what its events say beyond
their state. Nothing here is derived from content, name or author.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence

from leaderboard.accounts import is_key
from leaderboard.records import Event, Submission
from leaderboard.states import IN_WORK

PRIVATE_NAME = "private submission"
AUTHOR = "its author"
"""Stands for whoever sent a private submission."""
BANNED = "banned"
"""Code of a submission that was not run because its account was banned. Bans are public, so that
code would tell whose a private submission is; and so would the state `rejected`."""
PRIVATE_ID = re.compile(r"private-[0-9a-f]{10}")
_ID_BYTES = 5
_UNKNOWN_HASH = "0" * 64


def private_id(token: Callable[[int], str] = secrets.token_hex) -> str:
    """A fresh id for a private submission, which it keeps when it is published.

    Args:
        token: that many random bytes, in hexadecimal; passed in by tests.
    """
    return f"private-{token(_ID_BYTES)}"


def public_record(submission: Submission) -> Submission:
    """The record of a submission as anyone may see it."""
    if not submission.private:
        return submission
    return Submission(
        submission_id=submission.submission_id,
        kind=submission.kind,
        name=PRIVATE_NAME,
        metrics=(PRIVATE_NAME,),
        benchmarks=submission.benchmarks,
        submitter="",
        private=True,
        content_sha256=_UNKNOWN_HASH,
        archive="",
        received_at=submission.received_at,
    )


def public_events(submission: Submission, events: Sequence[Event]) -> tuple[Event, ...]:
    """A submission's events as anyone may see them.

    Args:
        submission: the whole record.
        events: all of them from the first on, since a worker is known by what it claimed.
    """
    if not submission.private:
        return tuple(events)
    workers: set[str] = set()
    shown: list[Event] = []
    for event in events:
        if event.state in IN_WORK:
            workers.add(event.by)
        shown.append(_public_event(event, workers, submission.account))
    return tuple(shown)


def _public_event(event: Event, workers: set[str], owner: str) -> Event:
    known = event.by in workers or (is_key(event.by) and event.by != owner)
    return Event(
        at=event.at,
        state=event.state,
        by=event.by if known else AUTHOR,
        # How its author's work failed is for the author; and a failure for a ban looks as any.
        code="" if event.fault == "submitter" else event.code,
        fault=event.fault,
        lease_until=event.lease_until,
        nonce=event.nonce,
        benchmarks=event.benchmarks,
    )


def whole_events(
    submission: Submission, public: Sequence[Event], details: Sequence[Event]
) -> tuple[Event, ...]:
    """A private submission's events with everything they say.

    The public ones decide what happened. Details that fit none of them were written for a commit
    that lost its race, and are passed over.

    Args:
        submission: the whole record.
        public: its public events.
        details: what the private repository has beside them, in any order.
    """
    return matched(submission, public, details)[0]


def matched(
    submission: Submission, public: Sequence[Event], details: Sequence[Event]
) -> tuple[tuple[Event, ...], list[Event]]:
    """Whole events as `whole_events`, and the details that are left over."""
    left = list(details)
    found: list[Event] = []
    for event in public:
        fits = (d for d in left if _fits(submission, event, d))
        detail = next(fits, None)
        if detail is not None:
            left.remove(detail)
        found.append(detail or event)
    return tuple(found), left


def _fits(submission: Submission, public: Event, detail: Event) -> bool:
    """Whether a public event is what may be seen of a detailed one.

    Codes are left out: of faults of the submitter they were public once.
    """
    shown = _public_event(detail, {public.by}, submission.account)
    return public.model_copy(update={"code": ""}) == shown.model_copy(update={"code": ""})
