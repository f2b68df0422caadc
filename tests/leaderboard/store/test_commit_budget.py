"""Commits are few within any hour, nobody waits long for one, and a spike needs few of them."""

from __future__ import annotations

import math
import pickle
import random
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar

import pytest

from benchmarks.errors import TransientError
from leaderboard.ledger.batch import Batch
from leaderboard.ledger.chronicle import verify
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Event, Kind, Submission
from leaderboard.states import State
from leaderboard.store.grouping import Grouping
from leaderboard.store.hub.budget import HOUR_S, CommitBudget, CommitsUsedUpError
from leaderboard.store.hub.hub_store import HubParts, hub_store
from leaderboard.store.hub.spending import Spending
from leaderboard.store.interface import Changes, ConflictError, Store, transact
from leaderboard.store.live.interface import MemoryLive
from leaderboard.store.memory import MemoryRepository
from tests.hub.server import HubServer
from tests.leaderboard.refusing import refused
from tests.leaderboard.store.hub_rig import NAME, PRIVATE, Purse, parts_of, put

_T = TypeVar("_T")


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
        budget.wait()
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
    budget.wait()
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


@pytest.mark.parametrize("how", ["wait", "ready"])
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
        budget.wait()
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


def test_a_commit_for_which_there_is_no_budget_is_certain_not_to_have_been_made(
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
    purse = Purse()
    spending = Spending(purse)
    spending.ahead(3)
    assert purse.waited == 3
    spending.one()
    spending.ahead(3)
    assert purse.waited == 4
    assert (spending.delay(3), spending.delay(5)) == (0.0, 2.0)
    spending.ready(5)
    for _ in range(4):
        spending.one()
    assert (purse.waited, purse.asked) == (5, [2])


def test_after_a_refusal_what_was_paid_for_is_worth_nothing() -> None:
    purse = Purse()
    spending = Spending(purse)
    spending.ahead(2)
    spending.penalise(60)
    spending.one()
    assert (purse.waited, purse.asked) == (3, [60])


def test_who_needs_three_commits_is_not_overtaken_for_ever_by_those_who_need_one() -> None:
    arrived, on = threading.Event(), threading.Event()

    class Slow(Purse):
        def ready(self, commits: int = 1) -> None:
            super().ready(commits)
            arrived.set()
            assert on.wait(60)

    purse = Slow()
    spending = Spending(purse)
    with ThreadPoolExecutor(2) as pool:
        three = pool.submit(spending.ready, 3)
        assert arrived.wait(60)
        one = pool.submit(spending.ready, 1)
        assert not wait({one}, timeout=0.2).done
        assert purse.asked == [3]
        on.set()
        assert three.result(60) is one.result(60) is None
    assert purse.asked == [3, 1]


def test_a_commit_to_three_repositories_is_paid_for_before_its_first_step(
    hub: HubServer, parts: HubParts, tmp_path: Path
) -> None:
    purse, made = Purse(), []
    public = parts_of(hub, tmp_path, budget=purse).public
    purse.wait = lambda: made.append(hub.tally.commits())  # type: ignore[method-assign]
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


# A spike of submissions, in simulated time

LATENCY_S, SCORING_S, POLL_S = 2.0, 20.0, 30.0
JOBS, SUBMITTERS, WORKERS = 8, 8, 2
BENCHMARKS = ("first", "second")


class SimulatedTime:
    """Time that moves only when all threads of a spike wait, to when the next one wakes up."""

    def __init__(self) -> None:
        self.now = 0.0
        self._at_work = 0
        self._wakings: list[float] = []
        self._changed = threading.Condition()

    def __call__(self) -> float:
        return self.now

    def date(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.now)

    def sleep(self, seconds: float) -> None:
        """Sleep, until nobody has anything to do before."""
        until = self.now + seconds
        self._wakings.append(until)
        self.stop()
        with self._changed:
            self._changed.wait_for(lambda: not self._at_work and until <= min(self._wakings))
            self._wakings.remove(until)
            self.now = max(self.now, until)
            self._at_work += 1

    def begin(self, threads: int = 1) -> None:
        """So many threads have something to do from now on."""
        with self._changed:
            self._at_work += threads

    def stop(self) -> None:
        """This thread has nothing to do until another wakes it."""
        with self._changed:
            self._at_work -= 1
            self._changed.notify_all()


class WatchedCondition(threading.Condition):
    """A condition whose waiters are known to have nothing to do."""

    def __init__(self, simulated: SimulatedTime) -> None:
        super().__init__()
        self._time, self._asleep = simulated, 0

    def wait(self, timeout: float | None = None) -> bool:
        self._asleep += 1
        self._time.stop()
        return super().wait(timeout)

    def notify_all(self) -> None:
        """Whoever is woken is at work before it runs."""
        self._time.begin(self._asleep)
        self._asleep = 0
        super().notify_all()


def one_part(_: Iterable[str]) -> int:
    """Uploads are kept in one repository."""
    return 1


def three_parts(paths: Iterable[str]) -> int:
    """What decides, and results and scores, which are in a repository each."""
    results = [path for path in paths if path.startswith("results/")]
    return 1 + len({path.endswith(".parquet") for path in results})


class Spike:
    """Submissions that come at once, are claimed and are published, by one process or two.

    Args:
        budgets: of the process that takes submissions and of that of the workers.
    """

    def __init__(self, n: int, simulated: SimulatedTime, budgets: Sequence[CommitBudget]) -> None:
        self.n, self.time = n, simulated
        self.sent: list[float] = []
        self.public, self.private = MemoryRepository(), MemoryRepository()
        self._broken = False
        takes, runs = budgets
        self.app = self._process(takes)
        self._workers = self.app if takes is runs else self._process(runs)

    def _process(self, budget: CommitBudget) -> Store:
        public = self._through(self.public, budget, 3, three_parts)
        private = self._through(self.private, budget, 1, one_part)
        return Store(public, private, MemoryLive(), self.time.date, JOBS)

    def _through(
        self,
        under: MemoryRepository,
        budget: CommitBudget,
        commits: int,
        parts: Callable[[Iterable[str]], int],
    ) -> Grouping:
        """A repository as one process uses it: a commit to each part, the last of which decides."""

        def commit(changes: Changes, *, parent: str, message: str) -> str:
            for _ in range(parts(changes)):
                budget.wait()
                self.sent.append(self.time())
                self.time.sleep(LATENCY_S)
            return under.commit(changes, parent=parent, message=message)

        names = ("head", "read", "has", "list", "fetch")
        seen = SimpleNamespace(commit=commit, **{name: getattr(under, name) for name in names})
        grouping = Grouping(seen, budget, commits=commits)  # type: ignore[arg-type]
        grouping._turns._changed = WatchedCondition(self.time)
        return grouping

    def run(self) -> None:
        """Send everything at once and work until nothing is left."""
        self.time.begin(SUBMITTERS + WORKERS)
        with ThreadPoolExecutor(SUBMITTERS + WORKERS) as pool:
            done = [
                pool.submit(self._submit, range(first, self.n, SUBMITTERS))
                for first in range(SUBMITTERS)
            ]
            done += [pool.submit(self._work, f"w{number}") for number in range(WORKERS)]
            for future in done:
                future.add_done_callback(self._ended)
            for future in done:
                future.result()

    def _ended(self, future: Future[None]) -> None:
        self._broken = self._broken or future.exception() is not None
        self.time.stop()

    def _submit(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            submission = a_submission(number, self.time.date())
            events = [self._event(state, "ada") for state in (State.RECEIVED, State.QUEUED)]
            self._patiently(partial(Ledger(self.app).receive, submission, b"upload", events))

    def _patiently(self, ask: Callable[[], _T]) -> _T:
        """Whoever is told to come later comes later."""
        while True:
            try:
                return ask()
            except CommitsUsedUpError:
                self.time.sleep(POLL_S)

    def _work(self, name: str) -> None:
        ledger = Ledger(self._workers)
        while not self._broken and self._left(ledger):
            claimed = self._claim(ledger, name)
            self.time.sleep(SCORING_S * len(claimed) or POLL_S)
            if claimed:
                self._publish(ledger, name, claimed)

    def _left(self, ledger: Ledger) -> int:
        return self.n - sum(status.state is State.PUBLISHED for status in ledger.statuses())

    def _claim(self, ledger: Ledger, name: str) -> Sequence[str]:
        def batch() -> Batch:
            waiting = [s for s in ledger.statuses() if s.state is State.QUEUED][:JOBS]
            lease = self.time.date() + timedelta(hours=8)
            claimed = self._event(State.CLAIMED, name, lease_until=lease)
            events = [claimed, self._event(State.SCORING, name)]
            return Batch({status.submission.submission_id: events for status in waiting})

        return tuple(self._patiently(lambda: ledger.write(batch, f"claimed by {name}")))

    def _publish(self, ledger: Ledger, name: str, claimed: Sequence[str]) -> None:
        kinds = ("json", "scores.parquet", "clusters.parquet", "resamples.parquet")
        stems = [f"results/{one}/{benchmark}" for one in claimed for benchmark in BENCHMARKS]
        files = {f"{stem}.{kind}": b"content" for stem in stems for kind in kinds}

        def batch() -> Batch:
            assert all(ledger.status(one).held_by(name) for one in claimed)
            states = (State.SCORED, State.JUDGING, State.PUBLISHED)
            events = {one: [self._event(state, name) for state in states] for one in claimed}
            return Batch(events, files=lambda _: files)

        self._patiently(lambda: ledger.write(batch, f"published by {name}"))

    def _event(self, state: State, by: str, **more: object) -> Event:
        return Event.model_validate({"at": self.time.date(), "state": state, "by": by, **more})


def a_submission(number: int, at: datetime) -> Submission:
    digest = sha256(str(number).encode()).hexdigest()
    return Submission(
        submission_id=f"metric-{digest[:10]}",
        kind=Kind.METRIC,
        name=f"metric {number}",
        metrics=(f"metric {number}",),
        benchmarks=BENCHMARKS,
        submitter="ada",
        content_sha256=digest,
        archive=f"uploads/{digest}.zip",
        received_at=at,
    )


@pytest.mark.slow
@pytest.mark.parametrize(("processes", "n"), [(1, 200), (2, 80)])
def test_a_spike_of_submissions_is_few_commits(processes: int, n: int) -> None:
    simulated = SimulatedTime()
    made = [CommitBudget(100 // processes, 10, simulated, simulated.sleep) for _ in range(2)]
    spike = Spike(n, simulated, (made[0], made[processes - 1]))
    spike.run()
    statuses = Ledger(spike.app).statuses()
    assert [(status.state, status.attempts) for status in statuses] == [(State.PUBLISHED, 1)] * n
    assert verify(spike.public) == ()
    assert len(spike.private.list("uploads/")) == n
    assert most_in_an_hour(spike.sent) <= 100
    assert len(spike.sent) <= 3 * n
