"""Commits are few within any hour, and nobody waits long for one."""

from __future__ import annotations

import math
import pickle
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from benchmarks.errors import TransientError
from leaderboard.store.hub.budget import HOUR_S, CommitBudget, CommitsUsedUpError
from leaderboard.store.hub.hub_store import HubParts, hub_store
from leaderboard.store.interface import ConflictError, Store, transact
from tests.kit.hub.server import HubServer
from tests.kit.hub_store import NAME, PRIVATE, parts_of
from tests.kit.refusals import refused
from tests.kit.store import put


class Seconds:
    """A steady clock that moves when somebody sleeps; safe among threads."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self._lock = threading.Lock()

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0.0
        with self._lock:
            self.slept.append(seconds)
            self.now += seconds


def a_budget(
    per_hour: int = 100,
    burst: int = 20,
    longest_wait_s: float = math.inf,
    sleep: Callable[[float], object] | None = None,
) -> tuple[CommitBudget, Seconds]:
    seconds = Seconds()
    budget = CommitBudget(per_hour, burst, seconds, sleep or seconds.sleep, longest_wait_s)
    return budget, seconds


def spent(budget: CommitBudget, seconds: Seconds, commits: int) -> list[float]:
    """When so many commits are made by whoever wants to make them at once."""
    times: list[float] = []
    for _ in range(commits):
        budget.spend()
        times.append(seconds.now)
    return times


def most_in_an_hour(times: Iterable[float]) -> int:
    """The largest number within an hour, wherever it begins."""
    ordered = sorted(times)
    return max(bisect_left(ordered, at + HOUR_S) - n for n, at in enumerate(ordered))


# The budget of one process


def test_a_few_commits_go_at_once_and_the_rest_evenly() -> None:
    times = spent(*a_budget(), 300)
    assert times[:20] == [0.0] * 20
    gaps = [after - before for before, after in pairwise(times[19:])]
    assert gaps == pytest.approx([45.0] * 280, abs=0.01)


def test_what_was_refused_is_waited_for_and_no_burst_follows() -> None:
    budget, seconds = a_budget()
    budget.penalise(90.0)
    assert spent(budget, seconds, 3) == pytest.approx([90.0, 135.0, 180.0], abs=0.01)


class Budgets(RuleBasedStateMachine):
    """Processes of a machine that count in one file, or one that counts by itself."""

    @initialize(per_hour=st.sampled_from([1, 3, 10, 100]), data=st.data(), shared=st.booleans())
    def open(self, per_hour: int, data: st.DataObject, shared: bool) -> None:
        self.folder = TemporaryDirectory()
        self.seconds, self.per_hour = Seconds(), per_hour
        self.burst = data.draw(st.integers(1, per_hour))
        file = Path(self.folder.name) / "new" / "commits.json" if shared else None
        clock = (lambda: self.seconds.now), self.seconds.sleep
        self.budgets = [
            CommitBudget(per_hour, self.burst, *clock, math.inf, file=file)
            for _ in range(2 if shared else 1)
        ]
        self.paid = [0] * len(self.budgets)
        self.counted: list[float] = []
        self.not_before = 0.0

    def teardown(self) -> None:
        self.folder.cleanup()

    def count(self, act: Callable[[], None], soonest: float) -> None:
        """An act that counts one commit, as soon as the budget has room for it."""
        before = self.seconds.now
        act()
        assert self.seconds.now - before == pytest.approx(soonest, abs=0.01)
        assert self.seconds.now >= self.not_before
        self.counted.append(self.seconds.now)

    @rule(which=st.integers(0, 1))
    def spend(self, which: int) -> None:
        budget = self.budgets[which := which % len(self.budgets)]
        if self.paid[which]:
            self.paid[which] -= 1
            budget.spend()
        else:
            self.count(budget.spend, budget.delay())

    @rule(which=st.integers(0, 1), commits=st.integers(1, 2))
    def pay(self, which: int, commits: int) -> None:
        budget = self.budgets[which := which % len(self.budgets)]
        for _ in range(commits - self.paid[which]):
            self.paid[which] += 1
            self.count(partial(budget.pay, self.paid[which]), budget.delay(self.paid[which]))
        budget.pay(commits)

    @rule(which=st.integers(0, 1), commits=st.integers(1, 4))
    def get_ready(self, which: int, commits: int) -> None:
        budget = self.budgets[which % len(self.budgets)]
        before, soonest = self.seconds.now, budget.delay(commits)
        budget.ready(commits)
        assert self.seconds.now - before >= soonest - 0.01
        assert budget.delay(commits) == 0.0

    @rule(which=st.integers(0, 1), seconds=st.sampled_from([1.0, 90.0, 2000.0, 1e9]))
    def penalise(self, which: int, seconds: float) -> None:
        self.budgets[which := which % len(self.budgets)].penalise(seconds)
        self.paid[which] = 0
        self.not_before = max(self.not_before, self.seconds.now + min(seconds, HOUR_S))

    @rule(seconds=st.sampled_from([0.5, 30.0, 600.0, HOUR_S]))
    def rest(self, seconds: float) -> None:
        self.seconds.now += seconds

    @invariant()
    def no_hour_has_more_commits_than_the_budget(self) -> None:
        if self.counted:
            assert most_in_an_hour(self.counted) <= self.per_hour

    @invariant()
    def all_know_how_many_are_left_and_nobody_waits_for_more_than_an_hour(self) -> None:
        now = self.seconds.now
        left = self.per_hour - sum(at > now - HOUR_S for at in self.counted)
        for budget in self.budgets:
            assert budget.left() == left
            assert budget.delay() <= HOUR_S + 0.01


Budgets.TestCase.settings = settings(max_examples=20, stateful_step_count=20)
TestBudgets = Budgets.TestCase


def test_several_commits_that_belong_together_are_waited_for_together() -> None:
    budget, seconds = a_budget()
    spent(budget, seconds, 19)
    assert (budget.delay(1), budget.delay(2), budget.delay(3)) == pytest.approx((0.0, 45.0, 90.0))
    assert budget.delay(21) == budget.delay(20)
    budget.ready(3)
    before = seconds.now
    assert spent(budget, seconds, 3) == [before] * 3


def test_threads_share_it() -> None:
    budget, seconds = a_budget(per_hour=10, burst=2)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: spent(budget, seconds, 5), range(6)))
    assert seconds.now >= 2 * HOUR_S
    assert budget.left() >= 0


def shared(file: Path, seconds: Seconds) -> CommitBudget:
    return CommitBudget(10, 2, lambda: seconds.now, seconds.sleep, math.inf, file=file)


@pytest.mark.parametrize("content", ["", "[", "{}", "[[1], 2]"])
def test_a_count_of_which_a_crash_left_half_says_nothing(tmp_path: Path, content: str) -> None:
    file = tmp_path / "commits.json"
    file.write_text(content)
    seconds = Seconds()
    assert spent(shared(file, seconds), seconds, 2) == [seconds.now] * 2
    assert shared(file, seconds).left() == 8


def test_a_clock_that_is_set_back_keeps_nobody_waiting_for_more_than_an_hour(
    tmp_path: Path,
) -> None:
    seconds, file = Seconds(), tmp_path / "commits.json"
    seconds.now += 1e6
    shared(file, seconds).penalise(HOUR_S)
    seconds.now -= 1e6
    assert shared(file, seconds).delay() <= HOUR_S


def store_of(hub: HubServer, folder: Path, patch: pytest.MonkeyPatch, commits: int) -> Store:
    patch.setenv("ASSAY_COMMITS_PER_HOUR", str(commits))
    return hub_store(NAME, folder / "used", endpoint=hub.endpoint, token=hub.token)


def test_stores_opened_in_one_folder_share_their_commits(
    hub: HubServer, parts: HubParts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = (store_of(hub, tmp_path, monkeypatch, 10) for _ in range(2))
    put(one.public, {"queue.json": b"1"})
    assert one.commits_left is not None and two.commits_left is not None
    assert one.commits_left() == two.commits_left() == 9


@pytest.mark.parametrize(("per_hour", "burst"), [(0, 0), (10, 0), (10, 11)])
def test_a_budget_that_could_never_be_kept_is_refused(per_hour: int, burst: int) -> None:
    with pytest.raises(ValueError, match="burst"):
        CommitBudget(per_hour, burst)


@pytest.mark.parametrize(("given", "left"), [("", 100), ("50", 50), (" 1 ", 1)])
def test_a_process_is_told_its_part_of_the_commits(given: str, left: int) -> None:
    assert CommitBudget.of({"ASSAY_COMMITS_PER_HOUR": given}).left() == left


@pytest.mark.parametrize("given", ["0", "-1", "many", "1.5", "9999999"])
def test_a_part_that_is_none_is_refused(given: str) -> None:
    with refused("bad_budget", "ASSAY_COMMITS_PER_HOUR"):
        CommitBudget.of({"ASSAY_COMMITS_PER_HOUR": given})


# Nobody waits for long, nor at all where the process is to end


@pytest.mark.parametrize("how", ["spend", "ready"])
def test_who_would_wait_for_long_is_told_until_when_instead(how: str) -> None:
    budget, seconds = a_budget(longest_wait_s=300.0)
    budget.penalise(900.0)
    with pytest.raises(CommitsUsedUpError, match="15 minutes") as told:
        getattr(budget, how)()
    assert told.value.code == "commits_used_up"
    assert str(pickle.loads(pickle.dumps(told.value))) == str(told.value)
    seconds.now = 650.0
    getattr(budget, how)()
    assert seconds.slept == [250.0]


def test_several_short_waits_do_not_make_a_long_one() -> None:
    def overtaken(pause: float) -> None:
        seconds.sleep(pause)
        budget.penalise(200.0)

    budget, seconds = a_budget(longest_wait_s=300.0, sleep=overtaken)
    budget.penalise(200.0)
    with refused("commits_used_up"):
        budget.spend()
    assert seconds.slept == [200.0]


def test_whoever_waits_for_a_commit_is_let_go_where_the_process_is_to_end(
    hub: HubServer, parts: HubParts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(hub, tmp_path, monkeypatch, 20)  # four at once, and then one in 225 s
    for n in range(4):
        transact(store.private, lambda n=n: {f"uploads/{n}": b"1"}, "m")  # type: ignore[misc]
    before = hub.tally.commits(PRIVATE)
    with ThreadPoolExecutor(3) as pool:
        late = partial(transact, store.private, lambda: {"late": b"1"}, "m")
        waiting = [pool.submit(late) for _ in range(3)]
        assert not wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED).done
        store.wait_no_more()
        for each in waiting:
            with refused("commits_used_up", kind=TransientError):
                each.result(60)
    assert hub.tally.commits(PRIVATE) == before
    assert transact(store.private, dict, "nothing") == store.private.head()


def test_what_may_be_committed_at_once_is_sent_on_leaving_too(
    hub: HubServer, parts: HubParts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(hub, tmp_path, monkeypatch, 100)
    store.wait_no_more()
    transact(store.public, lambda: {"queue.json": b"1", "results/m/a.json": b"1"}, "m")
    assert store.public.read("results/m/a.json") == b"1"


def test_a_pause_that_the_hub_asks_for_ends_with_the_process(
    hub: HubServer, parts: HubParts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(hub, tmp_path, monkeypatch, 100)
    pause = hub.spoil("/resolve/", status=429, headers={"Retry-After": "50"})
    threading.Timer(0.3, store.wait_no_more).start()
    with refused("store_busy", kind=TransientError):
        store.public.head()
    assert len(pause.seen) == 1


def test_a_commit_without_budget_is_not_made(
    hub: HubServer, parts: HubParts, tmp_path: Path
) -> None:
    budget, _ = a_budget(1, 1, longest_wait_s=300.0)
    private = parts_of(hub, tmp_path / "used", budget=budget).private
    made = put(private, {"a": b"1"})
    with refused("commits_used_up", "60 minutes"):
        put(private, {"b": b"1"})
    assert private.fresh_head() == made


def test_who_needs_three_commits_is_not_overtaken_for_ever_by_those_who_need_one() -> None:
    arrived, on = threading.Event(), threading.Event()

    def rest(pause: float) -> None:
        arrived.set()
        assert on.wait(60)
        seconds.sleep(pause)

    budget, seconds = a_budget(burst=3, sleep=rest)
    spent(budget, seconds, 3)
    with ThreadPoolExecutor(2) as pool:
        three = pool.submit(budget.ready, 3)
        assert arrived.wait(60)
        one = pool.submit(budget.ready, 1)
        assert not wait({one}, timeout=0.1).done
        on.set()
        assert three.result(60) is one.result(60) is None
    assert len(seconds.slept) == 1  # the other found its place when its turn came


def test_a_commit_of_two_repositories_is_paid_for_before_the_first_is_made(
    hub: HubServer, parts: HubParts, tmp_path: Path
) -> None:
    budget, seconds = a_budget(per_hour=10, burst=2, longest_wait_s=0.0)
    public = parts_of(hub, tmp_path, budget=budget).public
    changes = {"queue.json": b"q", "results/a/b.json": b"{}", "snapshot.parquet": b"s"}
    budget.spend()
    before = hub.tally.commits()
    with refused("commits_used_up"):
        put(public, changes)
    assert hub.tally.commits() == before
    seconds.now += HOUR_S
    put(public, changes)
    assert (hub.tally.commits(), budget.left()) == (before + 2, 9), "one was paid for by then"
    seconds.now += HOUR_S
    old = list(public.decisive.client.history(f"{NAME}-requests"))[1].sha
    with pytest.raises(ConflictError):
        public.commit(changes, parent=old, message="late")
    put(public, {"queue.json": b"2"})
    assert (hub.tally.commits(), budget.left()) == (before + 3, 8), "that was paid for, too"
