"""Receiving submissions, moving them from state to state, and removing what is kept for none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from leaderboard.ledger.cleanup import sweep
from leaderboard.ledger.ledger import Ledger
from leaderboard.replay import fold
from leaderboard.states import State
from leaderboard.store.interface import Store, transact
from tests.kit.governed import ADA, House
from tests.kit.records import T0, a_submission, an_event
from tests.kit.store import Meddled, memory_store

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


LATER = T0 + timedelta(days=1, minutes=1)
DIGEST = "f" * 64


@dataclass
class Interrupted(House):
    """A house in whose store somebody may act just before the next commit of a side."""

    def __post_init__(self) -> None:
        self.public, self.private = Meddled(self.store.public), Meddled(self.store.private)
        sides: Any = {"public": self.public, "private": self.private}
        self.store = replace(self.store, **sides)
        super().__post_init__()


@pytest.fixture
def house() -> Interrupted:
    return Interrupted()


def lose(house: House, *, private: bool = False) -> str:
    """Content that 0.1.0 kept by a commit of its own, for a request that then lost its race."""
    house.send(private=private)
    kept = {f"uploads/{DIGEST}.zip": b"lost"}
    if private:
        kept["held/private-ffffffffff/submission.json"] = b"{}"
    transact(house.store.private, lambda: kept, "kept")
    return f"uploads/{DIGEST}.zip"


def test_what_is_refused_at_the_last_moment_leaves_nothing(house: Interrupted) -> None:
    wanted = house.ledger.whole(house.send())
    other = wanted.model_copy(
        update={"submission_id": "grey-ffffffffff", "archive": "uploads/f.zip"}
    )
    calls = iter((False, True))

    def check() -> None:
        if next(calls):
            raise SubmitterError("quota_exceeded", "Too many.")

    before = files(house)
    house.private.act = house.send
    with pytest.raises(SubmitterError):
        house.ledger.receive(other, b"lost", house.ledger.events(wanted.submission_id), check=check)
    assert "uploads/f.zip" not in files(house) > before


def files(house: House) -> set[str]:
    return set(house.store.private.list())


@pytest.mark.parametrize("private", [False, True])
def test_what_a_lost_race_left_is_gone_a_day_later(house: House, private: bool) -> None:
    house.done(private=True)
    house.acts.withdraw(house.done(), ADA)
    archive = lose(house, private=private)
    left = {archive, *(path for path in files(house) if "ffffffffff" in path)}
    assert len(left) == (2 if private else 1)
    needed = files(house) - left
    sweep(house.store, T0)
    sweep(house.store, T0 + timedelta(hours=23))
    assert files(house) > needed | left
    sweep(house.store, LATER)
    assert files(house) == needed
    head = house.store.private.head()
    sweep(house.store, LATER + timedelta(days=2))
    assert house.store.private.head() == head  # Nothing to do is no commit.


@pytest.mark.parametrize("sent", ["before the sweep looks", "between its look and its removal"])
def test_whoever_sends_the_same_content_meanwhile_keeps_it(house: Interrupted, sent: str) -> None:
    archive = lose(house)
    sweep(house.store, T0)
    ids: list[str] = []

    def send() -> None:
        ids.append(house.send(archive=archive, content_sha256=DIGEST))

    if sent == "before the sweep looks":
        house.public.act = lambda: sweep(house.store, LATER)
        send()
    else:
        house.private.act = send
        sweep(house.store, LATER)
    own = house.ledger.whole(ids[0])
    assert house.ledger.upload(own) == b"lost"
    sweep(house.store, LATER + timedelta(days=2))
    assert house.ledger.upload(own) == b"lost"


def test_a_store_whose_public_part_is_missing_loses_nothing(house: House) -> None:
    transact(house.store.private, lambda: {"uploads/a.zip": b"a"}, "kept")
    for at in (T0, LATER):
        sweep(house.store, at)
    assert files(house) == {"uploads/a.zip"}
