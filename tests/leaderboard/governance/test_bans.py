"""Banning accounts, and changing the policy."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from benchmarks.errors import SubmitterError
from leaderboard.governance.accounts import ASSAY
from leaderboard.governance.bans import read_bans
from leaderboard.governance.policy import Allowance, Policy, read_policy
from leaderboard.ledger.chronicle import read_lines, verify
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Event, Kind
from leaderboard.states import State
from tests.leaderboard.house import ADA, BOB, OLGA, House


@pytest.fixture
def house() -> House:
    return House()


def test_a_ban_and_what_it_rejects_are_one_commit_with_the_reason(house: House) -> None:
    waiting, working, other = house.send(), house.send(name="blue"), house.send(BOB, "green")
    published = house.done(name="red")
    house.claim(working)
    before = int(house.store.public.head())
    ban = house.acts.ban(ADA.key, OLGA, "Sent miners.")
    assert int(house.store.public.head()) == before + 1
    assert read_bans(house.store.public) == {ADA.key: ban}
    ledger = Ledger(house.store)
    status = ledger.status(waiting)
    assert (status.state, status.code) == (State.REJECTED, "banned")
    assert "Sent miners." in status.reason
    assert house.state(working) is State.SCORING
    assert house.state(other) is State.QUEUED
    assert house.shown() == {published}
    line = read_lines(house.store.public, ADA.key)[-1]
    assert (line.action, line.by, line.reason) == ("ban", OLGA.key, "Sent miners.")


def test_a_ban_and_its_lifting_leave_private_submissions_as_they_are(house: House) -> None:
    """What moved in the same commit would be known to be the account's."""
    waiting, working, held = (house.send(name=n, private=True) for n in ("red", "green", "blue"))
    house.claim(working)
    house.claim(held)
    house.finish(held)
    before = house.ledger.whole_statuses()
    house.acts.ban(ADA.key, OLGA, "Sent miners.")
    assert Ledger(house.store).whole_statuses() == before
    house.acts.unban(ADA.key, OLGA, "It was a simulation.")
    assert Ledger(house.store).whole_statuses() == before
    assert house.state(waiting) is State.QUEUED


def test_a_rerun_of_what_is_published_is_not_rejected(house: House) -> None:
    name = house.done()
    house.acts.rerun(name, OLGA, "A new driver.")
    house.acts.ban(ADA.key, OLGA, "Rude.")
    assert house.state(name) is State.QUEUED
    assert house.shown() == {name}


def test_a_lifted_ban_is_in_the_chronicle_and_what_it_rejected_can_be_queued(house: House) -> None:
    name = house.send()
    house.acts.ban(ADA.key, OLGA, "A mistake.")
    house.acts.unban(ADA.key, OLGA, "It was one.")
    assert read_bans(house.store.public) == {}
    assert [x.action for x in read_lines(house.store.public, ADA.key)] == ["ban", "unban"]
    again = Event(at=house.clock(), state=State.QUEUED, by="ada")
    assert house.ledger.append(name, [again]).state is State.QUEUED
    assert verify(house.store.public) == ()


@pytest.mark.parametrize(
    ("act", "arguments", "code"),
    [
        ("ban", (BOB.key, ADA, "Because."), "not_operator"),
        ("ban", (BOB.key, None, "Because."), "not_signed_in"),
        ("ban", (BOB.key, OLGA, " "), "reason_missing"),
        ("ban", ("bob", OLGA, "Because."), "bad_account"),
        ("ban", (OLGA.key, OLGA, "Because."), "bad_account"),
        ("ban", (ASSAY.key, OLGA, "Because."), "bad_account"),
        ("unban", (BOB.key, OLGA, "Because."), "not_banned"),
        ("unban", (BOB.key, ADA, "Because."), "not_operator"),
        ("set_policy", (Policy(), ADA, "Because."), "not_operator"),
        ("set_policy", (Policy(), OLGA, ""), "reason_missing"),
    ],
)
def test_what_is_refused_writes_nothing(
    house: House, act: str, arguments: tuple[Any, ...], code: str
) -> None:
    with pytest.raises(SubmitterError) as caught:
        getattr(house.acts, act)(*arguments)
    assert caught.value.code == code
    assert house.store.public.list() == ()


def test_an_account_is_banned_once_and_the_first_reason_stands(house: House) -> None:
    house.acts.ban(BOB.key, OLGA, "Spam.")
    with pytest.raises(SubmitterError, match=r"banned already: Spam\.") as caught:
        house.acts.ban(BOB.key, OLGA, "More spam.")
    assert caught.value.code == "already_banned"


def test_a_policy_holds_from_the_commit_that_says_why(house: House) -> None:
    assert read_policy(house.store.public) == Policy()
    policy = Policy(
        period_days=30,
        allowances={
            Kind.METRIC: Allowance(scored=1, unfinished=1),
            Kind.SCORES: Allowance(scored=2, unfinished=2),
        },
    )
    house.acts.set_policy(policy, OLGA, "A small machine.")
    assert read_policy(house.store.public) == policy
    line = read_lines(house.store.public, "policy")[-1]
    assert (line.action, line.reason) == ("policy", "A small machine.")


def test_a_policy_names_every_kind() -> None:
    with pytest.raises(ValidationError, match="no allowance is given for scores"):
        Policy(allowances={Kind.METRIC: Allowance(scored=1, unfinished=1)})
