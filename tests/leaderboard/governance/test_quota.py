"""What an account has used of its allowance."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.folding import fold
from leaderboard.governance.policy import Allowance, Policy
from leaderboard.governance.quota import Standing, standings
from leaderboard.records import Event, Kind, Status, Submission
from leaderboard.states import TRANSITIONS, State
from tests.leaderboard.house import ADA, BOB, OLGA, House

T0 = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = Policy(
    period_days=7,
    allowances={
        Kind.METRIC: Allowance(scored=2, unfinished=1),
        Kind.SCORES: Allowance(scored=5, unfinished=2),
    },
)
SCORED = [State.RECEIVED, State.QUEUED, State.CLAIMED, State.SCORING, State.SCORED, State.JUDGING]


def a_status(
    states: list[State],
    *,
    at: datetime = T0,
    account: str = ADA.key,
    kind: Kind = Kind.METRIC,
    private: bool = False,
    step: timedelta = timedelta(0),
) -> Status:
    submission = Submission(
        submission_id="grey-0000000000",
        kind=kind,
        name="grey",
        metrics=("grey",),
        benchmarks=("toy",),
        submitter="ada",
        account=account,
        private=private,
        content_sha256="0" * 64,
        archive="uploads/0.zip",
        received_at=at,
    )
    return fold(
        submission,
        [Event(at=at + n * step, state=state, by="w1") for n, state in enumerate(states)],
    )


def standing(*statuses: Status, now: datetime = T0, kind: Kind = Kind.METRIC) -> Standing:
    return {s.kind: s for s in standings(ADA.key, statuses, POLICY, now)}[kind]


def test_an_account_that_sent_nothing_has_everything_left() -> None:
    found = standing()
    assert (found.scored, found.left, found.unfinished, found.next_free) == (0, 2, 0, None)


@pytest.mark.parametrize("end", [State.PUBLISHED, State.HELD])
def test_a_scored_result_is_charged_private_or_not(end: State) -> None:
    found = standing(a_status([*SCORED, end], private=end is State.HELD))
    assert (found.scored, found.left, found.next_free) == (1, 1, T0 + timedelta(days=7))


@pytest.mark.parametrize(
    "states",
    [
        [State.RECEIVED, State.REJECTED],
        [State.RECEIVED, State.QUEUED, State.WITHDRAWN],
        [State.RECEIVED, State.QUEUED, State.CLAIMED, State.SCORING, State.WITHDRAWN],
        [State.RECEIVED, State.QUEUED, State.CLAIMED, State.SCORING, State.FAILED],
        [*SCORED, State.FAILED],
        [*SCORED, State.FAILED, State.WITHDRAWN],
    ],
)
def test_what_ends_before_it_was_scored_is_free(states: list[State]) -> None:
    found = standing(a_status(states))
    assert (found.scored, found.left, found.unfinished) == (0, 2, 0)


@pytest.mark.parametrize(
    "after",
    [
        [State.WITHDRAWN],
        [State.HIDDEN],
        [State.SUPERSEDED],
        [State.QUEUED, *SCORED[2:], State.PUBLISHED],
        [State.QUEUED, State.CLAIMED, State.FAILED],
    ],
    ids=["withdrawn", "hidden", "superseded", "rerun", "rerun failed"],
)
def test_what_happens_to_a_scored_result_afterwards_neither_charges_nor_pays_back(
    after: list[State],
) -> None:
    assert standing(a_status([*SCORED, State.PUBLISHED, *after])).scored == 1


def test_a_rerun_does_not_renew_the_charge() -> None:
    rerun = [*SCORED, State.PUBLISHED, State.QUEUED, *SCORED[2:], State.PUBLISHED]
    status = a_status(rerun, step=timedelta(days=1))
    assert status.scored_at == T0 + timedelta(days=6)
    assert standing(status, now=T0 + timedelta(days=12)).scored == 1
    assert standing(status, now=T0 + timedelta(days=13)).scored == 0


@pytest.mark.parametrize(("before", "scored"), [(1, 1), (0, 0), (-1, 0)])
def test_a_charge_leaves_the_period_at_the_very_instant_that_was_told(
    before: int, scored: int
) -> None:
    status = a_status([*SCORED, State.PUBLISHED])
    free = standing(status).next_free
    assert free is not None
    assert standing(status, now=free - timedelta(microseconds=before)).scored == scored


def test_kinds_and_accounts_are_counted_apart() -> None:
    statuses = [
        a_status([*SCORED, State.PUBLISHED]),
        a_status([*SCORED, State.PUBLISHED], kind=Kind.SCORES),
        a_status([*SCORED, State.PUBLISHED], account=BOB.key),
        a_status([*SCORED, State.PUBLISHED], account=""),
    ]
    assert standing(*statuses).scored == 1
    assert standing(*statuses, kind=Kind.SCORES).scored == 1


def test_more_than_is_allowed_leaves_nothing_and_no_debt() -> None:
    found = standing(*[a_status([*SCORED, State.PUBLISHED])] * 5)
    assert (found.scored, found.left) == (5, 0)


def test_private_submissions_count_through_their_whole_records() -> None:
    house = House()
    house.done(private=True)
    house.send(private=True)
    of = {
        s.kind: s for s in standings(ADA.key, house.ledger.whole_statuses(), POLICY, house.clock())
    }
    assert (of[Kind.METRIC].scored, of[Kind.METRIC].unfinished) == (1, 1)
    house.acts.publish(house.done(private=True, name="blue"), ADA)
    again = standings(ADA.key, house.ledger.whole_statuses(), POLICY, house.clock())
    assert again[0].scored == 2


def test_publishing_later_keeps_the_time_of_the_charge() -> None:
    house = House()
    name = house.done(private=True)
    scored_at = house.ledger.whole_status(name).scored_at
    house.acts.hide(name, OLGA, "To be looked at.")
    house.acts.show(name, OLGA)
    house.acts.publish(name, ADA)
    assert house.ledger.status(name).scored_at == scored_at


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[State], list[int]]:
    """Any way through the states, and the hours that pass between the steps."""
    states = [State.RECEIVED]
    for _ in range(draw(st.integers(0, 15))):
        ways = sorted(TRANSITIONS[states[-1]])
        if not ways:
            break
        states.append(draw(st.sampled_from(ways)))
    return states, [draw(st.integers(0, 60)) for _ in states]


@given(st.lists(st.tuples(histories(), st.sampled_from(Kind)), max_size=6), st.integers(0, 900))
def test_whatever_happens_each_is_charged_at_most_once_and_for_one_period(
    sent: list[tuple[tuple[list[State], list[int]], Kind]], hours: int
) -> None:
    now = T0 + timedelta(hours=hours)
    statuses: list[Status] = []
    expected = dict.fromkeys(Kind, 0)
    for (states, waits), kind in sent:
        times = [T0 + timedelta(hours=sum(waits[: n + 1])) for n in range(len(states))]
        template = a_status([State.RECEIVED], kind=kind).submission
        events = [Event(at=t, state=s, by="w1") for t, s in zip(times, states, strict=True)]
        statuses.append(fold(template, events))
        first = [
            t for t, s in zip(times, states, strict=True) if s in {State.PUBLISHED, State.HELD}
        ]
        expected[kind] += bool(first) and first[0] + POLICY.period > now
    for found in standings(ADA.key, statuses, POLICY, now):
        assert found.scored == expected[found.kind]
        assert 0 <= found.left <= found.scored_most
        assert 0 <= found.unfinished <= len(statuses)
        assert (found.next_free is None) == (found.scored == 0)
        if found.next_free is not None:
            later = standings(ADA.key, statuses, POLICY, found.next_free)
            assert next(s for s in later if s.kind is found.kind).scored < found.scored
