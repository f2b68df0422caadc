"""One worker as a process of its own: forked, on a store of its kind, dying at a step or with a wrong clock."""

from __future__ import annotations

import datetime as datetime_module
import faulthandler
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TextIO

from benchmarks.sources.client import httpx
from evaluator.commands.worker_loop import stop_on_signals
from evaluator.isolation.backend import IsolationStatus, Probe
from evaluator.isolation.job import Limits
from evaluator.scoring.engine import EngineOptions
from evaluator.submission import runs
from evaluator.worker.disk import DiskPlaces, DiskWatch
from evaluator.worker.scorer_role import ScorerRole
from evaluator.worker.worker import Worker
from leaderboard.store import interface
from leaderboard.store.folder import folder_store
from leaderboard.store.grouping import Grouping
from leaderboard.store.hub.budget import CommitBudget
from leaderboard.store.hub.hub_store import JOBS_PER_COMMIT, HubParts
from leaderboard.store.interface import Store
from leaderboard.store.live.interface import FolderLive
from tests.endurance.ladder import CallLog, Ladder, LoggedBackend
from tests.endurance.stages import Trace, current_stage

OURS = ("benchmarks", "leaderboard", "evaluator", "pydantic", "filelock", "email", "logging")


def set_wrong(seconds: float) -> None:
    """From now on this process takes it to be so much later; for a process that ends with it."""
    right, right_ns = time.time, time.time_ns
    time.time = lambda: right() + seconds
    time.time_ns = lambda: right_ns() + int(seconds * 1e9)
    right_class = datetime_module.datetime

    class Wrong(right_class):  # type: ignore[valid-type, misc]
        """Its `now` is that of the wrong clock; in all else it is the right class."""

        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return right_class.now(tz) + datetime_module.timedelta(seconds=seconds)

        @classmethod
        def utcnow(cls) -> Any:
            return right_class.now() + datetime_module.timedelta(seconds=seconds)

    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in OURS and vars(module).get("datetime") is right_class:
            module.datetime = Wrong  # type: ignore[attr-defined]


_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGES = frozenset({"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link"})
_STEADY = frozenset({"heartbeat", "leases"})
"""They work when they do, and would make the count of another start another one."""


class Countdown:
    """Counts steps; the process dies at one of them, or a moment after it."""

    def __init__(self, trace: Trace, stage: int, at: int, after_s: float) -> None:
        self._trace = trace.open()
        self._stage = stage
        self._at = at
        self._after_s = after_s
        self._steps = 0  # of its stage

    def step(self) -> None:
        """One more."""
        if threading.current_thread().name in _STEADY:
            return
        stage = current_stage()
        os.write(self._trace, bytes([stage]))
        self._steps += stage == self._stage
        if stage != self._stage or self._steps != self._at:
            return
        if self._after_s:
            signal.setitimer(signal.ITIMER_REAL, self._after_s)  # Its signal ends the process.
        else:
            os.kill(os.getpid(), signal.SIGKILL)


def at_changes(below: tuple[str, ...], countdown: Countdown) -> None:
    """Count every change of a file below some folders, and every wait for the disk.

    Between two of them lies at most the writing of one file, so a death at each of them leaves
    everything that a death can leave, but for a file that is written in part.
    """

    def hook(event: str, given: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = given
            changes = bool(flags & _WRITING)
        elif event in _CHANGES:
            path, changes = given[0], True
        else:
            return
        if changes and isinstance(path, str | os.PathLike):
            if str(path).startswith(below):
                countdown.step()
        elif changes and event in {"os.remove", "os.rmdir"}:  # relative to an open folder
            countdown.step()

    whole = os.fsync

    def fsync(fd: Any) -> None:
        countdown.step()
        whole(fd)

    os.fsync = fsync
    sys.addaudithook(hook)


def at_requests(countdown: Countdown) -> None:
    """Count every HTTP request twice: before it is sent, and when its answer is there."""
    whole = httpx.Client.send

    def send(client: Any, request: Any, **options: Any) -> Any:
        countdown.step()
        answer = whole(client, request, **options)
        countdown.step()
        return answer

    setattr(httpx.Client, "send", send)  # noqa: B010 (not a method of ours to assign)


NAME = "lab/assay"
_LONGEST_PAUSE_S = 0.5


def hub_store_of(
    name: str,
    folder: Path,
    *,
    live: Path,
    endpoint: str,
    token: str,
    commits_per_hour: int = 0,
    rate: float = 1.0,
    jobs: int = 0,
    fresh_for_s: float = 0.2,
) -> Store:
    """As `hub_store` opens it, but for the pace of its budget and its rests."""
    budget = _budget(commits_per_hour, rate) if commits_per_hour else None
    parts = HubParts(
        name,
        folder,
        endpoint=endpoint,
        token=token,
        fresh_for_s=fresh_for_s,
        budget=budget,
        sleep=_rest(rate),
        pauses=(0.02, 0.05, 0.1, 0.2),
    )
    return Store(
        public=Grouping(parts.public, budget, commits=2),
        private=Grouping(parts.private, budget),
        live=FolderLive(live),
        clock=parts.client.clock,
        jobs_per_commit=jobs or JOBS_PER_COMMIT,
        look_every_s=0.0,
        commits_left=budget.left if budget else None,
        look_anew=parts.forget_heads,
    )


def _rest(rate: float) -> Callable[[float], None]:
    """Rests that are shorter by as much as the hours are, and never long."""

    def rest(seconds: float) -> None:
        time.sleep(min(seconds / rate, _LONGEST_PAUSE_S))

    return rest


def _budget(per_hour: int, rate: float) -> CommitBudget:
    return CommitBudget(
        per_hour,
        max(1, per_hour // 5),
        clock=lambda: time.monotonic() * rate,
        sleep=lambda s: time.sleep(s / rate),
    )


BATCH_PAIRS = 2
POLL_S = 0.1
_PROBE = Probe(ok=True, layers=("fake",))


@dataclass(frozen=True)
class Given:
    """What a worker process is to be."""

    name: str  # of the worker
    place: str  # folder with `calls`, and the log and the trace of every worker
    store: str  # a folder, or `OWNER/NAME` on a Hub
    scratch: str  # its disk
    endpoint: str = ""  # of the Hub; empty: the store is a folder
    token: str = ""  # likewise
    jobs: int = 1  # how many are claimed in one commit
    delay_s: float = 0.005  # of every request to a scorer
    dies_in: int = 0  # stage in which it dies
    dies_at: int = 0  # step of that stage at which it dies; 0: at none
    dies_after_s: float = 0.0  # so long after that step
    steps: str = "changes"  # what counts as one: `changes` of files or `requests`
    # whether it ends when there is nothing to do, rather than when it is told to
    ends: bool = False
    wrong_s: float = 0.0  # by how much its own clock is wrong
    silent_after_s: float = 60.0  # when others are taken for dead
    own_clock: bool = False  # whether it goes by its own clock, as no worker should
    floor_bytes: int = 0  # with less free on its disk it begins nothing; 0: nobody watches the disk
    commits_per_hour: int = 0  # its part of the budget; 0: as the store has it
    rate: float = 1.0  # so many seconds of the Hub pass in one, and of the budget too
    fresh_for_s: float = 0.2  # so long it believes a version of the Hub; 0: it asks each time

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


WHERE_IT_IS = signal.SIGUSR1
"""A worker that receives it writes to its log what each of its threads does."""


def run(given: Mapping[str, Any]) -> None:
    """Be that worker, to its end."""
    wanted = Given(**given)
    place = Path(wanted.place)
    log = _log_to(place / f"{wanted.name}.log")
    faulthandler.register(WHERE_IT_IS, log)
    stop = threading.Event()
    with stop_on_signals(stop):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        _work(wanted, place, stop)


def _work(wanted: Given, place: Path, stop: threading.Event) -> None:
    if wanted.wrong_s:
        set_wrong(wanted.wrong_s)
    trace = Trace(place / f"{wanted.name}.steps")
    countdown = Countdown(trace, wanted.dies_in, wanted.dies_at, wanted.dies_after_s)
    if wanted.steps == "requests":
        at_requests(countdown)
        worker = made(wanted)
    else:
        worker = made(wanted, measuring=countdown.step)
        at_changes((wanted.store, wanted.scratch), countdown)
    if not wanted.ends:
        worker.run_forever(stop, POLL_S)
        return
    worker.run_all(stop)


def made(
    given: Given, store: Store | None = None, measuring: Callable[[], None] = lambda: None
) -> Worker:
    """The worker, and all it works with; `measuring` is called whenever it computes values."""
    # Nothing of it changes a score; there is more than one shard to go on from.
    options = EngineOptions(window=1, batch_pairs=BATCH_PAIRS, fetchers=1, keep_every_s=0.0)
    setattr(runs, "IN_PLAN_ORDER", options)  # noqa: B010 (a constant of theirs)
    backend = LoggedBackend(given.name, CallLog(Path(given.place) / "calls"), given.delay_s)
    scratch = Path(given.scratch)
    return Worker(
        given.name,
        store or store_of(given),
        registry={"toy": Ladder(measuring)},
        data=None,
        scorers=ScorerRole(
            IsolationStatus(backend, (("fake", _PROBE),)), backend, scratch, Limits()
        ),
        disk=_watch(scratch, given.floor_bytes),
        silent_after=timedelta(seconds=given.silent_after_s),
    )


def store_of(given: Given) -> Store:
    """The store, as this process has it."""
    store = _opened(given)
    return replace(store, clock=interface.utc_now) if given.own_clock else store


def _opened(given: Given) -> Store:
    if not given.endpoint:
        return replace(folder_store(Path(given.store)), jobs_per_commit=given.jobs)
    folder = Path(given.place) / f"{given.name}.hub"
    return hub_store_of(
        given.store,
        folder,
        live=Path(given.place) / "live",
        endpoint=given.endpoint,
        token=given.token,
        commits_per_hour=given.commits_per_hour,
        rate=given.rate,
        jobs=given.jobs,
        fresh_for_s=given.fresh_for_s,
    )


def _watch(scratch: Path, floor_bytes: int) -> DiskWatch | None:
    if not floor_bytes:
        return None
    places = DiskPlaces(scratch=scratch, models=scratch / "models")
    return DiskWatch(places, lambda: (), floor_bytes=floor_bytes, high_bytes=floor_bytes)


def _log_to(file: Path) -> TextIO:
    log = file.open("a")
    handler = logging.StreamHandler(log)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    return log
