"""A spike of submissions on a store that counts its commits as the Hub does, in simulated time."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import TypeVar

from leaderboard.ledger.batch import Batch
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Event, Kind, Submission
from leaderboard.states import State
from leaderboard.store.grouping import Grouping
from leaderboard.store.hub.budget import HOUR_S, CommitBudget, CommitsUsedUpError
from leaderboard.store.interface import Changes, Store
from leaderboard.store.live.interface import MemoryLive
from leaderboard.store.memory import MemoryRepository

_T = TypeVar("_T")
T0 = datetime(2026, 1, 1, tzinfo=UTC)
LATENCY_S = 2.0
"""Of one commit to the Hub."""
SCORING_S = 20.0
"""Of one submission."""
POLL_S = 30.0
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
    """A condition whose waiters are known to have nothing to do.

    Args:
        simulated: the time that may move while they wait.
    """

    def __init__(self, simulated: SimulatedTime) -> None:
        super().__init__()
        self._time = simulated
        self._asleep = 0

    def wait(self, timeout: float | None = None) -> bool:
        """See `threading.Condition`."""
        self._asleep += 1
        self._time.stop()
        return super().wait(timeout)

    def notify_all(self) -> None:
        """See `threading.Condition`; whoever is woken is at work before it runs."""
        self._time.begin(self._asleep)
        self._asleep = 0
        super().notify_all()


class Counted(MemoryRepository):
    """A repository whose commits are as many on the Hub as it has parts, and take their time.

    Args:
        made: when a commit was sent, whoever sent it.
        budget: of the process that commits.
        time: in which it happens.
        parts: how many repositories of the Hub a change of these paths is a commit to.
    """

    def __init__(
        self, made: list[float], simulated: SimulatedTime, parts: Callable[[Iterable[str]], int]
    ) -> None:
        super().__init__()
        self._made = made
        self._time = simulated
        self._parts = parts

    def through(self, budget: CommitBudget, commits: int) -> Grouping:
        """As one process uses it."""
        grouping = Grouping(_Spending(self, budget), budget, commits=commits)  # type: ignore[arg-type]
        grouping._turns._changed = WatchedCondition(self._time)
        return grouping

    def send(self, changes: Changes, budget: CommitBudget, parent: str, message: str) -> str:
        """One commit to each part, the last of which decides; also those that lose count."""
        for _ in range(self._parts(changes)):
            budget.wait()
            self._made.append(self._time())
            self._time.sleep(LATENCY_S)
        return self.commit(changes, parent=parent, message=message)


class _Spending:
    def __init__(self, under: Counted, budget: CommitBudget) -> None:
        self._under = under
        self._budget = budget

    def __getattr__(self, name: str) -> object:
        return getattr(self._under, name)

    def commit(self, changes: Changes, *, parent: str, message: str) -> str:
        return self._under.send(changes, self._budget, parent, message)


def one_part(_: Iterable[str]) -> int:
    """Uploads are kept in one repository."""
    return 1


def three_parts(paths: Iterable[str]) -> int:
    """Scores, results and what decides are in a repository each."""
    parts = {
        path.startswith("results/") and path.endswith(".parquet"): path.startswith("results/")
        for path in paths
    }
    return 1 + parts.get(True, 0) + parts.get(False, 0)


@dataclass
class Spike:
    """What happens, and what came of it.

    Attributes:
        submissions: how many come at once.
        submitters: threads of the process that takes them.
        workers: threads that run them.
        jobs: how many a worker claims and publishes in one commit.
        budgets: of the process that takes submissions and of that of the workers; the same twice
            where it is one.
    """

    submissions: int
    submitters: int
    workers: int
    jobs: int
    time: SimulatedTime
    budgets: tuple[CommitBudget, CommitBudget]
    sent: list[float] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    turned_away: int = 0

    def __post_init__(self) -> None:
        self.public = Counted(self.sent, self.time, three_parts)
        self.private = Counted(self.sent, self.time, one_part)
        self._broken = False
        takes, runs = self.budgets
        self._app = self._process(takes)
        self._workers = self._app if takes is runs else self._process(runs)

    def run(self) -> None:
        """Send everything at once and work until nothing is left."""
        self.time.begin(self.submitters + self.workers)
        with ThreadPoolExecutor(self.submitters + self.workers) as pool:
            each = [range(n, self.submissions, self.submitters) for n in range(self.submitters)]
            done = [pool.submit(self._submit, numbers) for numbers in each]
            done += [pool.submit(self._work, f"w{n}") for n in range(self.workers)]
            for future in done:
                future.add_done_callback(self._ended)
            for future in done:
                future.result()

    def _ended(self, future: Future[None]) -> None:
        self._broken = self._broken or future.exception() is not None
        self.time.stop()

    def most_in_an_hour(self) -> int:
        """The largest number of commits within an hour, wherever it begins."""
        sent = sorted(self.sent)
        return max(bisect_left(sent, at + HOUR_S) - n for n, at in enumerate(sent))

    def _process(self, budget: CommitBudget) -> Store:
        public, private = self.public.through(budget, 3), self.private.through(budget, 1)
        return Store(public, private, MemoryLive(), self._clock, self.jobs)

    def _clock(self) -> datetime:
        return T0 + timedelta(seconds=self.time())

    def _submit(self, numbers: Sequence[int]) -> None:
        ledger = Ledger(self._app)
        for number in numbers:
            asked = self.time()
            submission = a_submission(number, self._clock())
            events = [self._event(state, "ada") for state in (State.RECEIVED, State.QUEUED)]
            self._patiently(partial(ledger.receive, submission, b"upload", events))
            self.waited.append(self.time() - asked)

    def _patiently(self, ask: Callable[[], _T]) -> _T:
        """Whoever is told to come later comes later."""
        while True:
            try:
                return ask()
            except CommitsUsedUpError:
                self.turned_away += 1
                self.time.sleep(POLL_S)

    def _work(self, name: str) -> None:
        ledger = Ledger(self._workers)
        while not self._broken and not self._all_published(ledger):
            claimed = self._claim(ledger, name)
            self.time.sleep(SCORING_S * len(claimed) or POLL_S)
            if claimed:
                self._publish(ledger, name, claimed)

    def _all_published(self, ledger: Ledger) -> bool:
        return sum(s.state is State.PUBLISHED for s in ledger.statuses()) == self.submissions

    def _claim(self, ledger: Ledger, name: str) -> Sequence[str]:
        def batch() -> Batch:
            waiting = [s for s in ledger.statuses() if s.state is State.QUEUED][: self.jobs]
            lease = self._clock() + timedelta(hours=8)
            return Batch(
                {
                    s.submission.submission_id: [
                        self._event(State.CLAIMED, name, lease_until=lease),
                        self._event(State.SCORING, name),
                    ]
                    for s in waiting
                }
            )

        return tuple(self._patiently(lambda: ledger.write(batch, f"claimed by {name}")))

    def _publish(self, ledger: Ledger, name: str, claimed: Sequence[str]) -> None:
        states = (State.SCORED, State.JUDGING, State.PUBLISHED)
        files = {
            f"results/{one}/{benchmark}.{kind}": b"content"
            for one in claimed
            for benchmark in BENCHMARKS
            for kind in ("json", "scores.parquet", "clusters.parquet", "resamples.parquet")
        }

        def batch() -> Batch:
            assert all(ledger.status(one).held_by(name) for one in claimed)
            events = {one: [self._event(state, name) for state in states] for one in claimed}
            return Batch(events, files=lambda _: files)

        self._patiently(lambda: ledger.write(batch, f"published by {name}"))

    def _event(self, state: State, by: str, **more: object) -> Event:
        return Event.model_validate({"at": self._clock(), "state": state, "by": by, **more})


def a_submission(number: int, at: datetime) -> Submission:
    """One of a spike."""
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
