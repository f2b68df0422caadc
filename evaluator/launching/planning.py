"""Settings of jobs, and the decision which to start, cancel and account for: a pure function.

A job is given questions at most: never answers, never a key. Nothing is remembered between two
decisions: the events of the submissions and the labels of the jobs say everything, so a launcher that
was killed goes on where it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from benchmarks.errors import SubmitterError
from leaderboard.queueing import fair_order
from leaderboard.records import Event, Kind, Status
from leaderboard.replay import asked_at, attempts_of
from leaderboard.states import State
from leaderboard.store.opening import HUB

QUESTIONS_AT = "/questions"
"""Where a job finds exported questions."""
WORKER = "ASSAY_WORKER"
"""The variable that names the worker within a job; its start and its claim are matched by it."""
PREFIX = "job-"
"""Of the names of workers within jobs."""
STORE_LABEL, SUBMISSION_LABEL, WORKER_LABEL = "assay-store", "assay-submission", "assay-worker"

# One elsewhere has further parts in its name, and may be on a machine called `job-7`.
_JOB_WORKER = re.compile(re.escape(PREFIX) + "[0-9a-z]+")
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")


@dataclass(frozen=True)
class JobSettings:
    """How the jobs of a store are run."""

    store: str  # its name, `hub:OWNER/NAME`: a job reaches no folder of this machine
    image: str  # with Assay installed, of a registry or of a Space
    namespace: str  # who runs the jobs, and pays
    flavor: str = "t4-small"  # of the machine
    timeout_s: int = 6 * 3600  # after which a job is ended by the Hub
    at_most: int = 4  # how many run at once
    # dataset repository with exported questions; empty where the image has them
    questions: str = ""
    # further variables of every job, which anyone in the namespace can read
    variables: Mapping[str, str] = field(default_factory=dict)
    # variables that nobody can read; the token among them
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not self.store.startswith(HUB):
            raise SubmitterError(
                "store_out_of_reach",
                f"A job of the Hub cannot reach the store {self.store!r}.",
                "Keep the store on the Hub (--store hub:OWNER/NAME), or leave --launcher out.",
            )
        if self.questions and not _REPOSITORY.fullmatch(self.questions):
            raise SubmitterError(
                "bad_job_questions",
                f"{self.questions[:120]!r} is no dataset repository.",
                "Upload the folder of exported questions to one and give OWNER/NAME.",
            )
        if not self.secrets.get("HF_TOKEN"):
            raise SubmitterError(
                "no_job_token",
                "A job has no token to hand its scores over with.",
                "Set ASSAY_JOB_TOKEN to a fine-grained token that may write to NAME-requests and "
                "NAME-submissions of the store, and to nothing else.",
            )


@dataclass(frozen=True)
class JobRequest:
    """One job, as the Hub is asked for it."""

    submission_id: str  # what it scores
    worker: str  # the name of the worker within it, unlike any other ever

    def command(self, settings: JobSettings) -> list[str]:
        """What runs in it: one worker that scores one submission and ends."""
        command = ["python", "-m", "evaluator", "worker", "--role", "score"]
        command += ["--submission", self.submission_id, "--once", "--store", settings.store]
        return [*command, "--questions", QUESTIONS_AT] if settings.questions else command

    def environment(self, settings: JobSettings) -> dict[str, str]:
        """The variables that are no secret."""
        return {**settings.variables, "ASSAY_STORE": settings.store, WORKER: self.worker}

    def labels(self, settings: JobSettings) -> dict[str, str]:
        """By which it is found again, whether or not its start was answered."""
        return {
            **store_label(settings),
            SUBMISSION_LABEL: self.submission_id,
            WORKER_LABEL: self.worker,
        }


def store_label(settings: JobSettings) -> dict[str, str]:
    """What the jobs of one store have in common."""
    return {STORE_LABEL: settings.store.removeprefix(HUB).replace("/", "--")}


OVERTIME = timedelta(minutes=15)
"""A job that outlives its time by so much is cancelled: the Hub did not end it."""
NOT_LISTED_YET = timedelta(minutes=2)
"""So long after a claim its job may be missing in the Hub's lists."""

CLOCKS_DIFFER_BY = timedelta(minutes=1)
"""The Hub tells times of jobs and of commits to the second, and not by one clock."""

LIVE = frozenset({"SCHEDULING", "RUNNING"})
_STILL_WANTED = frozenset({State.QUEUED, State.CLAIMED, State.SCORING, State.SCORED, State.JUDGING})
_WITH_WORKER = frozenset({State.CLAIMED, State.SCORING})


@dataclass(frozen=True)
class SeenJob:
    """A job as the Hub tells of it."""

    job_id: str  # the Hub's name for it
    submission_id: str  # what it scores
    worker: str  # the name of the worker within it
    stage: str  # `SCHEDULING`, `RUNNING`, `COMPLETED`, `ERROR`, `CANCELED` or `DELETED`
    message: str  # why it ended, where the Hub says so
    created_at: datetime  # when it was asked for, by the Hub's clock

    @property
    def live(self) -> bool:
        """Whether it waits for a machine, or runs."""
        return self.stage in LIVE


@dataclass(frozen=True)
class Unwanted:
    """A job to be cancelled, and why."""

    job: SeenJob
    why: str


@dataclass(frozen=True)
class Plan:
    """What is to be done now."""

    cancel: tuple[Unwanted, ...]  # live jobs nobody needs
    lost: tuple[Status, ...]  # submissions held by the worker of a job that is not live
    waiting: tuple[Status, ...]  # submissions without a job, in the order of their turns
    room: int  # for how many of them a job may be started
    live: int  # how many jobs go on


def plan(
    statuses: Sequence[Status],
    live: Sequence[SeenJob],
    now: datetime,
    *,
    at_most: int,
    time_s: float,
    wanted: Callable[[Status], bool] = lambda _: True,
) -> Plan:
    """Decide what to do about the submissions of a store and its live jobs."""
    by_id = {status.submission.submission_id: status for status in statuses}
    cancel = tuple(_unwanted(by_id, live, now, timedelta(seconds=time_s) + OVERTIME))
    stopped = {each.job.job_id for each in cancel}
    going = [job for job in live if job.job_id not in stopped]
    busy = {job.submission_id for job in going}
    waiting = [
        status
        for status in fair_order(statuses, now, waiting=lambda each: _waits_for_code(each, now))
        if status.submission.submission_id not in busy and wanted(status)
    ]
    return Plan(
        cancel=cancel,
        lost=tuple(_lost(statuses, {job.worker for job in live}, now)),
        waiting=tuple(waiting),
        room=max(0, at_most - len(going)),
        live=len(going),
    )


def accounted(job: SeenJob, events: Sequence[Event]) -> bool:
    """Whether the events tell how a job of the past ended, so that it counts as an attempt."""
    if job.created_at < asked_at(events) - CLOCKS_DIFFER_BY:
        return True  # Of an earlier run.
    done = [event for event in events if event.by == job.worker]
    if job.stage == "CANCELED" and not done:
        return True  # One of two for the same submission, or stopped before it could do anything.
    if any(event.to_judge or event.fault or event.state is State.FAILED for event in done):
        return True
    # Another worker may have taken over what it held.
    return job.worker in {attempt.by for attempt in attempts_of(events)}


def by_age(job: SeenJob) -> tuple[datetime, str]:
    """Puts the older of two jobs first, the same for whoever asks."""
    return job.created_at, job.job_id


def _waits_for_code(status: Status, now: datetime) -> bool:
    # Metrics are run on generations, too.
    code = status.submission.kind is not Kind.SCORES
    return code and status.state is State.QUEUED and status.due(now)


def _unwanted(
    by_id: dict[str, Status], live: Sequence[SeenJob], now: datetime, longest: timedelta
) -> Iterable[Unwanted]:
    kept: set[str] = set()
    for job in sorted(live, key=lambda each: _precedence(by_id, each)):
        status = by_id.get(job.submission_id)
        if status is None:
            yield Unwanted(job, "there is no such submission")
        elif status.state not in _STILL_WANTED:
            yield Unwanted(job, f"the submission is {status.state}")
        elif status.state in _WITH_WORKER and status.by != job.worker:
            yield Unwanted(job, f"{status.by} has the submission")
        elif job.submission_id in kept:
            yield Unwanted(job, "another job has the submission")
        elif now - job.created_at > longest:
            yield Unwanted(job, "it outlived its time")
        else:
            kept.add(job.submission_id)


def _precedence(by_id: dict[str, Status], job: SeenJob) -> tuple[bool, datetime, str]:
    """Of two jobs for one submission, the one that has it comes first, then the older one."""
    status = by_id.get(job.submission_id)
    return (status is None or status.by != job.worker, *by_age(job))


def _lost(statuses: Iterable[Status], live: set[str], now: datetime) -> Iterable[Status]:
    for status in statuses:
        ours = status.state in _WITH_WORKER and _JOB_WORKER.fullmatch(status.by) is not None
        if ours and status.by not in live and now - status.since > NOT_LISTED_YET:
            yield status
