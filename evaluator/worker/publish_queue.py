"""Publish queue: finished runs are kept, then published or handed to a judge together.

What goes out is on disk first (`spool`). It goes when there is enough for one commit, when nothing
is left to do, when it has waited long enough, and when the worker stops. A store that fails costs
nothing but time: it is tried again after ever longer pauses.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from benchmarks.errors import AssayError, TransientError
from evaluator.worker.finalizer import MAX_ATTEMPTS_TO_PUBLISH, Finalizer, blamed, incident
from evaluator.worker.handoff import Handoff
from evaluator.worker.liveness import Backoff
from evaluator.worker.publishing import JudgedRun, RunPublisher
from evaluator.worker.spool import RunSpool
from evaluator.worker.tasks import Finished, Setting, Task, about

log = logging.getLogger(__name__)

SENT_AFTER = timedelta(minutes=10)
"""Nobody waits longer than this for a result because others are not finished yet."""


class PublishQueue:
    """Finished submissions of one worker that the store does not have yet."""

    def __init__(
        self,
        at: Setting,
        spool: RunSpool,
        *,
        results: RunPublisher | None,
        handoff: Handoff,
        finalizer: Finalizer,
        let_go: Callable[[Task], None],
    ) -> None:
        self._at = at
        self._spool = spool
        self._results = results
        self._handoff = handoff
        self._finalizer = finalizer
        self._let_go = let_go
        self._ready: dict[str, tuple[Finished, JudgedRun | None]] = {}
        self._oldest: datetime | None = None
        self._backoff = Backoff()
        self._next_try: datetime | None = None

    def finished_before(self, task: Task) -> Finished | None:
        """What was finished of a task before it was claimed now, on this disk."""
        finished = self._spool.take(task, self._revisions(task.submission.benchmarks))
        if finished is None:
            return None
        opaque = any(one.tag for one in finished.scored)
        # A worker of another role may have left it: opaque ids are a judge's to turn back.
        if (self._results is not None and opaque) or (self._results is None and task.scored_before):
            return None
        return finished

    def add(self, finished: Finished) -> None:
        """Take what is finished: it is judged, and on disk when this returns."""
        self._spool.put(finished, self._revisions(one.benchmark for one in finished.scored))
        try:
            judged = None if self._results is None else self._results.judged(finished)
        except TransientError:
            raise
        except Exception:
            self._spool.drop(finished.submission_id)
            raise
        if judged is not None:
            self._spool.judged(finished.submission_id)
        self._ready[finished.submission_id] = finished, judged
        self._oldest = self._oldest or self._at.now()

    def send_due(self) -> bool:
        """Send what is due; False if nothing was. A store that fails is tried again later."""
        if not self._is_due():
            return False
        try:
            return self.send()
        except TransientError as error:
            log.warning("Results wait in the outbox: %s", error)
            return False

    def send(self) -> bool:
        """Send all that is finished, in as few commits as the store wants; False: there is none."""
        if not self._ready:
            return False
        try:
            while self._ready:
                self._send_some(tuple(self._ready.values())[: self._at.store.jobs_per_commit])
        except TransientError:
            self._next_try = self._at.now() + timedelta(seconds=self._backoff.next_s())
            raise
        self._backoff.reset()
        self._next_try = self._oldest = None
        return True

    def _is_due(self) -> bool:
        if not self._ready:
            return False
        now = self._at.now()
        if self._next_try is not None and now < self._next_try:
            return False
        full = len(self._ready) >= self._at.store.jobs_per_commit
        # Claimed alone, it is held alone: a worker that is lost later is not lost with it.
        full |= any(finished.task.status.claimed_alone for finished, _ in self._ready.values())
        return full or (self._oldest is not None and now - self._oldest >= SENT_AFTER)

    def _send_some(self, some: Sequence[tuple[Finished, JudgedRun | None]]) -> None:
        try:
            sent = self._sent(some)
        except TransientError:
            raise
        except Exception as error:  # noqa: BLE001 (each is logged, and ends its own submission)
            if len(some) > 1:  # One of them is at fault: each gets its own answer.
                for one in some:
                    self._send_some([one])
                return
            self._refused(some[0][0], error)
            return
        for finished, _ in some:
            name, attempt = finished.submission_id, finished.task.status.attempts
            if name in sent:
                log.info("Sent.", extra=about(name, attempt))
            else:
                log.warning("Not sent, since it was moved.", extra=about(name, attempt))
            self._forget(finished.task)

    def _sent(self, some: Sequence[tuple[Finished, JudgedRun | None]]) -> frozenset[str]:
        if self._results is None:
            return self._handoff.give([finished for finished, _ in some])
        return self._results.publish([judged for _, judged in some if judged])

    def _refused(self, finished: Finished, error: Exception) -> None:
        """Let wait what a defect keeps from being sent, and end what will never be sent."""
        if isinstance(error, AssayError):
            told = blamed(error, finished.task.submission)
        else:
            number = uuid.uuid4().hex[:8]
            extra = about(finished.submission_id)
            log.error("Incident %s at sending", number, exc_info=error, extra=extra)
            told = incident(number)
        kept = False
        try:
            if told.fault == "submitter":
                self._finalizer.fail(finished.task, told, finished.output)
            else:
                output, most = finished.output, MAX_ATTEMPTS_TO_PUBLISH
                kept = self._finalizer.give_back(finished.task, told, output, most=most)
        finally:
            self._forget(finished.task, keep=kept)

    def _forget(self, task: Task, *, keep: bool = False) -> None:
        """It is not in this worker's hands any more; what is kept is sent by whoever claims it."""
        self._ready.pop(task.submission_id, None)
        if not keep:
            self._spool.drop(task.submission_id)
        self._let_go(task)

    def _revisions(self, benchmarks: Iterable[str]) -> list[str]:
        return [self._at.registry[name].card.revision for name in benchmarks]
