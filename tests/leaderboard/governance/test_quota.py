"""What an account has used of its allowance."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.governance.quota import QuotaUse, quota_use
from leaderboard.ledger.policy import Policy, Quota
from leaderboard.records import Kind, Status
from leaderboard.replay import fold
from leaderboard.states import FINISHED, TRANSITIONS, State
from tests.kit.governed import ADA, BOB, OLGA, House
from tests.kit.records import PUBLISHED, SCORED, T0, a_status, a_submission, an_event

POLICY = Policy(
    period_days=7,
    allowances={
        Kind.METRIC: Quota(scored=2, unfinished=1),
        Kind.SCORES: Quota(scored=5, unfinished=2),
    },
)
DAY = timedelta(days=1)


def standing(*statuses: Status, after: timedelta = timedelta(0)) -> QuotaUse:
    """Of metrics; those of scores come second."""
    return quota_use(ADA.key, statuses, POLICY, T0 + after)[0]


def test_an_account_that_sent_nothing_has_everything_left() -> None:
    use = standing()
    assert (use.scored, use.left, use.unfinished, use.next_free) == (0, 2, 0, None)


@pytest.mark.parametrize("end", [State.PUBLISHED, State.HELD])
def test_a_scored_result_is_charged_private_or_not(end: State) -> None:
    use = standing(a_status([*SCORED, end], private=end is State.HELD))
    assert (use.scored, use.left, use.next_free) == (1, 1, T0 + 7 * DAY)


def test_a_rerun_does_not_renew_the_charge() -> None:
    status = a_status([*PUBLISHED, State.QUEUED, *PUBLISHED[2:]], step=DAY)
    assert status.scored_at == T0 + 6 * DAY
    assert [standing(status, after=days * DAY).scored for days in (12, 13)] == [1, 0]


@pytest.mark.parametrize(("before", "scored"), [(1, 1), (0, 0), (-1, 0)])
def test_a_charge_leaves_the_period_when_it_was_told(before: int, scored: int) -> None:
    free = standing(a_status(PUBLISHED)).next_free
    assert free is not None
    after = free - T0 - timedelta(microseconds=before)
    assert standing(a_status(PUBLISHED), after=after).scored == scored


def test_kinds_and_accounts_are_counted_apart() -> None:
    others: tuple[dict[str, Any], ...] = (
        {},
        {"kind": Kind.SCORES},
        {"account": BOB.key},
        {"account": ""},
    )
    statuses = [a_status(PUBLISHED, **more) for more in others]
    assert [s.scored for s in quota_use(ADA.key, statuses, POLICY, T0)][:2] == [1, 1]


def test_more_than_is_allowed_leaves_nothing_and_no_debt() -> None:
    use = standing(*[a_status(PUBLISHED)] * 5)
    assert (use.scored, use.left) == (5, 0)


def test_private_submissions_count_through_their_whole_records() -> None:
    house = House()

    def of_ada() -> QuotaUse:
        return quota_use(ADA.key, house.ledger.whole_statuses(), POLICY, house.clock())[0]

    house.done(private=True)
    house.send(private=True)
    assert (of_ada().scored, of_ada().unfinished) == (1, 1)
    house.acts.publish(house.done(private=True, name="blue"), ADA)
    assert of_ada().scored == 2


def test_publishing_later_keeps_the_time_of_the_charge() -> None:
    house = House()
    name = house.done(private=True)
    scored_at = house.ledger.whole_status(name).scored_at
    house.acts.hide(name, OLGA, "To be looked at.")
    house.acts.show(name, OLGA)
    house.acts.publish(name, ADA)
    assert house.ledger.status(name).scored_at == scored_at


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[State, int]]:
    """Any way through the states, with the hours that pass before each step."""
    states = [State.RECEIVED]
    while len(states) < 16 and TRANSITIONS[states[-1]] and draw(st.integers(0, 9)):
        states.append(draw(st.sampled_from(sorted(TRANSITIONS[states[-1]]))))
    return [(state, draw(st.integers(0, 60))) for state in states]


@given(st.lists(st.tuples(histories(), st.sampled_from(Kind)), max_size=6), st.integers(0, 900))
def test_whatever_happens_each_is_charged_at_most_once_and_for_one_period(
    sent: list[tuple[list[tuple[State, int]], Kind]], hours: int
) -> None:
    now = T0 + timedelta(hours=hours)
    statuses: list[Status] = []
    expected, unfinished = dict.fromkeys(Kind, 0), dict.fromkeys(Kind, 0)
    for steps, kind in sent:
        at, events = T0, []
        for state, waits in steps:
            at += timedelta(hours=waits)
            events.append(an_event(state, at=at))
        statuses.append(fold(a_submission(account=ADA.key, kind=kind), events))
        first = [e.at for e in events if e.state in {State.PUBLISHED, State.HELD}][:1]
        expected[kind] += bool(first) and first[0] + POLICY.period > now
        unfinished[kind] += steps[-1][0] not in FINISHED
    for use in quota_use(ADA.key, statuses, POLICY, now):
        assert (use.scored, use.unfinished) == (expected[use.kind], unfinished[use.kind])
        assert 0 <= use.left <= use.scored_most
        assert (use.next_free is None) == (use.scored == 0)
        if use.next_free is not None:
            later = quota_use(ADA.key, statuses, POLICY, use.next_free)
            assert next(s for s in later if s.kind is use.kind).scored < use.scored
