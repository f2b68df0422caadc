"""Receiving submissions and moving them from state to state."""

from __future__ import annotations

from datetime import timedelta

import pytest

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from leaderboard.folding import fold
from leaderboard.ledger.ledger import Ledger
from leaderboard.states import State
from leaderboard.store.interface import Store
from leaderboard.store.memory import memory_store
from tests.leaderboard.made_records import T0, a_submission, an_event

OWN = a_submission(submission_id="grey-00001")
QUEUED = [an_event(State.RECEIVED), an_event(State.QUEUED)]
CLAIMED = an_event(State.CLAIMED, lease_until=T0 + timedelta(hours=1))


@pytest.fixture
def store() -> Store:
    return memory_store()


@pytest.fixture
def ledger(store: Store) -> Ledger:
    made = Ledger(store)
    made.receive(OWN, b"zip", QUEUED)
    return made


def test_a_received_submission_is_queued_with_its_upload_and_no_second_time(ledger: Ledger) -> None:
    with pytest.raises(SubmitterError, match="already"):
        ledger.receive(OWN, b"zip", QUEUED)
    (status,) = ledger.statuses()
    assert (status.state, ledger.upload(status.submission)) == (State.QUEUED, b"zip")
    assert [e.state for e in ledger.events("grey-00001")] == [State.RECEIVED, State.QUEUED]


def test_an_illegal_transition_is_refused_and_writes_nothing(store: Store, ledger: Ledger) -> None:
    before = store.public.head()
    with pytest.raises(PlatformError, match="from queued to published"):
        ledger.append("grey-00001", [an_event(State.PUBLISHED)])
    assert store.public.head() == before


def test_a_transition_comes_with_its_files_in_one_commit(store: Store, ledger: Ledger) -> None:
    before = int(store.public.head())
    events = [CLAIMED, an_event(State.SCORING)]
    ledger.append("grey-00001", events, also=lambda _: {"extra.json": b"{}"})
    assert int(store.public.head()) == before + 1
    assert store.public.read("extra.json") == b"{}"
    assert ledger.status("grey-00001").state is State.SCORING


def test_only_one_of_two_workers_gets_a_submission(ledger: Ledger) -> None:
    ledger.append("grey-00001", [CLAIMED], still=lambda s: s.due(T0))
    with pytest.raises(TransientError, match="claimed by w1"):
        ledger.append("grey-00001", [CLAIMED], still=lambda s: s.due(T0))


def test_a_lease_that_ran_out_makes_work_claimable_again() -> None:
    status = fold(OWN, [*QUEUED, CLAIMED, an_event(State.SCORING)])
    assert status.attempts == 1
    assert [status.expired(T0 + timedelta(minutes=n)) for n in (59, 61)] == [False, True]


def test_asking_for_an_unknown_submission_says_so(store: Store) -> None:
    with pytest.raises(SubmitterError, match="nobody"):
        Ledger(store).status("nobody")
