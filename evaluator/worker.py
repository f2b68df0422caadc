"""Takes queued submissions one after the other: scores them, judges them, publishes them.

A worker holds a lease on what it works on and beats while it works. A dead worker's submission is
taken by another, which finds the finished shards and scores what is missing. Publishing is one
commit, made only while the lease is still held, so nothing is published twice or half.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from benchmarks.errors import AssayError, PlatformError, SubmitterError, TransientError
from benchmarks.schema import Benchmark
from evaluator.heartbeat import Heartbeat, RunProgress
from evaluator.judging import Judged, Publisher, Scored, judge
from evaluator.scorer_role import ScorerRole
from evaluator.scoring.progress import Progress
from leaderboard.ledger import Ledger
from leaderboard.records import Event, Kind, Status, Submission
from leaderboard.states import IN_WORK, State
from leaderboard.store.interface import Store, transact
from leaderboard.store.live import Pulse

LEASE = timedelta(hours=8)
SILENT_AFTER = timedelta(seconds=60)
"""A worker that has not beaten for so long is dead, whatever its lease says."""
LEASE_CHECKED_EVERY = timedelta(seconds=30)
MAX_ATTEMPTS = 3
LOG_CHARS = 4000
_OURS_WHEN_WORKING = frozenset({"data_missing", "data_malformed", "images_missing"})
"""Errors about this machine's data: not the submitter's, once the submission was accepted."""

log = logging.getLogger(__name__)


def _nobody_listens(_: RunProgress) -> None:
    """The default listener."""


class Worker:
    """One worker; works on one submission at a time.

    Args:
        name: unique among the workers a store ever had.
        store: where submissions come from and results go.
        registry: the benchmarks known here.
        data: folder of benchmark data, if there is one.
        scorers: runs scoring modules.
        clock: the current time, with a time zone.
        listener: is told of progress.
    """

    def __init__(
        self,
        name: str,
        store: Store,
        *,
        registry: Mapping[str, Benchmark],
        data: Path | None,
        scorers: ScorerRole,
        clock: Callable[[], datetime],
        listener: Callable[[RunProgress], None] = _nobody_listens,
    ) -> None:
        self.name = name
        self.scorers = scorers
        self._store = store
        self._ledger = Ledger(store)
        self._publisher = Publisher(store, registry)
        self._registry = registry
        self._data = data
        self._clock = clock
        self._listener = listener
        self._owed: list[tuple[str, Event]] = []
        self._output = ""
        self.heart = Heartbeat(store.live, self._idle_pulse(), clock)

    def run_forever(self, stop: threading.Event, poll_s: float = 1.0) -> None:
        """Work until told to stop. The worker outlives any defect; it is logged and slept over."""
        self.scorers.sweep(self._clock().timestamp())
        with self.heart:
            while not stop.is_set():
                try:
                    worked = self.run_next()
                except TransientError as error:
                    log.warning("The store failed for now: %s", error)
                    worked = False
                except Exception:
                    log.exception("The worker met a defect and goes on.")
                    worked = False
                if not worked:
                    stop.wait(poll_s)

    def run_all(self) -> None:
        """Work until nothing is left that this worker can do now."""
        with self.heart:
            while self.run_next():
                pass

    def run_next(self) -> bool:
        """Work on the oldest submission that can be claimed; False if there is none."""
        self._settle()
        for status in self._ledger.statuses():
            if self._can_take(status) and self._claim(status):
                self._work(status.submission.submission_id)
                return True
        return False

    def run(self, submission_id: str) -> bool:
        """Work on one submission, if it can be claimed."""
        with self.heart:
            status = self._ledger.status(submission_id)
            if not (self._can_take(status) and self._claim(status)):
                return False
            self._work(submission_id)
            return True

    # Claiming

    def _can_take(self, status: Status) -> bool:
        """Whether it is free and this machine can do it."""
        if not self._free(status):
            return False
        submission = status.submission
        benchmarks = [self._registry.get(name) for name in submission.benchmarks]
        if not all(b is not None and b.has_answers(self._data) for b in benchmarks):
            return False
        if submission.kind is Kind.SCORES:
            return True
        with_images = all(b is not None and b.has_questions(self._data) for b in benchmarks)
        return with_images and self.scorers.can_run(submission)

    def _free(self, status: Status) -> bool:
        """Whether nobody works on it: it waits, or whoever held it is gone."""
        if status.state not in IN_WORK:
            return status.due(self._clock())
        if status.by == self.name:
            return True  # Asked only between two submissions: a leftover of an earlier fault.
        beats = [pulse.at for pulse in self._store.live.pulses() if pulse.worker == status.by]
        if beats:
            return max(beats) < self._clock() - SILENT_AFTER
        return status.expired(self._clock())

    def _claim(self, status: Status) -> bool:
        """Take a submission; False if another worker was faster, or it wore out its workers."""
        now = self._clock()
        submission_id = status.submission.submission_id
        if status.state in IN_WORK and status.attempts >= MAX_ATTEMPTS:
            self._append_if(self._free, submission_id, self._worn_out(status))
            return False
        events = [
            Event(at=now, state=State.CLAIMED, by=self.name, lease_until=now + LEASE),
            Event(at=now, state=State.SCORING, by=self.name),
        ]
        try:
            self._ledger.append(submission_id, events, still=self._free)
        except TransientError as error:
            log.info("Not claimed: %s", error)
            return False
        self.heart.working_on(submission_id)
        return True

    def _worn_out(self, status: Status) -> Event:
        return Event(
            at=self._clock(),
            state=State.FAILED,
            by=self.name,
            code="worker_lost",
            fault="platform",
            reason=f"{status.attempts} workers died while they worked on it.",
            hint="It may need more memory than there is. The operator has the workers' logs.",
        )

    # Working

    def _work(self, submission_id: str) -> None:
        """Score, judge and publish; every failure becomes a state with a reason."""
        status = self._ledger.status(submission_id)
        self._output = ""
        try:
            self._publish(status, self._score(status))
        except KeyboardInterrupt:
            reason = "The worker was stopped; what was finished is kept."
            self._conclude(status, State.QUEUED, reason=reason)
            raise
        except TransientError as error:
            self._give_back(status, error)
        except SubmitterError as error:
            ours = error.code in _OURS_WHEN_WORKING
            self._fail(status, PlatformError(error.code, error.message) if ours else error)
        except AssayError as error:
            self._fail(status, error)
        except Exception:
            number = uuid.uuid4().hex[:8]
            log.exception("Incident %s with %s", number, submission_id)
            self._fail(status, _incident(number))
        finally:
            self.heart.working_on("")

    def _score(self, status: Status) -> list[Scored]:
        submission = status.submission
        with self.scorers.open(submission, self._ledger.upload(submission)) as run:
            try:
                return [
                    run.scores_of(self._registry[name], self._data, self._teller(submission, name))
                    for name in submission.benchmarks
                ]
            finally:
                self._output = run.log

    def _teller(self, submission: Submission, benchmark: str) -> Callable[[Progress], None]:
        """Passes progress on, and stops the work where the lease was lost meanwhile."""
        checked = self._clock()

        def tell(progress: Progress) -> None:
            nonlocal checked
            run = RunProgress(submission.submission_id, submission.name, benchmark, progress)
            self.heart.tell(run)
            self._listener(run)
            if self._clock() - checked > LEASE_CHECKED_EVERY:
                checked = self._clock()
                if not self._mine(self._ledger.status(submission.submission_id)):
                    raise TransientError("lost_race", "Another worker has taken this submission.")

        return tell

    def _publish(self, status: Status, scored: Sequence[Scored]) -> None:
        submission = status.submission
        now = self._clock()
        judged = [
            judge(submission, one, self._registry[one.benchmark], self._data, now) for one in scored
        ]
        self._keep_private(submission, judged)
        output = self._output[-LOG_CHARS:] if self._may_show(submission) else ""
        events = [
            Event(at=now, state=State.SCORED, by=self.name, log=output),
            Event(at=now, state=State.JUDGING, by=self.name),
            Event(at=now, state=State.PUBLISHED, by=self.name),
        ]
        self._ledger.append(
            submission.submission_id,
            events,
            still=self._mine,
            also=lambda: self._public_files(judged, now),
        )
        self.scorers.forget(submission)

    def _public_files(self, judged: Sequence[Judged], now: datetime) -> dict[str, bytes]:
        files = self._publisher.snapshot_files(now, judged)
        for one in judged:
            files |= one.files().public
        return files

    def _keep_private(self, submission: Submission, judged: Sequence[Judged]) -> None:
        """What must not be public comes first: the boards read it once the run is published."""
        if not self._mine(self._ledger.status(submission.submission_id)):
            raise TransientError("lost_race", "Another worker has taken this submission.")
        files = {path: f for one in judged for path, f in one.files().private.items()}
        if files:
            transact(self._store.private, lambda: files, "draws of private answers")

    def _may_show(self, submission: Submission) -> bool:
        """Whether the scorer's output may be published: it may tell of what it was shown."""
        return all(self._registry[name].card.answers_public for name in submission.benchmarks)

    def _mine(self, status: Status) -> bool:
        return status.state in IN_WORK and status.by == self.name

    # Ending without publishing

    def _give_back(self, status: Status, error: TransientError) -> None:
        """Queue it again after a fault of the world, unless that happened too often."""
        if status.attempts >= MAX_ATTEMPTS:
            text = f"Gave up after {status.attempts} attempts: {error.message}"
            self._fail(status, PlatformError(error.code, text, error.hint))
            return
        reason = f"Attempt {status.attempts} failed and will be repeated: {error.message}"
        self._conclude(status, State.QUEUED, reason=reason, code=error.code, fault="world")

    def _fail(self, status: Status, error: AssayError) -> None:
        log.warning("%s failed: %s", status.submission.submission_id, error)
        if error.fault == "submitter":
            self.scorers.forget(status.submission)  # The same code would only fail again.
        self._conclude(
            status,
            State.FAILED,
            reason=error.message,
            hint=error.hint,
            code=error.code,
            fault=error.fault,
            log=self._output[-LOG_CHARS:] if self._may_show(status.submission) else "",
        )

    def _conclude(self, status: Status, state: State, **more: str) -> None:
        event = Event.model_validate({"at": self._clock(), "state": state, "by": self.name, **more})
        self._append_if(self._mine, status.submission.submission_id, event)

    def _append_if(self, still: Callable[[Status], bool], submission_id: str, event: Event) -> None:
        """Record an event; while the store fails it is kept in mind and recorded later."""
        try:
            self._ledger.append(submission_id, [event], still=still)
        except TransientError as error:
            if error.code == "lost_race":
                log.warning("Not recorded, since another worker has it now: %s", error)
            else:
                log.warning("To be recorded later: %s", error)
                self._owed.append((submission_id, event))

    def _settle(self) -> None:
        """Record what the store could not take before."""
        owed, self._owed = self._owed, []
        for submission_id, event in owed:
            self._append_if(self._mine, submission_id, event)

    def _idle_pulse(self) -> Pulse:
        gate = self.scorers.gate
        return Pulse(
            worker=self.name,
            at=self._clock(),
            isolation_ok=gate.ok,
            isolation=", ".join(self.scorers.layers) if gate.ok else f"{gate.reason} {gate.remedy}",
        )


def _incident(number: str) -> PlatformError:
    """What is told of a defect of ours; the rest stays in the worker's own log."""
    return PlatformError(
        "incident",
        f"Assay itself failed (incident {number}).",
        "Nothing is wrong with the submission; send it again, and tell the operator if it repeats.",
    )
