"""Takes queued submissions one after the other: scores them, judges them, publishes them.

A worker holds a lease on what it works on and beats while it works. A dead worker's submission is
taken by another, which finds the finished shards and scores what is missing. Publishing is one
commit, made only while the lease is still held, so nothing is published twice or half.
"""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from benchmarks.errors import AssayError, PlatformError, TransientError
from benchmarks.schema import Benchmark
from evaluator.judging import Judged, Scored, judge, snapshot_files
from evaluator.scorer_role import ScorerRole
from evaluator.scoring.progress import Progress
from leaderboard.ledger import Ledger
from leaderboard.records import Event, Kind, Status, Submission
from leaderboard.states import IN_WORK, State
from leaderboard.store.interface import Store
from leaderboard.store.live import Pulse

LEASE = timedelta(hours=8)
SILENT_AFTER = timedelta(seconds=60)
"""A worker that has not beaten for so long is dead, whatever its lease says."""
BEAT_S = 2.0
MAX_ATTEMPTS = 3
LOG_CHARS = 4000

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunProgress:
    """Where a run (one submission on one benchmark) stands, for whoever listens.

    Attributes:
        submission: its id.
        metric: its name on the boards.
        benchmark: the benchmark.
        progress: of this run.
        runs_left: runs of this submission after this one.
    """

    submission: str
    metric: str
    benchmark: str
    progress: Progress
    runs_left: int


def _nobody_listens(_: RunProgress) -> None:
    """The default listener."""


@dataclass
class Worker:
    """One worker; works on one submission at a time.

    Attributes:
        name: unique among the workers of a store.
        store: where submissions come from and results go.
        registry: the benchmarks known here.
        data: folder of benchmark data, if there is one.
        scorers: runs scoring modules.
        clock: the current time, with a time zone.
        listener: is told of progress.
    """

    name: str
    store: Store
    registry: Mapping[str, Benchmark]
    data: Path | None
    scorers: ScorerRole
    clock: Callable[[], datetime]
    listener: Callable[[RunProgress], None] = _nobody_listens
    _pulse: Pulse | None = field(default=None, init=False)
    _output: str = field(default="", init=False)
    _pulse_lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    @property
    def ledger(self) -> Ledger:
        """The submissions of the store."""
        return Ledger(self.store)

    def run_forever(self, stop: threading.Event, poll_s: float = 1.0) -> None:
        """Work until told to stop; a fault of the store is logged and tried again."""
        with self._beating():
            while not stop.is_set():
                try:
                    worked = self.run_next()
                except TransientError as error:
                    log.warning("The store failed for now: %s", error)
                    worked = False
                if not worked:
                    stop.wait(poll_s)

    def run_all(self) -> None:
        """Work until nothing is left that this worker can do."""
        with self._beating():
            while self.run_next():
                pass

    def run_next(self) -> bool:
        """Work on the oldest submission that can be claimed; False if there is none."""
        for status in self.ledger.statuses():
            if self._can_take(status) and self._claim(status):
                self._work(status.submission.submission_id)
                return True
        return False

    def run(self, submission_id: str) -> bool:
        """Work on one submission, if it can be claimed."""
        status = self.ledger.status(submission_id)
        if not (self._can_take(status) and self._claim(status)):
            return False
        with self._beating():
            self._work(submission_id)
        return True

    def _can_take(self, status: Status) -> bool:
        """Whether it is free and this machine can do it."""
        if not self._free(status):
            return False
        submission = status.submission
        if any(name not in self.registry for name in submission.benchmarks):
            return False
        if submission.kind is Kind.METRIC:
            return self.scorers.can_run(submission)
        return all(self.registry[name].has_answers(self.data) for name in submission.benchmarks)

    def _free(self, status: Status) -> bool:
        if status.claimable(self.clock()):
            return True
        return status.state in IN_WORK and self._is_silent(status.by)

    def _is_silent(self, worker: str) -> bool:
        """Whether a worker beat once and then stopped: its process has died."""
        beats = [pulse.at for pulse in self.store.live.pulses() if pulse.worker == worker]
        return bool(beats) and max(beats) < self.clock() - SILENT_AFTER

    def _claim(self, status: Status) -> bool:
        """Take a submission; False if another worker was faster."""
        now = self.clock()
        events = [
            Event(at=now, state=State.CLAIMED, by=self.name, lease_until=now + LEASE),
            Event(at=now, state=State.SCORING, by=self.name),
        ]
        try:
            self.ledger.append(status.submission.submission_id, events, still=self._free)
        except TransientError as error:
            log.info("Not claimed: %s", error)
            return False
        return True

    def _work(self, submission_id: str) -> None:
        """Score, judge and publish; every failure becomes a state with a reason."""
        status = self.ledger.status(submission_id)
        self._output = ""
        try:
            scored = self._score(status)
            self._publish(status, scored)
        except KeyboardInterrupt:
            self._hand_back(status)
            raise
        except TransientError as error:
            self._give_back(status, error)
        except AssayError as error:
            self._fail(status, error, self._output)
        except Exception as error:  # the worker outlives any defect; it is recorded as ours
            incident = f"{type(error).__name__}: {error}"
            log.exception("Incident with %s", submission_id)
            ours = PlatformError(
                "incident",
                f"Assay itself failed ({incident[:200]}).",
                "Nothing is wrong with the submission; it can be sent again.",
            )
            self._fail(status, ours, traceback.format_exc())
        finally:
            self._set_pulse(None)

    def _score(self, status: Status) -> list[Scored]:
        submission = status.submission
        with self.scorers.open(submission, self.ledger.upload(submission)) as run:
            try:
                return [
                    run.scores_of(self.registry[name], self.data, self._teller(submission, name))
                    for name in submission.benchmarks
                ]
            finally:
                self._output = run.log

    def _teller(self, submission: Submission, benchmark: str) -> Callable[[Progress], None]:
        left = len(submission.benchmarks) - submission.benchmarks.index(benchmark) - 1

        def tell(progress: Progress) -> None:
            run = RunProgress(submission.submission_id, submission.name, benchmark, progress, left)
            self._set_pulse(run)
            self.listener(run)

        return tell

    def _publish(self, status: Status, scored: Sequence[Scored]) -> None:
        submission = status.submission
        now = self.clock()
        judged = [
            judge(submission, one, self.registry[one.benchmark], self.data, now) for one in scored
        ]
        events = [
            Event(
                at=now,
                state=state,
                by=self.name,
                log=self._output[-LOG_CHARS:] if state is State.SCORED else "",
            )
            for state in (State.SCORED, State.JUDGING, State.PUBLISHED)
        ]
        self.ledger.append(
            submission.submission_id,
            events,
            still=self._still_mine,
            also=lambda: self._public_files(judged, now),
        )
        self.scorers.forget(submission)

    def _public_files(self, judged: Sequence[Judged], now: datetime) -> dict[str, bytes]:
        files = snapshot_files(self.store, self.registry, now, judged)
        for one in judged:
            files |= one.files()
        return files

    def _still_mine(self, status: Status) -> bool:
        return status.state in IN_WORK and status.by == self.name

    def _hand_back(self, status: Status) -> None:
        """Queue it again because this worker is told to stop."""
        reason = "The worker was stopped; what was finished is kept."
        event = Event(at=self.clock(), state=State.QUEUED, by=self.name, reason=reason)
        self._append_if_mine(status, event)

    def _give_back(self, status: Status, error: TransientError) -> None:
        """Queue it again after a fault of the world, unless that happened too often."""
        if status.attempts >= MAX_ATTEMPTS:
            given_up = PlatformError(
                error.code, f"Gave up after {status.attempts} attempts: {error.message}", error.hint
            )
            self._fail(status, given_up, "")
            return
        event = Event(
            at=self.clock(),
            state=State.QUEUED,
            by=self.name,
            reason=f"Attempt {status.attempts} failed and will be repeated: {error.message}",
            code=error.code,
            fault="world",
        )
        self._append_if_mine(status, event)

    def _fail(self, status: Status, error: AssayError, output: str) -> None:
        event = Event.model_validate(
            {
                "at": self.clock(),
                "state": State.FAILED,
                "by": self.name,
                "reason": error.message,
                "hint": error.hint,
                "code": error.code,
                "fault": error.fault,
                "log": output[-LOG_CHARS:],
            }
        )
        log.warning("%s failed: %s", status.submission.submission_id, error)
        self._append_if_mine(status, event)

    def _append_if_mine(self, status: Status, event: Event) -> None:
        try:
            self.ledger.append(status.submission.submission_id, [event], still=self._still_mine)
        except TransientError as error:
            log.warning("Not recorded, since another worker has it now: %s", error)

    def _set_pulse(self, run: RunProgress | None) -> None:
        with self._pulse_lock:
            self._pulse = self._pulse_of(run)

    def _pulse_of(self, run: RunProgress | None) -> Pulse:
        gate = self.scorers.gate
        idle = Pulse(
            worker=self.name,
            at=self.clock(),
            isolation_ok=gate.ok,
            isolation=", ".join(self.scorers.layers) if gate.ok else f"{gate.reason} {gate.remedy}",
        )
        if run is None:
            return idle
        progress = run.progress
        return idle.model_copy(
            update={
                "submission_id": run.submission,
                "stage": f"{run.benchmark}: {progress.stage}",
                "done": progress.done,
                "total": progress.total,
                "rate_per_s": progress.rate,
                "eta_s": progress.eta_s,
            }
        )

    def _beating(self) -> _Heart:
        return _Heart(self)

    def beat(self) -> None:
        """Tell the store that this worker lives, and what it does."""
        with self._pulse_lock:
            pulse = self._pulse or self._pulse_of(None)
        self.store.live.beat(pulse.model_copy(update={"at": self.clock()}))


class _Heart:
    """Beats from a thread of its own, so that a long batch is no silence."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heart", daemon=True)

    def __enter__(self) -> None:
        self._worker.beat()
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._stop.wait(BEAT_S):
            try:
                self._worker.beat()
            except OSError as error:
                log.warning("No heartbeat: %s", error)
