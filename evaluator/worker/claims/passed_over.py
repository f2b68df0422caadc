"""Skipped jobs, whose stored files are broken; the others go on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from benchmarks.errors import PlatformError
from evaluator.worker.claims.tasks import about
from leaderboard.ledger.ledger import Ledger, fault_of
from leaderboard.records import Event, Status

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PassedOver:
    """Keeps one submission with a record that cannot be read from stopping all claims.

    Each reason is logged once; `doctor` lists them all.

    Attributes:
        ledger: where the records are.
    """

    ledger: Ledger
    _told: set[tuple[str, str]] = field(default_factory=set)

    def with_records(self) -> tuple[Status, ...]:
        """Every submission with its whole record, but for those whose record cannot be read.

        Raises:
            PlatformError: not even the queue can be read.
        """
        found: list[Status] = []
        for status in self.ledger.statuses():
            name = status.submission.submission_id
            self.doing(name, partial(self._add, status, found))
        return tuple(found)

    def _add(self, public: Status, to: list[Status]) -> None:
        to.append(self.ledger.with_record(public))

    def takes(self, status: Status, events: Sequence[Event]) -> bool:
        """Whether these events can follow those that a submission has."""
        error = fault_of(self.ledger, status, events)
        if error is not None:
            self._tell(status.submission.submission_id, error)
        return error is None

    def doing(self, submission_id: str, action: Callable[[], object]) -> bool:
        """Do something with one submission; False where its records keep that from being done."""
        try:
            return bool(action())
        except PlatformError as error:
            self._tell(submission_id, error)
            return False

    def _tell(self, submission_id: str, error: PlatformError) -> None:
        if (submission_id, error.message) not in self._told:
            self._told.add((submission_id, error.message))
            log.error("Passed over: %s", error, extra=about(submission_id))
