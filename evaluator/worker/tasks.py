"""Tasks of a worker: submissions it has claimed or finished, and how those end that are not published.

An end always has a state and a reason.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from benchmarks.errors import AssayError, PlatformError, TransientError
from benchmarks.schema import Benchmark
from evaluator.isolation.failures import KILLED_FROM_OUTSIDE
from evaluator.submission.runs import Scored
from leaderboard.ledger.ledger import Batch, Ledger
from leaderboard.ledger.versions import superseding
from leaderboard.records import Event, Status, Submission
from leaderboard.replay import asked_at, attempts_of
from leaderboard.states import TO_JUDGE, State
from leaderboard.store.interface import Changes, Store

log = logging.getLogger(__name__)


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


MAX_ATTEMPTS = 3
MAX_LOST = 6
"""Workers that are lost with one submission under way: machines that can be taken away are lost more
often than a run wears out its worker, and each of them had it alone."""
MAX_ATTEMPTS_TO_PUBLISH = 10
"""Of what was judged and is not published, or whose files do not come: its code is not to blame."""
_LONGEST_WHY = 240
_OURS_WHEN_WORKING = frozenset({"data_missing", "data_malformed", "images_missing"})
"""Errors about this machine's data: not the submitter's, once the submission was accepted."""

Boards = Callable[[datetime, Sequence[Status]], Changes]
"""From the time and all submissions to the files of the boards."""


class Finalizer:
    """Records ends; one that the store cannot take now is kept and recorded later.

    What a worker that dies has not recorded is not known any more: its run is done again.
    """

    def __init__(self, at: Setting, boards: Boards) -> None:
        self._at = at
        self._pending: dict[str, Event] = {}
        self._boards = boards  # made anew where an end changes who is on them

    def give_back(
        self, task: Task, error: AssayError, output: str, *, most: int = MAX_ATTEMPTS
    ) -> bool:
        """Let it wait again after a fault that is not its author's, unless there were too many."""
        attempt = task.status.attempts
        if attempt >= most or self._killed_before(task, error):
            text = f"Gave up after {attempt} attempts: {error.message} {self._earlier(task.status)}"
            self.fail(task, PlatformError(error.code, text.strip(), error.hint), output)
            return False
        reason = f"Attempt {attempt} failed and will be repeated: {error.message}"
        log.warning("%s", reason, extra=about(task.submission_id, attempt))
        event = {"reason": reason, "code": error.code, "fault": "world"} | _waiting(task.status)
        self._record(task.submission_id, self._event(**event))
        return True

    def hand_back(self, tasks: Sequence[Task], reason: str) -> None:
        """Let them wait again where nothing failed, all in one commit."""
        by_id = {task.submission_id: task for task in tasks}

        def batch() -> Batch:
            held = {name: self._at.ledger.whole_status(name) for name in by_id}
            return Batch(
                events={
                    name: [self._event(**({"reason": reason} | _waiting(status)))]
                    for name, status in held.items()
                    if self._at.holds(status)
                }
            )

        if by_id:
            self._at.ledger.write(batch, f"handed back {' '.join(by_id)}")

    def fail(self, task: Task, error: AssayError, output: str = "") -> None:
        """Let it fail, with whose fault it is and what to do."""
        log.warning("Failed: %s", error, extra=about(task.submission_id, task.status.attempts))
        self._record(task.submission_id, self._ended(State.FAILED, error, output))

    def give_up(self, status: Status, why: str, still: Callable[[Status], bool]) -> None:
        """Let fail what its workers did not survive."""
        text = f"{status.attempts} workers died while they worked on it. {self._earlier(status)}"
        error = PlatformError(
            "worker_lost",
            f"{text.strip()} Attempt {status.attempts}: {why}",
            "It may need more memory than there is. The operator has the workers' logs.",
        )
        name = status.submission.submission_id
        log.warning("Given up: %s", error, extra=about(name, status.attempts))
        self._append(name, self._ended(State.FAILED, error, ""), still)

    def refuse(self, status: Status, error: AssayError, still: Callable[[Status], bool]) -> None:
        """Reject what waits and may not be run."""
        name = status.submission.submission_id
        self._append(name, self._ended(State.REJECTED, error, ""), still)

    def settle(self) -> None:
        """Record what the store could not take before."""
        for submission_id, event in tuple(self._pending.items()):
            self._record(submission_id, event)

    def owes(self, submission_id: str) -> bool:
        """Whether an end of it is known and not recorded yet."""
        return submission_id in self._pending

    def _killed_before(self, task: Task, error: AssayError) -> bool:
        """Whether this run was killed from outside once already: it is repeated no more."""
        if error.code != KILLED_FROM_OUTSIDE:
            return False
        events = self._at.ledger.whole_events(task.submission_id)
        since = asked_at(events)
        return any(one.code == error.code and one.at >= since for one in events)

    def _earlier(self, status: Status) -> str:
        """Why earlier attempts ended, one sentence each."""
        try:
            events = self._at.ledger.whole_events(status.submission.submission_id)
        except TransientError:
            return ""
        ended = [one for one in attempts_of(events) if one.ended_at is not None]
        return " ".join(f"Attempt {a.number}, {a.by}: {a.why[:_LONGEST_WHY]}" for a in ended)

    def _ended(self, state: State, error: AssayError, output: str) -> Event:
        return self._event(
            state=state,
            reason=error.message,
            hint=error.hint,
            code=error.code,
            fault=error.fault,
            log=output,
        )

    def _event(self, **more: str) -> Event:
        return Event.model_validate({"at": self._at.now(), "by": self._at.name, **more})

    def _record(self, submission_id: str, event: Event) -> None:
        try:
            self._append(submission_id, event, self._at.holds)
        except TransientError as error:
            log.warning("To be recorded later: %s", error, extra=about(submission_id))
            self._pending[submission_id] = event
        else:
            self._pending.pop(submission_id, None)

    def _append(self, submission_id: str, event: Event, still: Callable[[Status], bool]) -> None:
        """Append an end, unless the submission was moved meanwhile."""

        def boards(after: Sequence[Status]) -> Changes:
            same = _on_boards(after) == _on_boards(self._at.ledger.statuses())
            return {} if same else self._boards(event.at, after)

        try:
            self._at.ledger.append(
                submission_id,
                [event],
                still=still,
                also=boards,
                # Earlier results may be on the boards still, while a newer version came.
                others=superseding(submission_id, event.at, self._at.name),
            )
        except TransientError as error:
            if error.code != "lost_race":
                raise
            moved = "Not recorded, since it was moved meanwhile: %s"
            log.warning(moved, error, extra=about(submission_id))


def _on_boards(statuses: Sequence[Status]) -> set[str]:
    return {status.submission.submission_id for status in statuses if status.on_boards}


def _waiting(status: Status) -> dict[str, str]:
    """As what a submission waits: what is being judged need not be scored again."""
    if status.state is State.JUDGING:
        return {"state": State.SCORED, "code": TO_JUDGE}
    return {"state": State.QUEUED}


def blamed(error: AssayError, submission: Submission) -> AssayError:
    """The error with the fault where it belongs once a submission was accepted."""
    if submission.builtin and error.fault == "submitter":
        return PlatformError(error.code, error.message, error.hint)
    if error.code in _OURS_WHEN_WORKING:
        return PlatformError(error.code, error.message)
    return error


def incident(number: str) -> PlatformError:
    """What is told of a defect of ours; the rest stays in the worker's own log."""
    return PlatformError(
        "incident",
        f"Assay itself failed (incident {number}).",
        "Nothing is wrong with the submission; send it again, and tell the operator if it repeats.",
    )
