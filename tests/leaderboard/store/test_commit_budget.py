"""Commits are few within any hour, and a spike of submissions needs few of them."""

from __future__ import annotations

import math
import random
import threading
from bisect import bisect_left
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from leaderboard.ledger.chronicle import verify
from leaderboard.ledger.ledger import Ledger
from leaderboard.states import State
from leaderboard.store.hub.budget import HOUR_S, CommitBudget
from tests.leaderboard.store.spike import SimulatedTime, Spike


class FakeTime:
    """A clock that moves when somebody sleeps; safe among threads."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._lock = threading.Lock()

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0.0
        with self._lock:
            self.now += seconds


def a_budget(per_hour: int = 100, burst: int = 20) -> tuple[CommitBudget, FakeTime]:
    fake = FakeTime()
    return CommitBudget(per_hour, burst, fake, fake.sleep, longest_wait_s=math.inf), fake


def spent(budget: CommitBudget, fake: FakeTime, commits: int) -> list[float]:
    """When so many commits are made by whoever wants to make them at once."""
    times: list[float] = []
    for _ in range(commits):
        budget.wait()
        times.append(fake.now - 1000.0)
    return times


def most_in_an_hour(times: list[float]) -> int:
    return max(bisect_left(times, at + HOUR_S) - n for n, at in enumerate(times))


def test_no_pause_that_is_asked_for_is_longer_than_the_hub_counts_back() -> None:
    budget, fake = a_budget()
    budget.penalise(10**9)
    assert spent(budget, fake, 1) == [HOUR_S]


def test_a_few_commits_go_at_once_and_the_rest_evenly() -> None:
    times = spent(*a_budget(), 300)
    assert times[:20] == [0.0] * 20
    gaps = [after - before for before, after in pairwise(times[19:])]
    assert gaps == pytest.approx([45.0] * 280, abs=0.01)


def test_no_hour_has_more_commits_than_the_budget_whenever_they_are_wanted() -> None:
    for seed in range(20):
        choice = random.Random(seed)
        per_hour = choice.choice([1, 5, 30, 100])
        budget, fake = a_budget(per_hour, choice.randint(1, per_hour))
        times: list[float] = []
        for _ in range(5 * per_hour):
            fake.now += choice.choice([0.0, 0.0, 1.0, 40.0, 600.0]) * choice.random()
            budget.wait()
            times.append(fake.now)
        assert most_in_an_hour(times) <= per_hour


def test_a_rest_gives_a_few_at_once_again() -> None:
    budget, fake = a_budget()
    spent(budget, fake, 30)
    fake.now += HOUR_S
    before = fake.now
    spent(budget, fake, 20)
    assert fake.now == before


def test_what_was_refused_is_waited_for_and_no_burst_follows() -> None:
    budget, fake = a_budget()
    budget.penalise(90.0)
    assert spent(budget, fake, 3) == pytest.approx([90.0, 135.0, 180.0], abs=0.01)


def test_what_is_left_is_what_this_hour_did_not_use() -> None:
    budget, fake = a_budget()
    assert budget.left() == 100
    spent(budget, fake, 25)
    assert budget.left() == 75
    fake.now += HOUR_S
    assert budget.left() == 100


def test_whoever_only_asks_uses_nothing() -> None:
    budget, fake = a_budget(per_hour=2, burst=1)
    budget.ready()
    assert budget.delay() == 0.0
    budget.wait()
    assert budget.delay() == pytest.approx(HOUR_S)
    before = fake.now
    budget.ready()
    assert fake.now - before == pytest.approx(HOUR_S, abs=0.01)
    assert (budget.delay(), budget.left()) == (0.0, 2)


def test_several_commits_that_belong_together_are_waited_for_together() -> None:
    budget, fake = a_budget(per_hour=100, burst=20)
    spent(budget, fake, 19)
    assert (budget.delay(1), budget.delay(2), budget.delay(3)) == pytest.approx((0.0, 45.0, 90.0))
    assert budget.delay(21) == budget.delay(20)
    budget.ready(3)
    before = fake.now
    spent(budget, fake, 3)
    assert fake.now == before


def test_threads_share_it() -> None:
    budget, fake = a_budget(per_hour=10, burst=2)
    times: list[float] = []

    def spend() -> None:
        for _ in range(5):
            budget.wait()
            times.append(fake.now)

    with ThreadPoolExecutor(6) as pool:
        for future in [pool.submit(spend) for _ in range(6)]:
            future.result(60)
    assert len(times) == 30
    assert fake.now - 1000.0 >= 2 * HOUR_S
    assert budget.left() >= 0


@pytest.mark.parametrize(("per_hour", "burst"), [(0, 0), (10, 0), (10, 11)])
def test_a_budget_that_could_never_be_kept_is_refused(per_hour: int, burst: int) -> None:
    with pytest.raises(ValueError, match="burst"):
        CommitBudget(per_hour, burst)


@pytest.mark.slow
@pytest.mark.parametrize(("processes", "n"), [(1, 200), (2, 80)])
def test_a_spike_of_submissions_is_few_commits(processes: int, n: int) -> None:
    """Each is received, claimed and published, by one process or by two that share nothing."""
    simulated = SimulatedTime()
    made = [CommitBudget(100 // processes, 10, simulated, simulated.sleep) for _ in range(2)]
    budgets = (made[0], made[0] if processes == 1 else made[1])
    spike = Spike(n, 8, 2, 8, simulated, budgets)
    spike.run()
    statuses = Ledger(spike._app).statuses()
    assert [status.state for status in statuses] == [State.PUBLISHED] * n
    assert [status.attempts for status in statuses] == [1] * n
    assert verify(spike.public) == ()
    assert len(spike.private.list("uploads/")) == n
    assert spike.most_in_an_hour() <= 100
    assert len(spike.sent) <= 3 * n
