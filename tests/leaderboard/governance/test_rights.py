"""Who may do what with a submission, when, with which reason; and what they see of it."""

from __future__ import annotations

import pytest

from benchmarks.errors import SubmitterError
from leaderboard.accounts import Account
from leaderboard.governance.operator_actions import MOST_CHARS, checked_reason
from leaderboard.governance.rights import ACTIONS, Action, Own, Role, actions, require
from leaderboard.records import Status
from leaderboard.states import State, allowed
from tests.kit.governed import ADA, BOB, OLGA, House
from tests.kit.records import T0, a_submission
from tests.kit.refusals import refused

CELLS: dict[State, tuple[str, str]] = {
    State.RECEIVED: ("withdraw", "withdraw"),
    State.REJECTED: ("", ""),
    State.QUEUED: ("withdraw", "withdraw"),
    State.CLAIMED: ("withdraw", "withdraw"),
    State.SCORING: ("withdraw", "withdraw"),
    State.SCORED: ("withdraw", "withdraw"),
    State.JUDGING: ("withdraw", "withdraw"),
    State.HELD: ("withdraw publish", "withdraw hide rerun"),
    State.PUBLISHED: ("withdraw", "withdraw hide rerun"),
    State.FAILED: ("withdraw", "withdraw hide rerun"),
    State.WITHDRAWN: ("", ""),
    State.HIDDEN: ("withdraw", "withdraw show"),
    State.SUPERSEDED: ("withdraw", "withdraw hide"),
}
"""What owners and operators may do, written down a second time."""
TARGETS = {
    Action.WITHDRAW: {State.WITHDRAWN},
    Action.PUBLISH: {State.PUBLISHED},
    Action.HIDE: {State.HIDDEN},
    Action.SHOW: {State.PUBLISHED, State.HELD},
    Action.RERUN: {State.QUEUED},
}


def status(state: State, account: str = ADA.key, *, on_boards: bool = True) -> Status:
    own = a_submission(account=account)
    return Status(submission=own, state=state, since=T0, by="w1", on_boards=on_boards)


def may(state: State, account: Account | None, owner: str = ADA.key) -> str:
    """What is listed, of which nothing is refused; everything else is."""
    of = status(state, owner)
    listed = actions(of, account)
    for action in Action:
        try:
            require(action, of, account)
        except SubmitterError:
            assert action not in listed
        else:
            assert action in listed
    return " ".join(listed)


@pytest.mark.parametrize("state", State)
def test_the_table_says_who_may_do_what_in_a_state(state: State) -> None:
    assert (may(state, ADA), may(state, OLGA)) == CELLS[state]
    assert may(state, BOB) == may(state, None) == ""
    both = OLGA.model_copy(update={"name": "ada", "origin": ADA.origin})
    union = {action for role in Role for action in ACTIONS[state][role]}
    assert set(may(state, both).split()) == union
    assert all(any(allowed(state, target) for target in TARGETS[action]) for action in union)
    # A record older than accounts belongs to nobody.
    assert (may(state, ADA, ""), may(state, OLGA, "")) == ("", CELLS[state][1])


def test_a_failed_submission_can_be_hidden_only_while_older_results_are_shown() -> None:
    for shown in (True, False):
        listed = actions(status(State.FAILED, on_boards=shown), OLGA)
        assert (Action.HIDE in listed) is shown


@pytest.mark.parametrize(
    ("action", "state", "account", "code"),
    [
        (Action.WITHDRAW, State.PUBLISHED, None, "not_signed_in"),
        (Action.WITHDRAW, State.PUBLISHED, BOB, "not_yours"),
        (Action.PUBLISH, State.HELD, BOB, "not_yours"),
        (Action.PUBLISH, State.HELD, OLGA, "not_yours"),
        (Action.HIDE, State.PUBLISHED, ADA, "not_operator"),
        (Action.SHOW, State.HIDDEN, ADA, "not_operator"),
        (Action.RERUN, State.FAILED, BOB, "not_operator"),
        (Action.RERUN, State.QUEUED, OLGA, "not_now"),
        (Action.WITHDRAW, State.WITHDRAWN, ADA, "not_now"),
        (Action.PUBLISH, State.PUBLISHED, ADA, "not_now"),
    ],
)
def test_a_refusal_says_whether_it_is_who_or_when(
    action: Action, state: State, account: Account | None, code: str
) -> None:
    with refused(code):
        require(action, status(state), account)


def test_a_refusal_for_now_names_the_state_and_what_is_possible() -> None:
    with refused("not_now", "hidden", "withdraw"):
        require(Action.PUBLISH, status(State.HIDDEN), ADA)


# Reasons


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("  It read\n\tfile names. ", "It read file names."),
        ("\x1b[31mred\x1b[0m\x07", "[31mred[0m"),
        ("name\u202etxt.exe\u2069 and a\u200bb", "nametxt.exe and ab"),
        ("one\u2028two\u2029three", "one two three"),
        ("half \ud800 a letter", "half a letter"),
        ("Größe, 大きさ, حجم", "Größe, 大きさ, حجم"),
        ("<b>=1+1</b>", "<b>=1+1</b>"),
        ("\x00" * 1000 + "x" * MOST_CHARS, "x" * MOST_CHARS),
    ],
)
def test_a_reason_is_one_line_that_steers_nothing(given: str, kept: str) -> None:
    assert checked_reason(given) == kept


def test_a_reason_is_refused_where_it_is_too_long_or_none_and_nothing_stands_for_it() -> None:
    with refused("reason_too_long", "501"):
        checked_reason("x" * (MOST_CHARS + 1))
    with refused("reason_missing"):
        checked_reason("\u200b \n")
    assert checked_reason("", otherwise="By its author.") == "By its author."


# What accounts see of their own


def test_an_author_sees_their_own_whole_and_an_operator_everybodys(house: House) -> None:
    public, private, other = house.done(), house.done(private=True), house.send(BOB)
    own = {s.submission.submission_id: s for s in Own(house.store, ADA).statuses()}
    assert set(own) == {public, private}
    assert own[private].submission.name == "grey"
    every = Own(house.store, OLGA).statuses()
    assert {s.submission.submission_id for s in every} == {public, private, other}
    assert "private submission" not in {s.submission.name for s in every}


def test_results_are_there_whether_held_or_published(house: House) -> None:
    name, own = house.done(private=True), Own(house.store, ADA)
    held = own.results(name)
    assert [r.benchmark for r in held] == ["open", "closed"]
    house.acts.publish(name, ADA)
    assert (own.results(name), own.results(house.send())) == (held, ())


def test_reasons_and_logs_of_a_private_submission_are_there(house: House) -> None:
    name = house.send(private=True)
    house.claim(name)
    house.fail(name, "It broke.", log="Traceback")
    own = Own(house.store, ADA)
    assert (own.status(name).reason, own.events(name)[-1].log) == ("It broke.", "Traceback")
    assert Own(house.store, OLGA).events(name) == own.events(name)


@pytest.mark.parametrize("asked", ["status", "events", "results"])
def test_what_is_another_accounts_looks_like_what_does_not_exist(house: House, asked: str) -> None:
    theirs, private = house.done(BOB), house.done(BOB, private=True)
    texts = set()
    for name in (theirs, private, "private-0123456789", "nothing at all"):
        with pytest.raises(SubmitterError) as caught:
            getattr(Own(house.store, ADA), asked)(name)
        texts.add((caught.value.code, str(caught.value)))
    assert [code for code, _ in texts] == ["not_yours"]
