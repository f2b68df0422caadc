"""Tasks of a worker: submissions it has claimed, and those it has finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from benchmarks.schema import Benchmark
from evaluator.submission.runs import Scored
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Event, Status, Submission
from leaderboard.states import State
from leaderboard.store.interface import Store


class WorkerRole(StrEnum):
    """The scorer role runs code and sees no answers; the judge role has them and runs no code."""

    BOTH = "both"
    SCORE = "score"
    JUDGE = "judge"

    @property
    def scores(self) -> bool:
        """Whether code is run."""
        return self is not WorkerRole.JUDGE

    @property
    def judges(self) -> bool:
        """Whether scores become results."""
        return self is not WorkerRole.SCORE


@dataclass(frozen=True)
class Setting:
    """Where a worker stands and what it is given."""

    name: str  # unique among the workers a store ever had
    store: Store
    registry: Mapping[str, Benchmark]  # the benchmarks known here
    data: Path | None  # folder of benchmark data, if there is one
    scratch: Path  # what lies there may be lost at any time, but for finished runs
    role: WorkerRole
    keys: Path | None = None  # folder of the keys of exported questions; only a judge has it

    @cached_property
    def ledger(self) -> Ledger:
        """Of the store."""
        return Ledger(self.store)

    def now(self) -> datetime:
        """The store's time."""
        return self.store.clock()

    def holds(self, status: Status) -> bool:
        """Whether a submission is this worker's."""
        return status.held_by(self.name)


@dataclass(frozen=True)
class Task:
    """A submission this worker has claimed."""

    status: Status  # as it was claimed, with the whole record
    # when its run was asked for (`leaderboard.replay.asked_at`): a later request is another run
    asked_at: datetime
    begun_at: datetime | None = None  # when this worker began with it; None before

    @property
    def submission_id(self) -> str:
        """Its id."""
        return self.status.submission.submission_id

    @property
    def submission(self) -> Submission:
        """Its whole record, with only the benchmarks it is to be run on now."""
        return self.status.job

    @property
    def scored_before(self) -> bool:
        """Whether its scores were left to a judge, which this worker is."""
        return self.status.state is State.JUDGING


@dataclass(frozen=True)
class Finished:
    """A submission whose scores are in: to be judged and published, or handed over."""

    task: Task  # which one
    scored: Sequence[Scored]  # its scores on each benchmark
    output: str  # of the scorer, as far as it may be kept
    at: datetime  # when it was finished

    @property
    def submission_id(self) -> str:
        """Its id."""
        return self.task.submission_id


def begun_events(finished: Finished, worker: str) -> list[Event]:
    """That scoring began, where its claim was made for later and did not say so."""
    task = finished.task
    if task.status.state is not State.CLAIMED:
        return []
    return [Event(at=task.begun_at or finished.at, state=State.SCORING, by=worker)]


def about(submission_id: str, attempt: int = 0) -> Mapping[str, object]:
    """For `extra` of a log call: which submission a line is about."""
    return {"submission": submission_id, "attempt": attempt}
