"""Versions of one thing: which of them stands on the boards."""

from __future__ import annotations

from typing import Any

import pytest

from leaderboard.governance.versions import superseded_by
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Kind
from leaderboard.states import State
from tests.leaderboard.house import ADA, BOB, OLGA, House


@pytest.fixture
def house() -> House:
    return House()


def test_a_new_version_takes_the_place_of_the_old_in_one_commit(house: House) -> None:
    old, new = house.done(), house.send()
    house.claim(new)
    before = int(house.store.public.head())
    house.finish(new)
    assert int(house.store.public.head()) == before + 1
    assert (house.state(old), house.state(new)) == (State.SUPERSEDED, State.PUBLISHED)
    assert house.shown() == {new}
    assert new in house.ledger.events(old)[-1].reason


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"account": BOB}, {}),
        ({"name": "blue"}, {}),
        ({"kind": Kind.SCORES}, {}),
        ({"benchmarks": ("open", "closed")}, {"benchmarks": ("open",)}),
    ],
    ids=["another author", "another name", "another kind", "fewer benchmarks"],
)
def test_what_is_no_version_of_it_stays(house: House, old: Any, new: Any) -> None:
    first, second = house.done(**old), house.done(**new)
    assert house.state(first) is house.state(second) is State.PUBLISHED
    assert house.shown() == {first, second}


def test_records_older_than_accounts_are_nobodys_versions(house: House) -> None:
    first = house.send(account=ADA)
    house.claim(first)
    house.finish(first)
    new = house.ledger.whole(first).model_copy(update={"account": ""})
    statuses = [
        s.model_copy(update={"submission": s.submission.model_copy(update={"account": ""})})
        for s in house.ledger.statuses()
    ]
    later = new.model_copy(update={"submission_id": "zzzzzzzz", "received_at": house.clock()})
    assert superseded_by(later, statuses) == ()


@pytest.mark.parametrize("end", ["withdraw", "hide"])
def test_taking_the_new_version_off_brings_the_one_before_back(house: House, end: str) -> None:
    first, second, third = house.done(), house.done(), house.done()
    before = int(house.store.public.head())
    getattr(house.acts, end)(third, OLGA, "It was wrong.")
    assert int(house.store.public.head()) == before + 1
    assert house.state(second) is State.PUBLISHED
    assert house.state(first) is State.SUPERSEDED
    assert house.shown() == {second}
    assert third in house.ledger.events(second)[-1].reason


def test_every_version_that_nothing_covers_any_more_comes_back(house: House) -> None:
    on_open = house.done(benchmarks=("open",))
    on_closed = house.done(benchmarks=("closed",))
    on_both = house.done()
    assert house.shown() == {on_both}
    house.acts.withdraw(on_both, ADA)
    assert house.shown() == {on_open, on_closed}


def test_a_hidden_version_shown_again_takes_its_place_back(house: House) -> None:
    first, second = house.done(), house.done()
    house.acts.hide(second, OLGA, "To be looked at.")
    house.acts.show(second, OLGA)
    assert (house.state(first), house.state(second)) == (State.SUPERSEDED, State.PUBLISHED)
    assert house.shown() == {second}


def test_what_is_shown_again_after_a_newer_version_came_is_superseded(house: House) -> None:
    first = house.done()
    house.acts.hide(first, OLGA, "To be looked at.")
    second = house.done()
    house.acts.show(first, OLGA)
    assert (house.state(first), house.state(second)) == (State.SUPERSEDED, State.PUBLISHED)
    assert house.shown() == {second}


def test_a_rerun_of_an_old_version_does_not_push_out_the_new_one(house: House) -> None:
    first = house.done()
    house.acts.rerun(first, OLGA, "New data.")
    second = house.done()
    assert house.shown() == {first, second}  # The first is being scored anew and cannot be moved.
    house.claim(first)
    house.finish(first)
    assert (house.state(first), house.state(second)) == (State.SUPERSEDED, State.PUBLISHED)
    assert house.shown() == {second}


def test_an_old_version_whose_rerun_failed_gives_way_to_a_new_one(house: House) -> None:
    first = house.done()
    house.acts.rerun(first, OLGA, "New data.")
    house.claim(first)
    house.fail(first)
    assert house.shown() == {first}
    second = house.done()
    assert (house.state(first), house.state(second)) == (State.SUPERSEDED, State.PUBLISHED)
    assert house.shown() == {second}
    house.acts.withdraw(second, ADA)
    assert house.shown() == {first}


def test_a_private_version_takes_no_place_before_it_is_published(house: House) -> None:
    old, new = house.done(), house.done(private=True)
    assert house.state(old) is State.PUBLISHED
    house.acts.publish(new, ADA)
    assert house.state(old) is State.SUPERSEDED
    assert house.shown() == {new}


def test_withdrawing_what_never_stood_brings_nothing_back(house: House) -> None:
    first, second = house.done(), house.done()
    third = house.send()
    house.acts.withdraw(third, ADA)
    house.acts.withdraw(first, ADA)
    assert house.shown() == {second}
    assert Ledger(house.store).status(first).state is State.WITHDRAWN
