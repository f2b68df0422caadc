"""Receiving submissions and moving them from state to state."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from leaderboard.folding import fold
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Event, Kind, Submission
from leaderboard.states import IN_WORK, LEGEND, TRANSITIONS, State, allowed
from leaderboard.store.memory import memory_store

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def a_submission(name: str = "colour-reader-1") -> Submission:
    return Submission(
        submission_id=name,
        kind=Kind.METRIC,
        name="colour",
        metrics=("colour",),
        benchmarks=("demo_croc",),
        submitter="ada",
        content_sha256="0" * 64,
        archive="uploads/0.zip",
        received_at=T0,
    )


def event(state: State, **more: object) -> Event:
    return Event.model_validate({"at": T0, "state": state, "by": "w1", **more})


def received(ledger: Ledger) -> None:
    ledger.receive(a_submission(), b"zip", [event(State.RECEIVED), event(State.QUEUED)])


def test_every_state_is_explained_and_has_its_ways_out() -> None:
    assert set(LEGEND) == set(State)
    assert set(TRANSITIONS) == {None, *State}
    reachable = {after for ways in TRANSITIONS.values() for after in ways}
    assert reachable == set(State)


def test_work_always_can_end_or_be_taken_over() -> None:
    for state in IN_WORK:
        assert allowed(state, State.FAILED)
        assert allowed(state, State.CLAIMED)


def test_a_received_submission_is_queued_with_its_upload() -> None:
    ledger = Ledger(memory_store())
    received(ledger)
    (status,) = ledger.statuses()
    assert status.state is State.QUEUED
    assert ledger.upload(status.submission) == b"zip"
    assert [e.state for e in ledger.events("colour-reader-1")] == [State.RECEIVED, State.QUEUED]


def test_receiving_the_same_id_twice_is_refused() -> None:
    ledger = Ledger(memory_store())
    received(ledger)
    with pytest.raises(SubmitterError, match="exists already"):
        received(ledger)
    assert len(ledger.statuses()) == 1


def test_an_illegal_transition_is_refused_and_writes_nothing() -> None:
    store = memory_store()
    ledger = Ledger(store)
    received(ledger)
    before = store.public.head()
    with pytest.raises(PlatformError, match="cannot go from queued to published"):
        ledger.append("colour-reader-1", [event(State.PUBLISHED)])
    assert store.public.head() == before


def test_a_transition_comes_with_its_files_in_one_commit() -> None:
    store = memory_store()
    ledger = Ledger(store)
    received(ledger)
    before = int(store.public.head())
    ledger.append(
        "colour-reader-1",
        [event(State.CLAIMED, lease_until=T0 + timedelta(hours=1)), event(State.SCORING)],
        also=lambda _: {"extra.json": b"{}"},
    )
    assert int(store.public.head()) == before + 1
    assert store.public.read("extra.json") == b"{}"
    assert ledger.status("colour-reader-1").state is State.SCORING


def test_only_one_of_two_workers_gets_a_submission() -> None:
    ledger = Ledger(memory_store())
    received(ledger)
    claim = [event(State.CLAIMED, lease_until=T0 + timedelta(hours=1))]
    ledger.append("colour-reader-1", claim, still=lambda s: s.due(T0))
    with pytest.raises(TransientError, match="was moved to claimed by w1"):
        ledger.append("colour-reader-1", claim, still=lambda s: s.due(T0))


def test_a_lease_that_ran_out_makes_work_claimable_again() -> None:
    events = [
        event(State.RECEIVED),
        event(State.QUEUED),
        event(State.CLAIMED, lease_until=T0 + timedelta(hours=1)),
        event(State.SCORING),
    ]
    status = fold(a_submission(), events)
    assert status.attempts == 1
    assert not status.expired(T0 + timedelta(minutes=59))
    assert status.expired(T0 + timedelta(minutes=61))


def test_asking_for_an_unknown_submission_says_so() -> None:
    with pytest.raises(SubmitterError, match="no submission 'nobody'"):
        Ledger(memory_store()).status("nobody")
