"""States: ways through them, attempts at a run, and what of a submission is on the boards."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.queue_file import OLD_QUEUE
from leaderboard.records import Event, Status, Submission
from leaderboard.replay import asked_at, attempts_of, fold
from leaderboard.states import (
    FINISHED,
    IN_WORK,
    LEGEND,
    NOT_BEGUN,
    TO_JUDGE,
    TRANSITIONS,
    WAITING,
    State,
    allowed,
)  # fmt: skip
from tests.kit.records import SCORED, T0, a_status, an_event
from tests.kit.store import memory_store


@pytest.mark.parametrize(
    ("after", "shown"),
    [
        ("published", True),
        ("held", False),
        ("held published", True),
        ("published hidden", False),
        ("published hidden published", True),
        ("held hidden held", False),
        ("published superseded", False),
        ("published superseded published", True),
        ("published withdrawn", False),
        ("published queued", True),
        ("published queued claimed scoring failed", True),
        ("published queued claimed scoring failed hidden", False),
        ("held queued claimed scoring failed", False),
        ("failed", False),
        ("failed queued", False),
    ],
)
def test_the_last_deciding_state_says_what_is_shown(after: str, *, shown: bool) -> None:
    assert a_status([*SCORED, *map(State, after.split())]).on_boards is shown


def test_every_state_is_explained_waits_is_worked_on_or_is_finished_and_can_be_left() -> None:
    assert set(LEGEND) == set(State) == WAITING | IN_WORK | FINISHED
    assert len(WAITING) + len(IN_WORK) + len(FINISHED) == len(State)
    assert set(TRANSITIONS) == {None, *State}
    assert {after for ways in TRANSITIONS.values() for after in ways} == set(State)
    for state in IN_WORK:  # It can end or be taken over.
        assert allowed(state, State.FAILED) and allowed(state, State.CLAIMED)
    assert TRANSITIONS[State.WITHDRAWN] == frozenset()
    over = {State.WITHDRAWN, State.REJECTED}
    assert {s for s in State if State.WITHDRAWN not in TRANSITIONS[s]} == over


# Attempts

Step = tuple[str, str] | tuple[str, str, dict[str, object]]
START: list[Step] = [("received", "ada"), ("queued", "ada")]
BEGUN: list[Step] = [("claimed", "w1"), ("scoring", "w1")]


def events(*steps: Step) -> list[Event]:
    return [
        an_event(step[0], step[1], T0 + timedelta(minutes=n), **dict(*step[2:]))
        for n, step in enumerate([*START, *steps])
    ]


def test_each_attempt_says_who_made_it_and_why_it_ended() -> None:
    found = attempts_of(
        events(
            *BEGUN,
            ("claimed", "w2", {"reason": "w1 was silent since noon."}),
            ("queued", "w2", {"fault": "world", "reason": "The Hub is down."}),
            ("claimed", "w3"),
        )
    )
    assert [(a.number, a.by, a.why, a.ended_at is None) for a in found] == [
        (1, "w1", "w1 was silent since noon.", False),
        (2, "w2", "The Hub is down.", False),
        (3, "w3", "", True),
    ]


def test_what_was_never_begun_was_no_attempt_and_handing_back_undoes_only_its_own() -> None:
    claims: list[Step] = [("claimed", f"w{n}", {"code": NOT_BEGUN} if n else {}) for n in range(5)]
    (only,) = attempts_of(events(*claims))
    assert (only.number, only.by) == (1, "w4")
    back: list[Step] = [
        ("claimed", "w2", {"reason": "silent"}),
        ("queued", "w2", {"reason": "stopped"}),
    ]
    (first,) = attempts_of(events(*BEGUN, *back))
    assert (first.by, first.why) == ("w1", "silent")


def test_a_rerun_and_a_hand_over_begin_a_new_count() -> None:
    done: list[Step] = [*BEGUN, ("scored", "w1", {"code": TO_JUDGE})]
    judged: list[Step] = [*done, ("judging", "j1", {"lease_until": T0}), ("published", "j1")]
    rerun: list[Step] = [*judged, ("queued", "olga")]
    assert [len(attempts_of(events(*steps))) for steps in (done, judged, rerun)] == [0, 1, 0]


def test_a_run_was_asked_for_when_it_was_queued_last_by_no_worker_that_held_it() -> None:
    tries: list[Step] = [BEGUN[0], ("queued", "w1", {"fault": "world"}), ("claimed", "w2")]
    first = events(*tries)
    assert asked_at(first) == first[1].at
    ended = events(*tries, ("failed", "w2"), ("queued", "olga"))
    assert asked_at(ended) == ended[-1].at


# Records of the releases before accounts

OLD_SUBMISSION = """{
 "schema_version": 1, "submission_id": "colour-reader-0123456789", "kind": "metric",
 "name": "colour-reader", "version": "1.0.0", "metrics": ["colour-reader"],
 "benchmarks": ["demo_croc"], "submitter": "ada", "description": "Counts colours.",
 "authors": ["Ada L."], "licence": "MIT", "links": {"code": "https://example.org"},
 "lower_is_better": [], "trained_on": [],
 "content_sha256": "0000000000000000000000000000000000000000000000000000000000000000",
 "archive": "uploads/0.zip", "entry_point": "scorer:Scorer", "weights": "",
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


def test_records_and_a_store_older_than_accounts_go_on_with_nobody_as_their_owner() -> None:
    own = Submission.model_validate_json(OLD_SUBMISSION)
    assert (own.account, own.private, own.models) == ("", False, ())
    status = Status.model_validate_json(OLD_STATUS % OLD_SUBMISSION)
    assert (status.on_boards, status.scored_at) == (True, None)

    store, path = memory_store(), f"submissions/{own.submission_id}/"
    old = "".join(f"{OLD_EVENT % state}\n" for state in [*SCORED, State.PUBLISHED]).encode()
    files = {
        f"{path}submission.json": OLD_SUBMISSION.encode(),
        f"{path}events.jsonl": old,
        OLD_QUEUE: f"[{OLD_STATUS % OLD_SUBMISSION}]".encode(),
    }
    assert json.loads(files[OLD_QUEUE])
    store.public.commit(files, parent=store.public.head(), message="old")
    ledger = Ledger(store)
    (before,) = ledger.whole_statuses()
    after = ledger.append(
        own.submission_id, [an_event(State.QUEUED, "local:olga", reason="Again.")]
    )
    assert (after.state, after.on_boards, after.scored_at) == (State.QUEUED, True, T0)
    assert store.public.read(f"{path}events.jsonl").startswith(old)
    assert fold(before.submission, ledger.events(own.submission_id)) == after
