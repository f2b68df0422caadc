"""Whose turn it is: fair among accounts, whatever order things were sent in."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.queueing import expected_wait, fair_order, fair_share, typical_s
from leaderboard.records import Status
from leaderboard.states import TO_JUDGE, State
from tests.kit.records import T0, a_submission

NOW = T0 + timedelta(days=1)
LATE = T0 + timedelta(hours=1)


def status(n: int, account: str, state: State = State.QUEUED, **more: object) -> Status:
    at = T0 + timedelta(seconds=n)
    own = a_submission(submission_id=f"metric-{n:04d}", account=account, received_at=at)
    known = {"submission": own, "state": state, "since": at, "by": account}
    return Status.model_validate(known | more)


def ids(statuses: Sequence[Status]) -> list[int]:
    return [int(s.submission.submission_id.rpartition("-")[2]) for s in statuses]


def many(start: int, end: int, account: str) -> list[Status]:
    return [status(n, account) for n in range(start, end)]


REST = [status(1, "ada"), status(2, "bob")]


@pytest.mark.parametrize(
    ("sent", "order"),
    [
        # Whoever sends many does not keep the others waiting.
        ([*many(0, 5, "ada"), status(5, "bob"), status(6, "eve")], [0, 5, 6, 1, 2, 3, 4]),
        # What an account has in work counts as its turn.
        ([status(0, "ada", State.SCORING), *REST], [2, 1]),
        # What was served just now waits from then on: otherwise one worker would do all that was
        # sent first before anything of others.
        (
            [status(0, "ada", State.PUBLISHED, since=T0 + timedelta(seconds=10)),
             *many(1, 3, "ada"), status(3, "bob"), status(20, "eve")],
            [3, 1, 20, 2],
        ),
        # What was withdrawn took nobody's turn.
        ([status(0, "ada", State.WITHDRAWN, since=NOW), *REST], [1, 2]),
        # What waits for a judge has its turn like the rest.
        ([status(0, "ada", State.SCORED, code=TO_JUDGE), *REST], [0, 2, 1]),
        # A repeated try keeps its place and a rerun takes a new one,
        (
            [status(1, "bob", since=LATE, scored_at=T0), status(0, "ada", since=LATE),
             status(2, "eve")],
            [0, 2, 1],
        ),
        # after an account's own new one, and others' of the same turn.
        (
            [*(status(n, who, since=T0 + timedelta(minutes=n), scored_at=T0)
               for n, who in [(0, "ada"), (1, "ada"), (2, "bob")]), status(3600, "ada")],
            [2, 3600, 0, 1],
        ),
        ([status(0, "ada", since=T0 + timedelta(minutes=5), scored_at=T0), *REST], [1, 2, 0]),
        # What rests after a fault lets others pass.
        ([status(0, "ada", fault="world", attempts=1, since=NOW), *REST], [1, 2, 0]),
        # Nobody's account is an account of its own, as private submissions are seen from outside.
        ([*many(0, 2, ""), status(2, "bob")], [0, 1, 2]),
    ],
    ids=["many", "in work", "served", "withdrawn", "to judge", "rerun", "own new one",
         "others' new one", "resting", "nobody"],
)  # fmt: skip
def test_the_order_is_fair(sent: list[Status], order: list[int]) -> None:
    assert ids(fair_order(sent, NOW)) == order


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcd"),
            st.sampled_from([State.QUEUED, State.QUEUED, State.SCORING, State.PUBLISHED]),
        ),
        max_size=30,
    )
)
def test_nobodys_next_one_comes_before_everybodys_last(rows: list[tuple[str, State]]) -> None:
    statuses = [status(n, account, state) for n, (account, state) in enumerate(rows)]
    order = fair_order(statuses, NOW)
    assert sorted(ids(order)) == ids([s for s in statuses if s.state is State.QUEUED])
    had = {account: rows.count((account, State.SCORING)) for account in "abcd"}
    turns = []
    for one in order:
        turns.append(had[one.submission.account])
        had[one.submission.account] += 1
    assert turns == sorted(turns)
    for account in "abcd":
        own = ids([s for s in order if s.submission.account == account])
        assert own == sorted(own)
    for taken in order[:1]:  # Taking the first leaves the order of the rest.
        claimed = taken.model_copy(update={"state": State.CLAIMED})
        left = [claimed if s is taken else s for s in statuses]
        assert fair_order(left, NOW) == order[1:]


@pytest.mark.parametrize(
    ("place", "left", "typical", "expected"),
    [
        (1, [0.0, 500.0], 60.0, 0.0),
        (2, [0.0, 500.0], 60.0, 60.0),
        (3, [100.0, 130.0], 60.0, 160.0),
        (1, [], 60.0, None),
        (2, [30.0], None, None),
        (1, [30.0], None, 30.0),
    ],
)
def test_the_wait_follows_from_what_is_running_and_what_runs_take(
    place: int, left: list[float], typical: float | None, expected: float | None
) -> None:
    assert expected_wait(place, left, typical) == expected


def test_places_are_counted_from_one_and_what_a_run_takes_is_not_moved_by_one_that_hung() -> None:
    with pytest.raises(ValueError, match="from 1"):
        expected_wait(0, [1.0], 1.0)
    assert typical_s([10.0, 12.0, 9.0, 40_000.0, 0.0]) == 11.0
    assert typical_s([]) is None


@given(st.integers(0, 500), st.integers(1, 20), st.integers(1, 16))
def test_shares_leave_work_for_every_worker(waiting: int, workers: int, most: int) -> None:
    share = fair_share(waiting, workers, most)
    assert 0 <= share <= most
    assert (share == 0) is (waiting == 0)
    assert share * workers < waiting + workers
