"""Keeps one job on the Hub for every run that waits, and records what becomes of each.

It scores nothing itself. A job holds a worker of the scorer role for one submission, which claims
it, scores it and hands the scores over; a judge elsewhere makes results of them.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from benchmarks.errors import PlatformError, TransientError
from benchmarks.schema import Benchmark
from evaluator.launching.hub_jobs import HubJobs, StartUnansweredError
from evaluator.launching.planning import (
    NOT_LISTED_YET,
    PREFIX,
    JobRequest,
    Plan,
    SeenJob,
    accounted,
    by_age,
    plan,
)
from evaluator.scorers.fitting import capacity_of_flavor
from evaluator.scorers.registry import load_rows
from evaluator.worker.tasks import MAX_ATTEMPTS
from leaderboard.ledger.ledger import Batch, Ledger
from leaderboard.ledger.policy import read_bans
from leaderboard.ledger.versions import Further, superseding
from leaderboard.records import Event, Status, Submission
from leaderboard.states import State
from leaderboard.store.hub.faults import refused_for
from leaderboard.store.interface import Store
from leaderboard.store.live.interface import readable

log = logging.getLogger(__name__)

LINES_TOLD = 5
_CHARS = 600
_HIDDEN = "***"
_BOX = ("│", "╭", "╰", "┌", "└")
"""Lines of a traceback in a box: the error's own words come after it."""
_HINT = "The operator sees the whole log on the page of the job."


def why_it_ended(job: SeenJob | None, lines: Sequence[str]) -> TransientError:
    """A job's end in one sentence, with the last lines of its log."""
    if job is None:
        return TransientError("job_gone", "Its job is not on the Hub any more.", _HINT)
    told = f" ({one_line(job.message)})" if job.message else ""
    how = {
        "COMPLETED": "ended without handing over any scores",
        "CANCELED": "was cancelled",
        "DELETED": "was deleted",
    }.get(job.stage, "failed")
    said = " | ".join(lines)
    end = f" It said last: {said}" if said else ""
    return TransientError("job_failed", f"Job {job.job_id} {how}{told}.{end}", _HINT)


def last_lines(raw: Iterable[str], secrets: Iterable[str]) -> tuple[str, ...]:
    """The end of a log as it may be shown: readable, short, and without any secret."""
    hidden = sorted((each for each in secrets if each), key=len, reverse=True)
    found: list[str] = []
    for line in raw:
        # Hidden once more after the clean-up, which can join what was apart.
        shown = _without(one_line(_without(line, hidden)), hidden)
        if shown and not shown.startswith(_BOX):
            found.append(shown)
    kept: list[str] = []
    room = _CHARS
    for line in reversed(found[-LINES_TOLD:]):
        cut = line[:room]
        room -= len(cut)
        if cut:
            kept.append(cut)
    return tuple(reversed(kept))


def one_line(text: str) -> str:
    """A text of somebody else's as one readable line."""
    return " ".join(readable(text.encode("utf-8", errors="replace")).split())[:_CHARS]


def events_of_failure(
    status: Status, worker: str, error: TransientError, now: datetime
) -> list[Event]:
    """The events by which a job counts as an attempt that failed, in its worker's name."""
    held = status.held_by(worker)
    claim = Event(at=now, state=State.CLAIMED, by=worker, lease_until=now + timedelta(minutes=1))
    number = status.attempts + (0 if held else 1)
    end = _given_up(error, number) if number >= MAX_ATTEMPTS else _to_be_repeated(error, number)
    ending = Event.model_validate({"at": now, "by": worker, **end})
    return [ending] if held else [claim, ending]


def _to_be_repeated(error: TransientError, number: int) -> dict[str, str]:
    reason = f"Attempt {number} failed and will be repeated: {error.message}"
    return {"state": State.QUEUED, "reason": reason, "code": error.code, "fault": error.fault}


def _given_up(error: TransientError, number: int) -> dict[str, str]:
    return {
        "state": State.FAILED,
        "reason": f"Gave up after {number} attempts: {error.message}",
        "hint": error.hint,
        "code": error.code,
        "fault": PlatformError.fault,
    }


def _without(text: str, hidden: Sequence[str]) -> str:
    for secret in hidden:
        text = text.replace(secret, _HIDDEN)
    return text


@dataclass(frozen=True)
class Failure:
    """A job that failed its submission."""

    submission_id: str  # what it was to score
    worker: str  # the name of the worker within it
    seen: State  # the state in which the submission was found: held by that worker, or waiting
    error: TransientError  # why it ended

    def counts(self, status: Status) -> bool:
        """Whether its submission was not moved since."""
        waits = self.seen is State.QUEUED
        return status.state is self.seen and (waits or status.by == self.worker)


def record(ledger: Ledger, failures: Sequence[Failure], now: datetime) -> int:
    """Record failed attempts, but for those whose submission was moved meanwhile."""
    recorded: list[Failure] = []

    def batch() -> Batch:
        recorded.clear()
        events: dict[str, Sequence[Event]] = {}
        for each in failures:
            status = ledger.whole_status(each.submission_id)
            if each.counts(status):
                recorded.append(each)
                events[each.submission_id] = events_of_failure(status, each.worker, each.error, now)
        return Batch(events=events, further=_superseding(recorded, now))

    for each in failures:
        log.warning("%s: %s", each.submission_id, each.error.message)
    if failures:
        ledger.write(batch, _message(failures))
    return len(recorded)


def _superseding(failures: Sequence[Failure], now: datetime) -> Further:
    """What all of them do to other versions; what several do to one happens once."""
    each_does = [superseding(each.submission_id, now, each.worker) for each in failures]

    def further(statuses: Sequence[Status]) -> dict[str, Sequence[Event]]:
        found: dict[str, Sequence[Event]] = {}
        for does in each_does:
            found = {**does(statuses), **found}
        return found

    return further


def _message(failures: Sequence[Failure]) -> str:
    names = " ".join(each.submission_id for each in failures)
    return f"failed {names}" if len(failures) == 1 else f"{len(failures)} failed jobs\n\n{names}"


POLL_S = 20.0
LONGEST_PAUSE_S = 600.0


def new_name() -> str:
    """A name for the worker within a job, unlike any other."""
    return f"{PREFIX}{uuid.uuid4().hex}"


@dataclass(frozen=True)
class LaunchRound:
    """What one look at the queue came to: how many jobs were started, go on, and so on."""

    started: int = 0
    live: int = 0
    cancelled: int = 0
    ended: int = 0
    unsure: int = 0

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing was done."""
        return self == LaunchRound()


@dataclass
class JobLauncher:
    """Starts and follows the jobs of one store."""

    store: Store  # where submissions wait
    jobs: HubJobs  # those of the Hub
    registry: Mapping[str, Benchmark]  # the benchmarks known here; what names others is left alone
    name_worker: Callable[[], str] = new_name  # gives the worker of each job its name
    _unsure: dict[str, datetime] = field(default_factory=dict)
    _too_large: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._ledger = Ledger(self.store)

    def run(
        self,
        stop: threading.Event,
        *,
        once: bool = False,
        between: Callable[[], object] = lambda: None,
        poll_s: float = POLL_S,
        wake: threading.Event | None = None,
    ) -> None:
        """Take turns until told to stop, or with `once` until nothing waits and nothing runs."""
        while not stop.is_set():
            turn, pause_s = self._turn_or_pause(once=once)
            done = _done_or_passing(between)
            if once and turn is not None and turn.idle and done:
                return
            (wake or stop).wait(max(poll_s, pause_s))
            if wake is not None:
                wake.clear()

    def turn(self) -> LaunchRound:
        """Look at the queue and at the jobs once, and do what is to be done."""
        # The jobs are read first: a submission handed over meanwhile is seen as it is after.
        live = self.jobs.live()
        statuses, now = self._ledger.statuses_with_records(), self.store.clock()
        bans = read_bans(self.store.public)
        self._unsure = {k: at for k, at in self._unsure.items() if now - at < NOT_LISTED_YET}
        settings = self.jobs.settings
        found = plan(
            statuses,
            live,
            now,
            at_most=settings.at_most,
            time_s=settings.timeout_s,
            wanted=lambda status: self._may_run(status, bans),
        )
        for each in found.cancel:
            log.info("Job %s is cancelled: %s.", each.job.job_id, each.why)
            self.jobs.cancel(each.job)
        lost = self._lost(found)
        forgotten, startable = self._looked_through(found)
        ended = record(self._ledger, [*lost, *forgotten], now)
        started = sum(self._start_one(submission_id) for submission_id in startable)
        return LaunchRound(started, found.live, len(found.cancel), ended, len(self._unsure))

    def _turn_or_pause(self, *, once: bool) -> tuple[LaunchRound | None, float]:
        """One turn, or after a fault that will pass, how long the Hub wants to be left alone."""
        try:
            turn = self.turn()
        except TransientError as error:
            log.warning("To be tried again: %s", error)
            return None, min(refused_for(error) or 0.0, LONGEST_PAUSE_S)
        except PlatformError as error:
            if once:
                raise
            log.error("No jobs are started: %s", error)  # noqa: TRY400 (its words say it all)
            return None, 0.0
        if not turn.idle:
            log.info("Jobs: %s", turn)
        return turn, 0.0

    def _may_run(self, status: Status, bans: Mapping[str, object]) -> bool:
        submission = status.submission
        known = all(name in self.registry for name in status.job.benchmarks)
        told_apart = submission.submission_id not in self._unsure
        allowed = known and told_apart and submission.account not in bans
        return allowed and self._holds(submission)

    def _holds(self, submission: Submission) -> bool:
        """Whether the machine of a job has room for a built-in metric; others bring their own."""
        row = load_rows().get(submission.builtin)
        capacity = capacity_of_flavor(self.jobs.settings.flavor)
        problem = capacity.problem(row) if row is not None and capacity is not None else None
        if problem is not None and submission.submission_id not in self._too_large:
            self._too_large.add(submission.submission_id)
            log.warning(
                "%s waits for another worker: %s", submission.submission_id, problem.message
            )
        return problem is None

    def _looked_through(self, found: Plan) -> tuple[list[Failure], list[str]]:
        """Of what waits: jobs of its past that nobody recorded, and what a job may be started for.

        Starts whose jobs may still show up take some of the room.
        """
        forgotten: list[Failure] = []
        startable: list[str] = []
        for status in found.waiting:
            if len(startable) + len(self._unsure) >= found.room:
                break
            submission_id = status.submission.submission_id
            past = self.jobs.of_submission(submission_id)
            if any(job.live for job in past):
                continue  # Listed only now.
            events = self._ledger.whole_events(submission_id)
            ended = next((job for job in past if not accounted(job, events)), None)
            if ended is None:
                startable.append(submission_id)
            else:
                forgotten.append(self._failure(status, ended.worker, ended))
        return forgotten, startable

    def _start_one(self, submission_id: str) -> bool:
        request = JobRequest(submission_id, self.name_worker())
        try:
            job = self.jobs.start(request)
        except StartUnansweredError as error:
            log.warning("%s", error)
            self._unsure[submission_id] = self.store.clock()
            return False
        if self._comes_second(job):
            return False
        log.info("Job %s was started for %s.", job.job_id, submission_id)
        return True

    def _comes_second(self, job: SeenJob) -> bool:
        """Whether another launcher started a job for the same at the same moment, before ours.

        Each looks after its start, and all of them keep the same one.
        """
        try:
            rivals = [each for each in self.jobs.of_submission(job.submission_id) if each.live]
            first = min([*rivals, job], key=by_age)
            if first.job_id == job.job_id:
                return False
            log.info("Job %s is cancelled: job %s came before it.", job.job_id, first.job_id)
            self.jobs.cancel(job)
        except TransientError as error:
            log.info("To be looked at in the next turn: %s", error)
            return False
        return True

    def _lost(self, found: Plan) -> list[Failure]:
        """Of what workers of jobs hold, that whose job is over."""
        failures = []
        for status in found.lost:
            job = self.jobs.of_worker(status.by)
            if job is None or not job.live:  # Else it is listed only now.
                failures.append(self._failure(status, status.by, job))
        return failures

    def _failure(self, status: Status, worker: str, job: SeenJob | None) -> Failure:
        submission = status.submission
        error = why_it_ended(job, self._told_lines(submission, job))
        return Failure(submission.submission_id, worker, status.state, error)

    def _told_lines(self, submission: Submission, job: SeenJob | None) -> tuple[str, ...]:
        """The end of its log; nothing where it may tell of what only a benchmark may know."""
        known = [self.registry[name] for name in submission.benchmarks if name in self.registry]
        public = len(known) == len(submission.benchmarks) and all(
            benchmark.card.answers_public for benchmark in known
        )
        if job is None or not public:
            return ()
        return last_lines(self.jobs.lines(job), self.jobs.settings.secrets.values())


def _done_or_passing(act: Callable[[], object]) -> bool:
    """Do something; False where it failed for now."""
    try:
        act()
    except TransientError as error:
        log.warning("To be tried again: %s", error)
        return False
    return True
