"""Commits are few within any hour, and nobody waits long for one."""

from __future__ import annotations

import math
import pickle
import random
import threading
import time
from bisect import bisect_left
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.errors import TransientError
from leaderboard.store.hub.budget import HOUR_S, CommitBudget, CommitsUsedUpError
from leaderboard.store.hub.hub_store import HubParts, hub_store
from leaderboard.store.interface import ConflictError, Store, transact
from tests.kit.hub.server import HubServer, running_hub
from tests.kit.hub_store import NAME, PRIVATE, created, parts_of, put
from tests.kit.refusals import refused


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
    per_hour: int = 100, burst: int = 20, longest_wait_s: float = math.inf
) -> tuple[CommitBudget, Seconds]:
    seconds = Seconds()
    made = CommitBudget(per_hour, burst, seconds, seconds.sleep, longest_wait_s=longest_wait_s)
    return made, seconds


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


def test_no_hour_has_more_commits_than_the_budget_whenever_they_are_wanted() -> None:
    for seed in range(20):
        choice = random.Random(seed)
        per_hour = choice.choice([1, 5, 30, 100])
        budget, seconds = a_budget(per_hour, choice.randint(1, per_hour))
        times: list[float] = []
        for _ in range(5 * per_hour):
            seconds.now += choice.choice([0.0, 0.0, 1.0, 40.0, 600.0]) * choice.random()
            times += spent(budget, seconds, 1)
        assert most_in_an_hour(times) <= per_hour


def test_what_was_refused_is_waited_for_and_no_burst_follows() -> None:
    budget, seconds = a_budget()
    budget.penalise(90.0)
    assert spent(budget, seconds, 3) == pytest.approx([90.0, 135.0, 180.0], abs=0.01)


def test_no_pause_that_is_asked_for_is_longer_than_the_hub_counts_back() -> None:
    budget, seconds = a_budget()
    budget.penalise(10**9)
    assert spent(budget, seconds, 1) == [HOUR_S]


def test_what_is_left_is_what_this_hour_did_not_use() -> None:
    budget, seconds = a_budget()
    assert budget.left() == 100
    spent(budget, seconds, 30)
    assert budget.left() == 70
    seconds.now += HOUR_S
    assert budget.left() == 100
    before = seconds.now
    assert spent(budget, seconds, 20) == [before] * 20  # after a rest, a few at once again


def test_whoever_only_asks_uses_nothing() -> None:
    budget, seconds = a_budget(per_hour=2, burst=1)
    budget.ready()
    assert budget.delay() == 0.0
    budget.spend()
    assert budget.delay() == pytest.approx(HOUR_S)
    budget.ready()
    assert seconds.now == pytest.approx(HOUR_S, abs=0.01)
    assert (budget.delay(), budget.left()) == (0.0, 2)


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


def test_processes_of_a_machine_count_in_one_file(tmp_path: Path) -> None:
    seconds, file = Seconds(), tmp_path / "new" / "commits.json"
    one, two = shared(file, seconds), shared(file, seconds)
    times = [time for _ in range(15) for each in (one, two) for time in spent(each, seconds, 1)]
    assert 9 <= most_in_an_hour(times) <= 10
    assert one.left() == two.left() == shared(file, seconds).left()
    one.penalise(1000.0)
    assert two.delay() == pytest.approx(1000.0)
    two.pay(2)
    assert one.left() == two.left()


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


def test_stores_opened_in_one_folder_share_their_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_COMMITS_PER_HOUR", "10")
    with running_hub() as hub:
        created(hub, tmp_path / "made")
        one, two = (
            hub_store(NAME, tmp_path / "here", endpoint=hub.endpoint, token=hub.token)
            for _ in range(2)
        )
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
    budget, seconds = a_budget(longest_wait_s=300.0)

    def overtaken(pause: float) -> None:
        seconds.sleep(pause)
        budget.penalise(200.0)

    budget._sleep = overtaken
    budget.penalise(200.0)
    with refused("commits_used_up"):
        budget.spend()
    assert seconds.slept == [200.0]


def store_of(hub: HubServer, folder: Path, patch: pytest.MonkeyPatch, commits: int) -> Store:
    patch.setenv("ASSAY_COMMITS_PER_HOUR", str(commits))
    return hub_store(NAME, folder / "used", endpoint=hub.endpoint, token=hub.token)


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
        time.sleep(0.2)
        assert not any(each.done() for each in waiting)
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


# Several commits paid for together


def test_what_was_paid_for_and_not_made_is_used_by_the_next_commit() -> None:
    budget, seconds = a_budget()
    budget.pay(3)
    assert budget.left() == 97
    budget.spend()
    budget.pay(3)
    assert budget.left() == 96
    spent(budget, seconds, 19)
    assert (budget.left(), seconds.now) == (80, 0.0)
    assert budget.delay() == pytest.approx(45.0)


def test_after_a_refusal_what_was_paid_for_is_worth_nothing() -> None:
    budget, seconds = a_budget()
    budget.pay(2)
    assert budget.delay(2) == 0.0
    budget.penalise(60)
    assert spent(budget, seconds, 1) == [60.0]


def test_who_needs_three_commits_is_not_overtaken_for_ever_by_those_who_need_one() -> None:
    arrived, on = threading.Event(), threading.Event()
    budget, seconds = a_budget(burst=3)
    spent(budget, seconds, 3)

    def rest(pause: float) -> None:
        arrived.set()
        assert on.wait(60)
        seconds.sleep(pause)

    budget._sleep = rest
    with ThreadPoolExecutor(2) as pool:
        three = pool.submit(budget.ready, 3)
        assert arrived.wait(60)
        one = pool.submit(budget.ready, 1)
        assert not wait({one}, timeout=0.2).done
        on.set()
        assert three.result(60) is one.result(60) is None
    assert len(seconds.slept) == 1  # the other found its place when its turn came


def test_three_commits_are_paid_for_in_advance(
    hub: HubServer, parts: HubParts, tmp_path: Path
) -> None:
    made: list[int] = []

    class Noting(CommitBudget):
        def _take(self, paid: int = 0) -> float:
            made.append(hub.tally.commits())
            return super()._take(paid)

    public = parts_of(hub, tmp_path, budget=Noting()).public
    before = hub.tally.commits()
    changes = {"queue.json": b"q", "results/a/b.json": b"{}", "snapshot.parquet": b"s"}
    put(public, changes)
    assert made == [before] * 2
    old = list(public.decisive.client.history(f"{NAME}-requests"))[1].sha
    with pytest.raises(ConflictError):
        public.commit(changes, parent=old, message="late")
    assert made == [before] * 2 + [before + 2] * 2
    put(public, {"queue.json": b"2"})
    assert len(made) == 4
