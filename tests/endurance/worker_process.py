"""One worker as a process of its own, made by a fork of a program that has imported everything."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from evaluator.isolation.backend import IsolationStatus, Probe
from evaluator.isolation.limits import Limits
from evaluator.scoring.engine import EngineOptions
from evaluator.submission import runs
from evaluator.worker.disk import DiskPlaces, DiskWatch
from evaluator.worker.scorer_role import ScorerRole
from evaluator.worker.worker import Worker
from leaderboard.store import interface
from leaderboard.store.folder import folder_store
from leaderboard.store.interface import Store
from tests.endurance.dying import Countdown, at_changes, at_requests
from tests.endurance.hub_stores import hub_store_of
from tests.endurance.ladder import CallLog, Ladder, LoggedBackend
from tests.endurance.stages import Board, tell_stages
from tests.endurance.wrong_time import set_wrong

BATCH_PAIRS = 2
POLL_S = 0.03
_PROBE = Probe(ok=True, layers=("fake",))


@dataclass(frozen=True)
class Given:
    """What a worker process is to be."""

    name: str  # of the worker
    line: int  # on the board of stages
    place: str  # folder with `board`, `calls` and the log of every worker
    store: str  # a folder, or `OWNER/NAME` on a Hub
    scratch: str  # its disk
    endpoint: str = ""  # of the Hub; empty: the store is a folder
    token: str = ""  # likewise
    jobs: int = 1  # how many are claimed in one commit
    delay_s: float = 0.005  # of every request to a scorer
    dies_at: int = 0  # step at which it dies; 0: at none
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


def run(given: Mapping[str, Any]) -> None:
    """Be that worker, to its end."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    wanted = Given(**given)
    place = Path(wanted.place)
    _log_to(place / f"{wanted.name}.log")
    if wanted.wrong_s:
        set_wrong(wanted.wrong_s)
    board = Board(place / "board")
    tell_stages(board, wanted.line)
    countdown = Countdown(wanted.dies_at, lambda n: board.write(wanted.line, steps=n))
    if wanted.steps == "requests":
        at_requests(countdown)
    worker = made(wanted)
    if wanted.steps == "changes":
        at_changes((wanted.store, wanted.scratch), countdown)
    if not wanted.ends:
        worker.run_forever(stop, POLL_S)
        return
    worker.run_all(stop)


def made(given: Given, store: Store | None = None) -> Worker:
    """The worker, and all it works with."""
    # Nothing of it changes a score; there is more than one shard to go on from.
    options = EngineOptions(window=1, batch_pairs=BATCH_PAIRS, fetchers=1, keep_every_s=0.0)
    setattr(runs, "IN_PLAN_ORDER", options)  # noqa: B010 (a constant of theirs)
    backend = LoggedBackend(given.name, CallLog(Path(given.place) / "calls"), given.delay_s)
    scratch = Path(given.scratch)
    return Worker(
        given.name,
        store or store_of(given),
        registry={"toy": Ladder()},
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


def _log_to(file: Path) -> None:
    handler = logging.FileHandler(file)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
