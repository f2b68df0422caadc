"""Whose turn it is: fair among accounts, whatever order things were sent in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.queueing import expected_wait, fair_order, fair_share, typical_s
from leaderboard.records import Kind, Status, Submission
from leaderboard.states import TO_JUDGE, State

T0 = datetime(2026, 1, 1, tzinfo=UTC)
NOW = T0 + timedelta(days=1)


def status(n: int, account: str, state: State = State.QUEUED, **more: object) -> Status:
    at = T0 + timedelta(seconds=n)
    submission = Submission(
        submission_id=f"metric-{n:04d}",
        kind=Kind.METRIC,
        name="m",
        metrics=("m",),
        benchmarks=("toy",),
        submitter=account,
        account=account,
        content_sha256="0" * 64,
        archive="a",
        received_at=at,
    )
    known = {"submission": submission, "state": state, "since": at, "by": account}
    return Status.model_validate(known | more)


def ids(statuses: tuple[Status, ...]) -> list[int]:
    return [int(s.submission.submission_id.rpartition("-")[2]) for s in statuses]


def test_whoever_sends_many_does_not_keep_the_others_waiting() -> None:
    sent = [status(n, "ada") for n in range(5)] + [status(5, "bob"), status(6, "eve")]
    assert ids(fair_order(sent, NOW)) == [0, 5, 6, 1, 2, 3, 4]


def test_what_an_account_has_in_work_counts_as_its_turn() -> None:
    at_work = status(0, "ada", State.SCORING)
    assert ids(fair_order([at_work, status(1, "ada"), status(2, "bob")], NOW)) == [2, 1]


def test_what_was_served_just_now_waits_from_then_on() -> None:
    """Otherwise one worker would do all that was sent first before anything of others."""
    served = status(0, "ada", State.PUBLISHED, since=T0 + timedelta(seconds=10))
    rest = [status(1, "ada"), status(2, "ada"), status(3, "bob"), status(20, "eve")]
    assert ids(fair_order([served, *rest], NOW)) == [3, 1, 20, 2]


def test_what_was_withdrawn_took_nobodys_turn() -> None:
    gone = status(0, "ada", State.WITHDRAWN, since=NOW)
    assert ids(fair_order([gone, status(1, "ada"), status(2, "bob")], NOW)) == [1, 2]


def test_what_waits_for_a_judge_has_its_turn_like_the_rest() -> None:
    scored = status(0, "ada", State.SCORED, code=TO_JUDGE)
    assert ids(fair_order([scored, status(1, "ada"), status(2, "bob")], NOW)) == [0, 2, 1]


def test_a_repeated_try_keeps_its_place_and_a_rerun_takes_a_new_one() -> None:
    late = T0 + timedelta(hours=1)
    again = status(0, "ada", since=late)
    rerun = status(1, "bob", since=late, scored_at=T0)
    assert ids(fair_order([rerun, again, status(2, "eve")], NOW)) == [0, 2, 1]


def test_an_accounts_new_one_comes_before_what_is_run_again_for_it() -> None:
    again = [
        status(n, who, since=T0 + timedelta(minutes=n), scored_at=T0)
        for n, who in [(0, "ada"), (1, "ada"), (2, "bob")]
    ]
    new = status(3600, "ada")
    assert ids(fair_order([*again, new], NOW)) == [2, 3600, 0, 1]


def test_what_is_run_again_does_not_come_before_anothers_new_one_of_the_same_turn() -> None:
    again = status(0, "ada", since=T0 + timedelta(minutes=5), scored_at=T0)
    assert ids(fair_order([again, status(1, "ada"), status(2, "bob")], NOW)) == [1, 2, 0]


def test_what_rests_after_a_fault_lets_others_pass() -> None:
    resting = status(0, "ada", fault="world", attempts=1, since=NOW)
    assert ids(fair_order([resting, status(1, "ada"), status(2, "bob")], NOW)) == [1, 2, 0]


def test_nobodys_account_is_an_account_of_its_own() -> None:
    """As private submissions are seen from outside."""
    assert ids(fair_order([status(0, ""), status(1, ""), status(2, "bob")], NOW)) == [0, 1, 2]


sent = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.sampled_from([State.QUEUED, State.QUEUED, State.SCORING, State.PUBLISHED]),
    ),
    max_size=30,
).map(lambda rows: [status(n, account, state) for n, (account, state) in enumerate(rows)])


@given(sent)
def test_nobodys_next_one_comes_before_everybodys_last(statuses: list[Status]) -> None:
    order = fair_order(statuses, NOW)
    assert sorted(ids(order)) == ids(tuple(s for s in statuses if s.state is State.QUEUED))
    had = {
        account: sum(s.submission.account == account and s.state is State.SCORING for s in statuses)
        for account in "abcd"
    }
    turns = []
    for one in order:
        turns.append(had[one.submission.account])
        had[one.submission.account] += 1
    assert turns == sorted(turns)


@given(sent)
def test_each_accounts_own_order_is_kept_and_the_first_is_always_taken(
    statuses: list[Status],
) -> None:
    order = fair_order(statuses, NOW)
    for account in "abcd":
        own = ids(tuple(s for s in order if s.submission.account == account))
        assert own == sorted(own)


@given(sent)
def test_taking_the_first_leaves_the_order_of_the_rest(statuses: list[Status]) -> None:
    order = fair_order(statuses, NOW)
    for taken in order[:1]:
        left = [
            s.model_copy(update={"state": State.CLAIMED}) if s is taken else s for s in statuses
        ]
        assert fair_order(left, NOW) == order[1:]


def test_the_wait_follows_from_what_is_running_and_what_runs_take() -> None:
    assert expected_wait(1, [0.0, 500.0], 60.0) == 0.0
    assert expected_wait(2, [0.0, 500.0], 60.0) == 60.0
    assert expected_wait(3, [100.0, 130.0], 60.0) == 160.0
    assert expected_wait(1, [], 60.0) is None
    assert expected_wait(2, [30.0], None) is None
    assert expected_wait(1, [30.0], None) == 30.0
    with pytest.raises(ValueError, match="counted from 1"):
        expected_wait(0, [1.0], 1.0)


def test_what_a_run_takes_is_not_moved_by_one_that_hung() -> None:
    assert typical_s([10.0, 12.0, 9.0, 40_000.0, 0.0]) == 11.0
    assert typical_s([]) is None


@given(st.integers(0, 500), st.integers(1, 20), st.integers(1, 16))
def test_shares_leave_work_for_every_worker(waiting: int, workers: int, most: int) -> None:
    share = fair_share(waiting, workers, most)
    assert 0 <= share <= most
    assert (share == 0) is (waiting == 0)
    assert share * workers < waiting + workers
