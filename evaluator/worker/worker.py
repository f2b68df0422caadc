"""Takes queued submissions one after the other: scores them, judges them, publishes them.

A worker of one role alone does its part: it scores and hands over, or it judges and publishes.

A worker claims what it takes with a lease, and beats while it works. A dead worker's submissions
are taken by others: what was finished is published from its spool, and of what was not, only the
missing shards are scored. Publishing is one commit, made only for what the worker still holds, so
nothing is published twice or half.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from benchmarks.errors import AssayError, TransientError
from benchmarks.schema import Benchmark
from evaluator.worker.backfill import Backfill
from evaluator.worker.claimed import ClaimedJobs, Preemption, Release
from evaluator.worker.claims import Claims, SkippedJobs, SlowestRuns
from evaluator.worker.disk import DiskWatch, is_full
from evaluator.worker.finalizer import Finalizer
from evaluator.worker.generations import JudgeSet
from evaluator.worker.handoff import Handoff
from evaluator.worker.leases import LeaseRenewal
from evaluator.worker.leftovers import Leftovers
from evaluator.worker.liveness import (
    SILENT_AFTER,
    Backoff,
    Heartbeat,
    Liveness,
    ProcessLock,
    RunProgress,
)
from evaluator.worker.publish_queue import PublishQueue
from evaluator.worker.publishing import RunPublisher
from evaluator.worker.scorer_role import CodeSlot, ScorerRole
from evaluator.worker.spool import RunSpool, UploadCache
from evaluator.worker.task_runner import Scoring, TaskRunner
from evaluator.worker.tasks import Setting, Task, WorkerRole
from leaderboard.publication.publisher import Publisher, cards_of
from leaderboard.store.interface import NOT_LET_IN, Store
from leaderboard.store.live.interface import Pulse
from leaderboard.submission_service import SandboxAvailability

log = logging.getLogger(__name__)

_STOP_SEEN_WITHIN_S = 0.5
OWED_FOR = timedelta(days=7)


def _nobody_listens(_: RunProgress) -> None:
    """The default listener."""


class Worker:
    """One worker; works on one submission at a time."""

    def __init__(
        self,
        name: str,
        store: Store,
        *,
        registry: Mapping[str, Benchmark],
        data: Path | None,
        scorers: ScorerRole,
        listener: Callable[[RunProgress], None] = _nobody_listens,
        role: WorkerRole = WorkerRole.BOTH,
        keys: Path | None = None,
        wake: threading.Event | None = None,
        disk: DiskWatch | None = None,
        silent_after: timedelta = SILENT_AFTER,
        pace: SlowestRuns | None = None,
    ) -> None:
        self.name = name
        self.scorers = scorers
        self._disk = disk
        self._wake = wake
        self._backoff = Backoff()
        self._at = at = Setting(name, store, registry, data, scorers.scratch, role, keys)
        self._slot = CodeSlot(scorers, role)
        self._lock = ProcessLock(at.scratch / "workers", name)
        self.heart = heart = Heartbeat(store.live, self._idle_pulse(), store.clock)
        publisher = Publisher(store, cards_of(registry))
        self._finalizer = finalizer = Finalizer(at, publisher.snapshot_files)
        spool = RunSpool(at.scratch / "outbox", name)
        self._uploads = UploadCache(at.scratch / "uploads", at.ledger.fetch_upload)
        handoff, results = Handoff(at), RunPublisher(at, publisher)
        judges = JudgeSet(store)
        self._backfill = Backfill(store, judges, registry)
        self._leftovers = Leftovers(at, scorers, spool, handoff, results, self._uploads)
        self._hand = hand = ClaimedJobs(heart.holding, self._leftovers.clear)
        liveness = Liveness(
            name, store.live, self._lock, heart.beat, store.clock, silent_after,
            shared=store.heartbeats_shared,
        )  # fmt: skip
        self.leases = LeaseRenewal(at, lambda: heart.pulse.claimed, liveness.lease)
        pace = pace or SlowestRuns()
        self._claims = Claims(
            at, self._slot, handoff, finalizer, spool, liveness, pace, SkippedJobs(at.ledger),
            holding=lambda one: hand.holds(one) or finalizer.owes(one),
            worth=self._backfill.worth,
        )  # fmt: skip
        self._queue = PublishQueue(
            at,
            spool,
            results=results if role.judges else None,
            handing=handoff,
            endings=finalizer,
            gone=hand.let_go,
        )
        self._release = Release(self._queue, finalizer, hand, self._uploads)
        self._runner = TaskRunner(
            at,
            claims=self._claims,
            endings=finalizer,
            handing=handoff,
            outgoing=self._queue,
            scoring=Scoring(at, scorers, self._uploads, heart, listener, judges),
            hand=hand,
            giving_way=Preemption(hand, finalizer, liveness, store.clock),
            pace=pace,
            broke=self._broke,
        )

    @property
    def gate(self) -> SandboxAvailability:
        """Whether this worker runs strangers' code now."""
        return self._slot.gate

    def run_forever(self, stop: threading.Event, poll_s: float = 1.0) -> None:
        """Work until told to stop. The worker outlives any defect; it is logged and slept over.

        Told to stop, it stops after the running batch, sends what is finished and hands back what
        is not.
        """
        self._runner.stop = stop
        with self._at_work():
            while not stop.is_set():
                pause = self._step(poll_s)
                if pause:
                    self._wait(stop, pause)

    def run_all(self, stop: threading.Event | None = None) -> None:
        """Work until nothing is left that this worker can do now, or it is told to stop."""
        self._runner.stop = stop = stop or threading.Event()
        with self._at_work():
            while not stop.is_set() and self.run_next():
                pass

    def run_next(self) -> bool:
        """Do the next thing: work on one submission, or send what is finished."""
        self._finalizer.settle()
        self._queue.send_due()
        task = self._next()
        if task is None:
            return self._queue.send() or (self._at.role.scores and self._backfill.look())
        self._work(task)
        self._queue.send_due()
        return True

    def run(self, submission_id: str) -> bool:
        """Work on one submission, if it can be claimed."""
        with self._at_work():
            tasks = self._claims.take(submission_id)
            self._hand.take(tasks)
            for task in tasks:
                self._work(task)
            self._queue.send()
            return bool(tasks)

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """Known to others as alive, and left in good order."""
        with self._lock, self.heart, self._release, self.leases:
            now = self._at.now()
            self._lock.sweep(now.timestamp())
            self._finalizer.sweep((now - OWED_FOR).timestamp())
            self._leftovers.sweep(now)
            yield

    def _next(self) -> Task | None:
        """The next submission in hand; several may be claimed for that."""
        if not self._hand.to_do:
            if self._disk is not None:
                self._disk.check()
            self._hand.take(self._claims.more())
            for later in self._hand.to_do[1:]:
                self._uploads.have(later)
        return next(iter(self._hand.to_do), None)

    def _work(self, task: Task) -> None:
        try:
            self._runner.work(task)
        except KeyboardInterrupt:
            self._release.leave()
            raise
        except TransientError:
            raise  # It stays in hand until the store answers, or the disk has room.
        except Exception:
            self._hand.let_go(task)  # Not even its end could be recorded: another attempt shows.
            raise

    def _step(self, poll_s: float) -> float:
        """Do the next thing; for how long to pause after it."""
        try:
            worked = self.run_next()
        except TransientError as error:
            log.warning("Nothing can be done for now: %s", error)
            self.heart.waiting(f"waiting: {_why(error)}")
            return self._backoff.next_s()
        except Exception:
            log.exception("The worker met a defect and goes on.")
            return poll_s
        if self._backoff.failing:
            self._backoff.reset()
            self.heart.working_on("")
        return 0.0 if worked else poll_s

    def _wait(self, stop: threading.Event, seconds: float) -> None:
        if self._wake is None:
            stop.wait(seconds)
            return
        ends = time.monotonic() + seconds
        while not stop.is_set() and (left := ends - time.monotonic()) > 0.0:
            if self._wake.wait(min(left, _STOP_SEEN_WITHIN_S)):
                self._wake.clear()
                return

    def _idle_pulse(self) -> Pulse:
        gate = self._slot.gate
        return Pulse(
            worker=self.name,
            at=self._at.now(),
            isolation_ok=gate.ok,
            isolation=", ".join(self.scorers.layers) if gate.ok else f"{gate.reason} {gate.remedy}",
        )

    def _broke(self, error: AssayError) -> None:
        """No further code may run on this machine."""
        self._slot.broken = error
        self.heart.idle_as(self._idle_pulse())
        log.error("No further code is run by this worker: %s", error)


def _why(error: TransientError) -> str:
    if is_full(error):
        return "the disk has no room"
    if error.code in NOT_LET_IN:
        return "the Hub refuses the token"
    return "the store does not answer"
