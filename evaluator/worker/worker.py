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
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from benchmarks.errors import AssayError, PlatformError, TransientError
from benchmarks.schema import Benchmark
from evaluator.isolation.failures import without_its_words
from evaluator.scoring.progress import Progress
from evaluator.submission.runs import Run, Scored
from evaluator.worker.claims import (
    ClaimedJobs,
    Claims,
    Preemption,
    Release,
    SkippedJobs,
    SlowestRuns,
)
from evaluator.worker.disk import DiskWatch, is_full
from evaluator.worker.generations import BOX_NOT_ENDED, Backfill, GenerationsRun, JudgeSet
from evaluator.worker.handoff import Handoff, RunSpool, still_wanted
from evaluator.worker.liveness import (
    SILENT_AFTER,
    Backoff,
    HeartbeatSender,
    LeaseRenewal,
    Liveness,
    ProcessLock,
    RunProgress,
    StoreContact,
)
from evaluator.worker.publishing import PublishQueue, RunPublisher
from evaluator.worker.scorer_role import CodeSlot, ScorerRole
from evaluator.worker.tasks import (
    MAX_ATTEMPTS_TO_PUBLISH,
    Finalizer,
    Finished,
    Setting,
    Task,
    WorkerRole,
    about,
    blamed,
    incident,
)
from leaderboard.ledger.private_records import BANNED, public_record
from leaderboard.publication.publisher import Publisher, cards_of
from leaderboard.records import Kind, Status, Submission
from leaderboard.replay import asked_at
from leaderboard.states import FINISHED, State
from leaderboard.store.interface import NOT_LET_IN, Store
from leaderboard.store.live.interface import Heartbeat, Live, last_line
from leaderboard.submission_service import SandboxAvailability

log = logging.getLogger(__name__)

_TAKEN_AWAY = frozenset({State.WITHDRAWN, State.HIDDEN, State.REJECTED})
_DONE_WITH = FINISHED - {State.FAILED}
"""What failed by a fault of ours may be run again, and goes on from its shards."""
_OLD = timedelta(days=1)


@dataclass(frozen=True)
class Leftovers:
    """Removes what nobody needs any more."""

    at: Setting
    scorers: ScorerRole  # has their shards
    spool: RunSpool  # has what was finished
    handoff: Handoff  # has what was handed over
    results: RunPublisher  # removes results of what was taken back

    def clear(self, task: Task) -> None:
        """Remove what a task leaves, as far as its submission is over.

        What waits or is in another worker's hands keeps its shards.
        """
        name = task.submission_id
        try:
            status = self.at.ledger.whole_status(name)
            if status.unfinished:
                if status.to_judge:
                    self.scorers.forget(status.submission)
                return
            if status.state in _DONE_WITH:
                self.scorers.forget(status.submission)
            if status.state in _TAKEN_AWAY:
                self.results.discard(status)
            elif task.scored_before:
                self.handoff.remove(name)
            self.at.store.live.forget(name)
        except (AssayError, OSError) as error:
            log.warning("What is left of it was not removed: %s", error, extra=about(name))

    def sweep(self, now: datetime) -> None:
        """Remove what workers before this one left on the disk and in the store, and nobody needs."""
        self.scorers.sweep(now.timestamp())
        self.spool.sweep((now - _OLD).timestamp())
        try:
            self.at.store.sweep()
            self._sweep_known()
        except TransientError as error:
            log.warning("What is left is looked through later: %s", error)

    def _sweep_known(self) -> None:
        # Listed first: what is written meanwhile is for a state that is not read yet.
        finished, shards = self.spool.ids(), self.scorers.with_shards()
        known = {s.submission.submission_id: s for s in self.at.ledger.statuses()}
        for name in finished:
            try:
                wanted = self._is_wanted(name, known.get(name))
            except PlatformError as error:  # What became of it is not known: it stays.
                log.warning("What was finished is kept for now: %s", error, extra=about(name))
                continue
            if not wanted:
                log.info("What was finished is not wanted any more.", extra=about(name))
                self.spool.drop(name)
        for name in shards:
            status = known.get(name)
            if status is not None and status.state in _DONE_WITH:
                self.scorers.forget(status.submission)

    def _is_wanted(self, submission_id: str, status: Status | None) -> bool:
        entry = self.spool.entry(submission_id)
        asked = self._asked_at(submission_id, status)
        return entry is not None and still_wanted(entry, status, asked)

    def _asked_at(self, submission_id: str, status: Status | None) -> datetime | None:
        if status is None or not status.unfinished:
            return None
        return asked_at(self.at.ledger.events(submission_id))


LONGEST_LINE = 300


class LogTail:
    """What one scorer printed so far, as its author may see it while it runs."""

    def __init__(self, live: Live, submission_id: str, *, may_tell: bool) -> None:
        self._live = live
        self._submission_id = submission_id
        self._may_tell = may_tell
        self._told = ""

    @property
    def last(self) -> str:
        """The last line with anything in it, cut to a length that can be shown."""
        return last_line(self._told, LONGEST_LINE)

    def heard(self, output: Callable[[], str]) -> None:
        """Pass the output on; what cannot be told now is lost, and nothing else."""
        if not self._may_tell or (text := output()) == self._told:
            return
        self._told = text
        try:
            self._live.set_log(self._submission_id, text)
        except (OSError, TransientError) as error:
            log.debug("Output is not told: %s", error)


class StoppedError(TransientError):
    """The worker was told to stop; nothing failed."""

    def __init__(self) -> None:
        super().__init__("stopped", "The worker was stopped; what was finished is kept.")


LOG_CHARS = 4000
Look = Callable[[Task], None]


class StoreAwayError(TransientError):
    """The store does not answer; no submission is to blame, and none loses an attempt by it."""

    @classmethod
    def of(cls, error: TransientError) -> StoreAwayError:
        """A fault that the store met."""
        return cls(error.code, error.message, error.hint)


@dataclass(frozen=True)
class BatchCallbacks:
    """What happens after every batch."""

    run: Run  # whose output is read
    said: LogTail  # passes it on
    look: Look  # finds out whether to go on


@dataclass
class Scoring:
    """Has the scorers of one worker score, one submission after another."""

    at: Setting
    scorers: ScorerRole  # runs scoring modules
    heart: HeartbeatSender  # shows progress
    listener: Callable[[RunProgress], None]  # is told of progress
    judge_set: JudgeSet  # knows the metrics that score generations
    output: str = ""  # what the last scorer printed

    def scores(self, task: Task, look: Look) -> list[Scored]:
        """The scores of a submission on each of its benchmarks."""
        submission = task.submission
        said = LogTail(self.at.store.live, task.submission_id, may_tell=self.may_tell(submission))
        run: Run | None = None
        try:
            with (
                self.scorers.fetched(submission, self._fetch) as upload,
                self._opened(submission, upload) as run,
            ):
                told = BatchCallbacks(run, said, look)
                scored = {
                    name: run.scores_of(
                        self.at.registry[name], self.at.data, self._teller(task, name, told)
                    )
                    for name in sorted(submission.benchmarks, key=self._is_withheld)
                }
                return [scored[name] for name in submission.benchmarks]
        finally:
            if run is not None:  # Its box is closed: the last that it printed has come.
                self.output = run.log
                said.heard(lambda: self.output)

    def shown_output(self, submission: Submission) -> str:
        """The end of the scorer's output, if it may be kept: it may tell of what it was shown."""
        return output_end(self.output) if self.may_tell(submission) else ""

    def may_tell(self, submission: Submission) -> bool:
        """Whether what a scorer says may be told to its author."""
        return not any(self._is_withheld(name) for name in submission.benchmarks)

    def _is_withheld(self, benchmark: str) -> bool:
        """These come last: scores of others, published whole, could tell of their questions."""
        return not self.at.registry[benchmark].card.answers_public

    def _opened(self, submission: Submission, upload: Path) -> AbstractContextManager[Run]:
        if submission.kind is Kind.GENERATIONS:
            judge_set = self.judge_set
            return nullcontext(
                GenerationsRun(submission, upload, self.scorers, judge_set, judge_set.store.clock)
            )
        return self.scorers.open(submission, upload)

    def _fetch(self, submission: Submission, target: Path) -> None:
        try:
            self.at.ledger.fetch_upload(submission, target)
        except TransientError as error:
            raise StoreAwayError.of(error) from error

    def _teller(self, task: Task, benchmark: str, to: BatchCallbacks) -> Callable[[Progress], None]:
        """Passes progress and output on, and stops the work where it is no longer wanted."""
        # Everyone can see the pulse: it names a private submission as the boards do, not at all.
        shown = public_record(task.submission)

        def tell(progress: Progress) -> None:
            told = RunProgress(shown.submission_id, shown.name, benchmark, progress)
            to.said.heard(lambda: to.run.log)
            self.heart.tell(told, to.said.last)
            self.listener(told)
            to.look(task)

        return tell


def output_end(output: str) -> str:
    """The end of what a scorer printed, at most `LOG_CHARS` characters and what says so."""
    left_out = len(output) - LOG_CHARS
    if left_out <= 0:
        return output
    return f"({left_out:,} characters before this are left out)\n{output[-LOG_CHARS:]}"


@dataclass
class TaskRunner:
    """Works on one submission after another; what it finishes goes out."""

    at: Setting
    claims: Claims  # says whether they are still this worker's
    finalizer: Finalizer  # records what failed
    handoff: Handoff  # has the scores that other workers handed over
    publish_queue: PublishQueue  # takes what is finished
    scoring: Scoring  # runs scorers
    claimed_jobs: ClaimedJobs  # what this worker holds
    preemption: Preemption  # hands back what cannot be begun in time
    slowest: SlowestRuns  # is told how long runs take
    broke: Callable[[AssayError], None]  # is told why no further code may run on this machine
    # set when the worker is to stop after the running batch
    stop: threading.Event = field(default_factory=threading.Event)
    _looked: datetime | None = None
    _did_not_come: set[str] = field(default_factory=set)

    def work(self, claimed: Task) -> None:
        """Score, and judge if that is this worker's part."""
        task = replace(claimed, begun_at=self.at.now())
        name, attempt = task.submission_id, task.status.attempts
        self.scoring.output = ""
        self.scoring.heart.working_on(name, attempt)
        log.info("Begun.", extra=about(name, attempt))
        try:
            self._do(task)
        except StoppedError:
            log.info("Stopped; what was finished is kept.", extra=about(name, attempt))
        except TransientError as error:
            self._after_fault(task, error)
        except AssayError as error:
            self._fail(task, blamed(error, task.submission))
        except Exception as error:
            if is_full(error):
                raise TransientError("disk_low", "There is no room on the disk.") from error
            number = uuid.uuid4().hex[:8]
            log.exception("Incident %s", number, extra=about(name, attempt))
            self._fail(task, incident(number))
        finally:
            self.scoring.heart.working_on("")

    def _do(self, task: Task) -> None:
        self._look_now(task)
        self._check_not_banned(task)
        finished = self.publish_queue.finished_before(task)
        if finished is None and task.submission.kind is Kind.GENERATIONS:
            self.publish_queue.send()  # Among them may be metrics that are to score its images.
        if finished is None:
            scored = (
                self._taken(task) if task.scored_before else self.scoring.scores(task, self.look)
            )
            output = self.scoring.shown_output(task.submission)
            finished = Finished(task, scored, output, self.at.now())
            took = finished.at - (task.begun_at or finished.at)
            if not task.scored_before:  # Scores of others are merely read.
                self.slowest.took(task.submission, took.total_seconds())
        self._look_now(task)
        self.publish_queue.add(finished)
        self.claimed_jobs.finish(task)

    def look(self, task: Task) -> None:
        """Stop where that is wanted, and send what is due; a store that fails changes nothing."""
        if self.stop.is_set():
            raise StoppedError
        try:
            now, every = self.at.now(), timedelta(seconds=self.at.store.look_every_s)
            if self._looked is not None and now - self._looked < every:
                return
            self._looked = now
            self.claims.check_still_mine(task.submission_id)
        except TransientError as error:
            if error.code == "lost_race":
                raise
            level = logging.WARNING if error.code in NOT_LET_IN else logging.INFO
            log.log(level, "Going on unseen: %s", error, extra=about(task.submission_id))
        self.preemption.look(task)
        self.publish_queue.send_due()

    def _look_now(self, task: Task) -> None:
        self._looked = None
        self.look(task)

    def _check_not_banned(self, task: Task) -> None:
        try:
            self.claims.check_not_banned(task)
        except TransientError as error:
            if error.code == BANNED:
                raise

    def _taken(self, task: Task) -> list[Scored]:
        try:
            scored, self.scoring.output = self.handoff.take(task.submission)
        except TransientError as error:
            raise StoreAwayError.of(error) from error
        return scored

    def _after_fault(self, task: Task, error: TransientError) -> None:
        """Let go of a task after a fault of the world, or keep it where it is not at fault."""
        away = isinstance(error, StoreAwayError) and not is_full(error)
        if is_full(error) or (away and not self._alone_away(task)):
            self.claimed_jobs.postpone(
                task
            )  # It is taken up again; nothing else waits for it alone.
            raise error
        if away:
            # Others go first, here and elsewhere, while it rests.
            self.finalizer.give_back(task, _files_away(error), "", most=MAX_ATTEMPTS_TO_PUBLISH)
        elif error.code == BANNED:
            self.finalizer.hand_back([task], "It waits, since its account was banned.")
        elif error.code != "lost_race":
            output = self.scoring.shown_output(task.submission)
            self.finalizer.give_back(task, error, output)
        self.claimed_jobs.let_go(task)

    def _alone_away(self, task: Task) -> bool:
        """Whether its files did not come twice, while the store answers: a first time is nothing."""
        name = task.submission_id
        if not self._store_answers():
            self._did_not_come.discard(name)
            return False
        if name not in self._did_not_come:
            self._did_not_come.add(name)
            return False
        self._did_not_come.discard(name)
        return True

    def _store_answers(self) -> bool:
        """Whether both parts of the store are there now, whatever was known of them before."""
        self.at.store.look_anew()
        try:
            self.at.store.public.head()
            self.at.store.private.head()
        except TransientError:
            return False
        return True

    def _fail(self, task: Task, error: AssayError) -> None:
        if error.code == BOX_NOT_ENDED:
            self.broke(error)
            if (
                task.submission.kind is Kind.GENERATIONS
            ):  # A metric did that, not whose images they are.
                self.finalizer.give_back(task, error, "")
                self.claimed_jobs.let_go(task)
                return
        if error.fault == "submitter":
            self.scoring.scorers.forget(task.submission)  # The same code would only fail again.
        told = error if self.scoring.may_tell(task.submission) else without_its_words(error)
        self.finalizer.fail(task, told, self.scoring.shown_output(task.submission))
        self.claimed_jobs.let_go(task)


def _files_away(error: TransientError) -> TransientError:
    return TransientError(
        "files_away",
        f"The store answers, but what it keeps of this submission does not come: {error.message}",
        "Nothing is wrong with the submission; the operator can find why in the store.",
    )


_STOP_SEEN_WITHIN_S = 0.5


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
        slowest: SlowestRuns | None = None,
    ) -> None:
        self.name = name
        self.scorers = scorers
        self._disk = disk
        self._wake = wake
        self._backoff = Backoff()
        self._contact = StoreContact()
        self._at = at = Setting(name, store, registry, data, scorers.scratch, role, keys)
        self._slot = CodeSlot(scorers, role)
        self._lock = ProcessLock(at.scratch / "workers", name)
        self.heart = heart = HeartbeatSender(store.live, self._idle_pulse(), store.clock)
        publisher = Publisher(store, cards_of(registry))
        self._finalizer = finalizer = Finalizer(at, publisher.snapshot_files)
        spool = RunSpool(at.scratch / "outbox", name)
        handoff, results = Handoff(at), RunPublisher(at, publisher)
        judges = JudgeSet(store)
        self._backfill = Backfill(store, judges, registry)
        self._leftovers = Leftovers(at, scorers, spool, handoff, results)
        self._claimed_jobs = claimed_jobs = ClaimedJobs(heart.holding, self._leftovers.clear)
        liveness = Liveness(
            name, store.live, self._lock, heart.beat, store.clock, silent_after,
            shared=store.heartbeats_shared, contact=self._contact,
        )  # fmt: skip
        self.leases = LeaseRenewal(at, lambda: heart.pulse.claimed, liveness.lease)
        slowest = slowest or SlowestRuns()
        self._claims = Claims(
            at, self._slot, handoff, finalizer, spool, liveness, slowest, SkippedJobs(at.ledger),
            holding=lambda one: claimed_jobs.holds(one) or finalizer.owes(one),
            worth=self._backfill.worth,
        )  # fmt: skip
        self._queue = PublishQueue(
            at,
            spool,
            results=results if role.judges else None,
            handoff=handoff,
            finalizer=finalizer,
            let_go=claimed_jobs.let_go,
        )
        self._release = Release(self._queue, finalizer, claimed_jobs)
        self._runner = TaskRunner(
            at,
            claims=self._claims,
            finalizer=finalizer,
            handoff=handoff,
            publish_queue=self._queue,
            scoring=Scoring(at, scorers, heart, listener, judges),
            claimed_jobs=claimed_jobs,
            preemption=Preemption(claimed_jobs, finalizer, liveness, store.clock),
            slowest=slowest,
            broke=self._broke,
        )

    @property
    def availability(self) -> SandboxAvailability:
        """Whether this worker runs strangers' code now."""
        return self._slot.availability

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
            self._claimed_jobs.take(tasks)
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
            self._leftovers.sweep(now)
            yield

    def _next(self) -> Task | None:
        """The next submission in hand; several may be claimed for that."""
        if not self._claimed_jobs.to_do:
            if self._disk is not None:
                self._disk.check()
            self._claimed_jobs.take(self._claims.more())
        return next(iter(self._claimed_jobs.to_do), None)

    def _work(self, task: Task) -> None:
        try:
            self._runner.work(task)
        except KeyboardInterrupt:
            self._release.leave()
            raise
        except TransientError:
            raise  # It stays in hand until the store answers, or the disk has room.
        except Exception:
            self._claimed_jobs.let_go(
                task
            )  # Not even its end could be recorded: another attempt shows.
            raise

    def _step(self, poll_s: float) -> float:
        """Do the next thing; for how long to pause after it."""
        try:
            worked = self.run_next()
            self._contact.reached(self._at.now())
        except TransientError as error:
            log.warning("Nothing can be done for now: %s", error)
            self.heart.waiting(f"waiting: {_why(error)}")
            self._contact.failed()
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

    def _idle_pulse(self) -> Heartbeat:
        availability = self._slot.availability
        return Heartbeat(
            worker=self.name,
            at=self._at.now(),
            isolation_ok=availability.ok,
            isolation=f"{self.scorers.isolation.name}: {', '.join(self.scorers.layers)}"
            if availability.ok
            else f"{availability.reason} {availability.remedy}",
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
