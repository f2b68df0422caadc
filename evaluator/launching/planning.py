"""Decision which jobs to start, cancel and account for: a pure function of what is known.

Nothing is remembered between two decisions: the events of the submissions and the labels of the
jobs say everything, so a launcher that was killed goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from evaluator.launching.settings import works_in_job
from leaderboard.folding import asked_at, attempts_of
from leaderboard.queueing import fair_order
from leaderboard.records import Event, Kind, Status
from leaderboard.states import State

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
    """A job as the Hub tells of it.

    Attributes:
        job_id: the Hub's name for it.
        submission_id: what it scores.
        worker: the name of the worker within it.
        stage: `SCHEDULING`, `RUNNING`, `COMPLETED`, `ERROR`, `CANCELED` or `DELETED`.
        message: why it ended, where the Hub says so.
        created_at: when it was asked for, by the Hub's clock.
    """

    job_id: str
    submission_id: str
    worker: str
    stage: str
    message: str
    created_at: datetime

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
    """What is to be done now.

    Attributes:
        cancel: live jobs nobody needs.
        lost: submissions held by the worker of a job that is not live.
        waiting: submissions without a job, in the order of their turns.
        room: for how many of them a job may be started.
        live: how many jobs go on.
    """

    cancel: tuple[Unwanted, ...]
    lost: tuple[Status, ...]
    waiting: tuple[Status, ...]
    room: int
    live: int


def plan(
    statuses: Sequence[Status],
    live: Sequence[SeenJob],
    now: datetime,
    *,
    at_most: int,
    time_s: float,
    wanted: Callable[[Status], bool] = lambda _: True,
) -> Plan:
    """Decide what to do about the submissions of a store and its live jobs.

    Args:
        statuses: all submissions, with their whole records.
        live: the jobs that are scheduled or run.
        now: the current time, by the store's clock.
        at_most: how many jobs may be live at once.
        time_s: how long a job may take.
        wanted: which of those that wait may be run at all.
    """
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
    """Whether the events tell how a job of the past ended, so that it counts as an attempt.

    Args:
        job: one that is over.
        events: of its submission, which waits for another.
    """
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
        ours = status.state in _WITH_WORKER and works_in_job(status.by)
        if ours and status.by not in live and now - status.since > NOT_LISTED_YET:
            yield status
