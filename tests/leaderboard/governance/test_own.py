"""What accounts see of their own submissions."""

from __future__ import annotations

import pytest

from benchmarks.errors import SubmitterError
from leaderboard.governance.own import Own
from tests.leaderboard.house import ADA, BOB, OLGA, House


@pytest.fixture
def house() -> House:
    return House()


def test_an_author_sees_their_own_whole_and_an_operator_everybodys(house: House) -> None:
    public, private, other = house.done(), house.done(private=True), house.send(BOB)
    own = {s.submission.submission_id: s for s in Own(house.store, ADA).statuses()}
    assert set(own) == {public, private}
    assert own[private].submission.name == "grey"
    every = Own(house.store, OLGA).statuses()
    assert {s.submission.submission_id for s in every} == {public, private, other}
    assert "private submission" not in {s.submission.name for s in every}


def test_results_are_there_whether_held_or_published(house: House) -> None:
    name = house.done(private=True)
    held = Own(house.store, ADA).results(name)
    assert [r.benchmark for r in held] == ["open", "closed"]
    house.acts.publish(name, ADA)
    assert Own(house.store, ADA).results(name) == held
    assert Own(house.store, ADA).results(house.send()) == ()


def test_reasons_and_logs_of_a_private_submission_are_there(house: House) -> None:
    name = house.send(private=True)
    house.claim(name)
    house.fail(name, "It broke.", log="Traceback")
    own = Own(house.store, ADA)
    assert own.status(name).reason == "It broke."
    assert own.events(name)[-1].log == "Traceback"
    assert Own(house.store, OLGA).events(name) == own.events(name)


@pytest.mark.parametrize("asked", ["status", "events", "results"])
def test_what_is_another_accounts_looks_like_what_does_not_exist(house: House, asked: str) -> None:
    theirs, private = house.done(BOB), house.done(BOB, private=True)
    texts = set()
    for name in (theirs, private, "private-0123456789", "nothing at all"):
        with pytest.raises(SubmitterError) as caught:
            getattr(Own(house.store, ADA), asked)(name)
        assert caught.value.code == "not_yours"
        texts.add(str(caught.value))
    assert len(texts) == 1
