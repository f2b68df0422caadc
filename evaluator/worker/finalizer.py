"""End of a submission that is not published: with a state and a reason, always."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime

from benchmarks.errors import AssayError, PlatformError, TransientError
from evaluator.isolation.failures import KILLED_FROM_OUTSIDE
from evaluator.worker.spool import EventSpool, PendingEvent
from evaluator.worker.tasks import Setting, Task, about
from leaderboard.ledger.ledger import Batch
from leaderboard.ledger.versions import superseding
from leaderboard.records import Event, Status, Submission
from leaderboard.replay import asked_at, attempts_of
from leaderboard.states import TO_JUDGE, State
from leaderboard.store.interface import Changes

log = logging.getLogger(__name__)

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
    """Records ends; one that the store cannot take now is kept on disk and recorded later."""

    def __init__(self, at: Setting, boards: Boards) -> None:
        self._at = at
        self._pending = EventSpool(at.scratch / "owed")
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
        self._record(task, self._event(**event))
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
        self._record(task, self._ended(State.FAILED, error, output))

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
        for pending in self._pending.own():
            self._try(pending)

    def owes(self, submission_id: str) -> bool:
        """Whether an end of it is known and not recorded yet."""
        return self._pending.get(submission_id) is not None

    def take_up(self, task: Task) -> bool:
        """Record how an earlier worker on this disk ended it; False if that is not known."""
        pending = self._pending.left(task.submission_id)
        if pending is None:
            return False
        same_run = (pending.asked_at, pending.handed_over) == (task.asked_at, task.scored_before)
        if not same_run or pending.event.state is not State.FAILED:
            self._pending.drop(task.submission_id)
            return False
        self._record(
            task, pending.event.model_copy(update={"by": self._at.name, "at": self._at.now()})
        )
        return True

    def sweep(self, older_than_s: float) -> None:
        """Forget ends that nobody came back for, of submissions that went another way."""
        self._pending.sweep(older_than_s)

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

    def _record(self, task: Task, event: Event) -> None:
        self._try(PendingEvent.of(task, event))

    def _try(self, pending: PendingEvent) -> None:
        name = pending.submission_id
        try:
            self._append(name, pending.event, self._at.holds)
        except TransientError as error:
            log.warning("To be recorded later: %s", error, extra=about(name))
            self._pending.put(pending)
        else:
            self._pending.drop(name)

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
