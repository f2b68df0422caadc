"""Who may do what with a submission, and when: every cell of the table."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from benchmarks.errors import SubmitterError
from leaderboard.governance.accounts import Account
from leaderboard.governance.rights import ACTIONS, Action, Role, actions, require
from leaderboard.records import Kind, Status, Submission
from leaderboard.states import State, allowed
from tests.leaderboard.house import ADA, BOB, OLGA

T0 = datetime(2026, 1, 1, tzinfo=UTC)
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
    submission = Submission(
        submission_id="grey-0000000000",
        kind=Kind.METRIC,
        name="grey",
        metrics=("grey",),
        benchmarks=("toy",),
        submitter="ada",
        account=account,
        content_sha256="0" * 64,
        archive="uploads/0.zip",
        received_at=T0,
    )
    return Status(submission=submission, state=state, since=T0, by="w1", on_boards=on_boards)


def may(state: State, account: Account | None) -> str:
    return " ".join(actions(status(state), account))


@pytest.mark.parametrize("state", State)
def test_the_table_says_what_owners_and_operators_may_do_in_a_state(state: State) -> None:
    assert (may(state, ADA), may(state, OLGA)) == CELLS[state]
    assert set(ACTIONS[state]) == set(Role)


@pytest.mark.parametrize("state", State)
def test_strangers_and_whoever_is_not_signed_in_may_do_nothing(state: State) -> None:
    assert may(state, BOB) == may(state, None) == ""


@pytest.mark.parametrize("state", State)
def test_an_operator_may_do_with_their_own_what_either_may(state: State) -> None:
    both = OLGA.model_copy(update={"name": "ada", "origin": ADA.origin})
    union = {action for role in Role for action in ACTIONS[state][role]}
    assert set(actions(status(state), both)) == union


@pytest.mark.parametrize("state", State)
def test_everything_that_is_allowed_is_a_transition(state: State) -> None:
    for action in {a for of_role in ACTIONS[state].values() for a in of_role}:
        assert any(allowed(state, target) for target in TARGETS[action])


def test_a_failed_submission_can_be_hidden_only_while_older_results_are_shown() -> None:
    assert Action.HIDE in actions(status(State.FAILED, on_boards=True), OLGA)
    assert Action.HIDE not in actions(status(State.FAILED, on_boards=False), OLGA)


@pytest.mark.parametrize("state", State)
def test_a_record_older_than_accounts_belongs_to_nobody(state: State) -> None:
    assert actions(status(state, account=""), ADA) == ()
    assert " ".join(actions(status(state, account=""), OLGA)) == CELLS[state][1]


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
    with pytest.raises(SubmitterError) as caught:
        require(action, status(state), account)
    assert caught.value.code == code


def test_a_refusal_for_now_names_the_state_and_what_is_possible() -> None:
    with pytest.raises(SubmitterError, match="is hidden, so you cannot publish it") as caught:
        require(Action.PUBLISH, status(State.HIDDEN), ADA)
    assert caught.value.hint == "You may withdraw it."


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("account", [None, ADA, BOB, OLGA])
def test_what_is_listed_is_not_refused_and_what_is_not_listed_is(
    state: State, account: Account | None
) -> None:
    for action in Action:
        listed = action in actions(status(state), account)
        try:
            require(action, status(state), account)
        except SubmitterError:
            assert not listed
        else:
            assert listed
