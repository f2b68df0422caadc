"""What was received stands in the inbox of the private repository, and is in the queue from then on."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from leaderboard.ledger.audit_log import verify
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.private_records import events_path
from leaderboard.ledger.queue_file import INBOX, KEPT_FOR, QUEUE, InboxReader
from leaderboard.publication.rebuilding import queue_differences
from leaderboard.states import State
from leaderboard.store.hub.hub_store import hub_store
from leaderboard.store.interface import Store
from tests.kit.governed import ADA, House
from tests.kit.hub.accounts import Account
from tests.kit.hub.server import HubServer
from tests.kit.hub_store import NAME, created
from tests.kit.store import memory_store


def scarce() -> Store:
    """A store on which commits are scarce."""
    return replace(memory_store(), jobs_per_commit=8)


def heads(store: Store) -> tuple[int, int]:
    return int(store.public.head()), int(store.private.head())


def ids(store: Store) -> list[str]:
    return [status.submission.submission_id for status in Ledger(store).statuses()]


@pytest.mark.parametrize("private", [False, True])
def test_a_receipt_is_one_private_commit_and_the_claim_one_public(private: bool) -> None:
    house = House(scarce())
    name = house.send(private=private)
    assert heads(house.store) == (0, 1)
    (status,) = Ledger(house.store).statuses()
    assert (status.submission.submission_id, status.state) == (name, State.QUEUED)
    seen = Ledger(house.store).whole_events(name)
    house.claim(name)
    assert heads(house.store) == (1, 1)
    states = [event.state for event in house.ledger.events(name)]
    assert states == [State.RECEIVED, State.QUEUED, State.CLAIMED, State.SCORING]
    assert Ledger(house.store).whole_events(name)[:2] == seen
    assert house.store.public.has(f"submissions/{name}/submission.json")
    assert (queue_differences(house.store), verify(house.store.public)) == ((), ())


def test_a_commit_of_events_takes_over_what_else_was_received() -> None:
    house = House(scarce())
    first, second = house.send(name="one"), house.send(name="two")
    house.claim(first)
    assert house.store.public.has(events_path(second))
    assert Ledger(replace(house.store, private_readable=lambda: False)).status(second)
    house.acts.withdraw(second, ADA)
    assert queue_differences(house.store) == ()


def test_what_is_withdrawn_before_anybody_saw_it_is_a_whole_history() -> None:
    house = House(scarce())
    name = house.send()
    house.acts.withdraw(name, ADA)
    assert [event.state for event in house.ledger.events(name)][-1] is State.WITHDRAWN
    assert (ids(house.store), queue_differences(house.store)) == ([name], ())


def test_where_commits_are_plenty_everybody_sees_it_at_once() -> None:
    house = House()
    name = house.send()
    assert ids(replace(house.store, private_readable=lambda: False)) == [name]


def test_a_line_stays_as_long_as_somebody_may_see_an_older_queue() -> None:
    house = House(scarce())
    first = house.send(name="one")
    house.claim(first)
    house.send(name="two")
    lines = InboxReader(house.store).read().lines
    assert [line.submission.name for line in lines] == ["one", "two"]
    house.clock.time += KEPT_FOR  # type: ignore[attr-defined]
    house.send(name="three")
    lines = InboxReader(house.store).read().lines
    # Nobody took over the second.
    assert [line.submission.name for line in lines] == ["two", "three"]
    assert len(ids(house.store)) == 3


def test_nothing_is_lost_where_the_queue_is_taken_over_by_nobody_or_only_late() -> None:
    house = House(scarce())
    names = [house.send(name=f"m{n}") for n in range(50)]
    assert ids(house.store) == names
    house.ledger.take_over(before=house.clock() - timedelta(hours=1))
    assert not house.store.public.has(QUEUE), "none has waited for so long"
    for _ in range(3):
        house.ledger.take_over()
    assert ids(replace(house.store, private_readable=lambda: False)) == names
    head = house.store.public.head()
    house.ledger.take_over()
    assert house.store.public.head() == head
    assert (queue_differences(house.store), verify(house.store.public)) == ((), ())


def test_whoever_may_not_read_uploads_sees_the_queue_without_what_was_just_received(
    hub: HubServer, tmp_path: Path
) -> None:
    created(hub, tmp_path)
    visitor = hub.enroll("hf_visitor", Account("visitor"))
    ours, theirs = (
        hub_store(NAME, tmp_path / token, endpoint=hub.endpoint, token=token)
        for token in (hub.token, visitor)
    )
    house = House(ours)
    claimed = house.send(name="one")
    house.claim(claimed)
    received = house.send(name="two")
    theirs.look_anew()
    assert (ids(theirs), ids(ours)) == ([claimed], [claimed, received])
    assert ours.private.has(INBOX)
