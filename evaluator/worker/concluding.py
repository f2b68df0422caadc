"""How a worker ends a submission that it does not publish: with a state and a reason, always."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from benchmarks.errors import AssayError, PlatformError, TransientError
from leaderboard.governance.versions import superseding
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Event, Status
from leaderboard.states import TO_JUDGE, State

MAX_ATTEMPTS = 3
_OURS_WHEN_WORKING = frozenset({"data_missing", "data_malformed", "images_missing"})
"""Errors about this machine's data: not the submitter's, once the submission was accepted."""

log = logging.getLogger(__name__)


class Endings:
    """Records ends; one that the store cannot take now is kept in mind and recorded later.

    Args:
        name: of the worker.
        ledger: where they are recorded.
        clock: the current time, with a time zone.
    """

    def __init__(self, name: str, ledger: Ledger, clock: Callable[[], datetime]) -> None:
        self._name = name
        self._ledger = ledger
        self._clock = clock
        self._owed: list[tuple[str, Event]] = []

    def give_back(self, status: Status, error: TransientError, output: str) -> None:
        """Let it wait again after a fault of the world, unless that happened too often.

        Args:
            status: as it was claimed.
            error: what happened.
            output: of the scorer, as far as it may be kept.
        """
        if status.attempts >= MAX_ATTEMPTS:
            text = f"Gave up after {status.attempts} attempts: {error.message}"
            self.fail(status, PlatformError(error.code, text, error.hint), output)
            return
        reason = f"Attempt {status.attempts} failed and will be repeated: {error.message}"
        event = {"reason": reason, "code": error.code, "fault": "world"} | _waiting(status)
        self._append(status, self._event(**event), self._mine)

    def hand_back(self, status: Status, reason: str) -> None:
        """Let it wait again where nothing failed."""
        event = {"reason": reason} | _waiting(status)
        self._append(status, self._event(**event), self._mine)

    def fail(
        self,
        status: Status,
        error: AssayError,
        output: str = "",
        *,
        still: Callable[[Status], bool] | None = None,
    ) -> None:
        """Let it fail, with whose fault it is and what to do.

        Args:
            status: as it was claimed.
            error: why.
            output: of the scorer, as far as it may be kept.
            still: when to record it; None: while this worker holds it.
        """
        log.warning("%s failed: %s", status.submission.submission_id, error)
        self._append(status, self._ended(State.FAILED, error, output), still or self._mine)

    def refuse(self, status: Status, error: AssayError, still: Callable[[Status], bool]) -> None:
        """Reject what waits and may not be run."""
        self._append(status, self._ended(State.REJECTED, error, ""), still)

    def settle(self) -> None:
        """Record what the store could not take before."""
        owed, self._owed = self._owed, []
        for submission_id, event in owed:
            self._record(submission_id, event, self._mine)

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
        return Event.model_validate({"at": self._clock(), "by": self._name, **more})

    def _append(self, status: Status, event: Event, still: Callable[[Status], bool]) -> None:
        self._record(status.submission.submission_id, event, still)

    def _record(self, submission_id: str, event: Event, still: Callable[[Status], bool]) -> None:
        try:
            self._ledger.append(
                submission_id,
                [event],
                still=still,
                # Earlier results may be on the boards still, while a newer version came.
                others=superseding(submission_id, event.at, self._name),
            )
        except TransientError as error:
            if error.code == "lost_race":
                log.warning("Not recorded, since it was moved meanwhile: %s", error)
            else:
                log.warning("To be recorded later: %s", error)
                self._owed.append((submission_id, event))

    def _mine(self, status: Status) -> bool:
        return status.held_by(self._name)


def _waiting(status: Status) -> dict[str, str]:
    """As what a submission waits: what is being judged need not be scored again."""
    if status.state is State.JUDGING:
        return {"state": State.SCORED, "code": TO_JUDGE}
    return {"state": State.QUEUED}


def blamed(error: AssayError) -> AssayError:
    """The error with the fault where it belongs once a submission was accepted."""
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
