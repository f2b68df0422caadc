"""States: ways through them, and what of a submission is on the boards."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from leaderboard.folding import fold
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.queue_file import OLD_QUEUE
from leaderboard.records import Event, Status, Submission
from leaderboard.states import FINISHED, IN_WORK, TRANSITIONS, WAITING, State
from leaderboard.store.memory import memory_store
from tests.leaderboard.governance.test_quota import SCORED, a_status

T0 = datetime(2026, 1, 1, tzinfo=UTC)

OLD_SUBMISSION = """{
 "schema_version": 1,
 "submission_id": "colour-reader-0123456789",
 "kind": "metric",
 "name": "colour-reader",
 "version": "1.0.0",
 "metrics": ["colour-reader"],
 "benchmarks": ["demo_croc"],
 "submitter": "ada",
 "description": "Counts colours.",
 "authors": ["Ada L."],
 "licence": "MIT",
 "links": {"code": "https://example.org"},
 "lower_is_better": [],
 "trained_on": [],
 "content_sha256": "0000000000000000000000000000000000000000000000000000000000000000",
 "archive": "uploads/0.zip",
 "entry_point": "scorer:Scorer",
 "weights": "",
 "received_at": "2026-01-01T00:00:00Z"
}"""
OLD_EVENT = (
    '{"schema_version":1,"at":"2026-01-01T00:00:00Z","state":"%s","by":"w1","reason":"","hint":"",'
    '"code":"","fault":"","lease_until":null,"log":""}'
)
OLD_STATUS = (
    '{"submission": %s, "state": "published", "since": "2026-01-01T00:00:00Z", "by": "w1",'
    ' "reason": "", "hint": "", "code": "", "fault": "", "attempts": 1, "lease_until": null,'
    ' "on_boards": true}'
)


@pytest.mark.parametrize(
    ("after", "shown"),
    [
        ([State.PUBLISHED], True),
        ([State.HELD], False),
        ([State.HELD, State.PUBLISHED], True),
        ([State.PUBLISHED, State.HIDDEN], False),
        ([State.PUBLISHED, State.HIDDEN, State.PUBLISHED], True),
        ([State.HELD, State.HIDDEN, State.HELD], False),
        ([State.PUBLISHED, State.SUPERSEDED], False),
        ([State.PUBLISHED, State.SUPERSEDED, State.PUBLISHED], True),
        ([State.PUBLISHED, State.WITHDRAWN], False),
        ([State.PUBLISHED, State.QUEUED], True),
        ([State.PUBLISHED, State.QUEUED, *SCORED[2:4], State.FAILED], True),
        ([State.PUBLISHED, State.QUEUED, *SCORED[2:4], State.FAILED, State.HIDDEN], False),
        ([State.HELD, State.QUEUED, *SCORED[2:4], State.FAILED], False),
        ([State.FAILED], False),
        ([State.FAILED, State.QUEUED], False),
    ],
)
def test_the_last_deciding_state_says_whether_results_are_on_the_boards(
    after: list[State], *, shown: bool
) -> None:
    assert a_status([*SCORED, *after]).on_boards is shown


def test_every_state_waits_is_worked_on_or_is_finished() -> None:
    assert set(State) == WAITING | IN_WORK | FINISHED
    assert len(WAITING) + len(IN_WORK) + len(FINISHED) == len(State)


def test_nothing_leaves_a_withdrawal() -> None:
    assert TRANSITIONS[State.WITHDRAWN] == frozenset()


def test_whatever_may_be_withdrawn_is_not_over() -> None:
    over = {State.WITHDRAWN, State.REJECTED}
    assert {s for s in State if State.WITHDRAWN not in TRANSITIONS[s]} == over


# Records of the releases before accounts.


def test_a_record_older_than_accounts_is_read_with_nobody_as_its_owner() -> None:
    submission = Submission.model_validate_json(OLD_SUBMISSION)
    assert (submission.account, submission.private, submission.models) == ("", False, ())
    status = Status.model_validate_json(OLD_STATUS % OLD_SUBMISSION)
    assert (status.on_boards, status.scored_at) == (True, None)


def test_a_store_older_than_accounts_goes_on() -> None:
    store = memory_store()
    path = "submissions/colour-reader-0123456789/"
    states = [*SCORED, State.PUBLISHED]
    events = "".join(f"{OLD_EVENT % state}\n" for state in states).encode()
    queue = json.dumps([json.loads(OLD_STATUS % OLD_SUBMISSION)], indent=1).encode()
    files = {
        f"{path}submission.json": OLD_SUBMISSION.encode(),
        f"{path}events.jsonl": events,
        OLD_QUEUE: queue,
    }
    store.public.commit(files, parent=store.public.head(), message="old")
    ledger = Ledger(store)
    (before,) = ledger.whole_statuses()
    again = Event(at=T0, state=State.QUEUED, by="local:olga", reason="Once more.")
    after = ledger.append(before.submission.submission_id, [again])
    assert (after.state, after.on_boards, after.scored_at) == (State.QUEUED, True, T0)
    assert store.public.read(f"{path}events.jsonl").startswith(events)
    assert fold(before.submission, ledger.events(before.submission.submission_id)) == after
