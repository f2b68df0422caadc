"""Tasks of a worker: submissions it has claimed, and those it has finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from evaluator.worker.ending.judging import Scored
from leaderboard.records import Event, Status, Submission
from leaderboard.states import State


@dataclass(frozen=True)
class Task:
    """A submission this worker has claimed.

    Attributes:
        status: as it was claimed, with the whole record.
        asked_at: when its run was asked for (`leaderboard.folding.asked_at`): a later request is
            another run.
        begun_at: when this worker began with it; None before.
    """

    status: Status
    asked_at: datetime
    begun_at: datetime | None = None

    @property
    def submission_id(self) -> str:
        """Its id."""
        return self.status.submission.submission_id

    @property
    def submission(self) -> Submission:
        """Its whole record, with only the benchmarks it is to be run on now."""
        return self.status.job

    @property
    def handed_over(self) -> bool:
        """Whether its scores were left to a judge, which this worker is."""
        return self.status.state is State.JUDGING


@dataclass(frozen=True)
class Finished:
    """A submission whose scores are in: to be judged and published, or handed over.

    Attributes:
        task: which one.
        scored: its scores on each benchmark.
        output: of the scorer, as far as it may be kept.
        at: when it was finished.
    """

    task: Task
    scored: Sequence[Scored]
    output: str
    at: datetime

    @property
    def submission_id(self) -> str:
        """Its id."""
        return self.task.submission_id


def begun_events(finished: Finished, worker: str) -> list[Event]:
    """That scoring began, where its claim was made for later and did not say so.

    Args:
        finished: the run.
        worker: whose it is.
    """
    task = finished.task
    if task.status.state is not State.CLAIMED:
        return []
    return [Event(at=task.begun_at or finished.at, state=State.SCORING, by=worker)]


def about(submission_id: str, attempt: int = 0) -> Mapping[str, object]:
    """For `extra` of a log call: which submission a line is about.

    Args:
        submission_id: its public id.
        attempt: which of the attempts; 0 where that does not matter.
    """
    return {"submission": submission_id, "attempt": attempt}
