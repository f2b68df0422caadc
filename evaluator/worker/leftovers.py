"""Leftovers of ended submissions, on the worker's disk and in the store, and their removal."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from benchmarks.errors import AssayError, PlatformError, TransientError
from evaluator.worker.handoff import Handoff
from evaluator.worker.publishing import RunPublisher
from evaluator.worker.scorer_role import ScorerRole
from evaluator.worker.spool import RunSpool, UploadCache, still_wanted
from evaluator.worker.tasks import Setting, Task, about
from leaderboard.records import Status
from leaderboard.replay import asked_at
from leaderboard.states import FINISHED, State

log = logging.getLogger(__name__)

_TAKEN_AWAY = frozenset({State.WITHDRAWN, State.HIDDEN, State.REJECTED})
_DONE_WITH = FINISHED - {State.FAILED}
"""What failed by a fault of ours may be run again, and goes on from its shards."""
_OLD = timedelta(days=1)


@dataclass(frozen=True)
class Leftovers:
    """Removes what nobody needs any more."""

    at: Setting
    scorers: ScorerRole  # has their shards
    outbox: RunSpool  # has what was finished
    handing: Handoff  # has what was handed over
    results: RunPublisher  # removes results of what was taken back
    uploads: UploadCache  # has uploads that were fetched in advance

    def clear(self, task: Task) -> None:
        """Remove what a task leaves, as far as its submission is over.

        What waits or is in another worker's hands keeps its shards.
        """
        name = task.submission_id
        self.uploads.drop(name)
        try:
            status = self.at.ledger.whole_status(name)
            if status.unfinished:
                if status.to_judge:
                    self.scorers.forget(status.submission)
                return
            if status.state in _DONE_WITH:
                self.scorers.forget(status.submission)
            if status.state in _TAKEN_AWAY:
                self.results.discard(status)
            elif task.handed_over:
                self.handing.remove(name)
            self.at.store.live.forget(name)
        except (AssayError, OSError) as error:
            log.warning("What is left of it was not removed: %s", error, extra=about(name))

    def sweep(self, now: datetime) -> None:
        """Remove what workers before this one left on the disk and nobody needs."""
        self.scorers.sweep(now.timestamp())
        self.uploads.sweep(now.timestamp())
        self.outbox.sweep((now - _OLD).timestamp())
        try:
            self._sweep_known()
        except TransientError as error:
            log.warning("What is left on the disk is looked through later: %s", error)

    def _sweep_known(self) -> None:
        # Listed first: what is written meanwhile is for a state that is not read yet.
        finished, shards = self.outbox.ids(), self.scorers.with_shards()
        known = {s.submission.submission_id: s for s in self.at.ledger.statuses()}
        for name in finished:
            try:
                wanted = self._is_wanted(name, known.get(name))
            except PlatformError as error:  # What became of it is not known: it stays.
                log.warning("What was finished is kept for now: %s", error, extra=about(name))
                continue
            if not wanted:
                log.info("What was finished is not wanted any more.", extra=about(name))
                self.outbox.drop(name)
        for name in shards:
            status = known.get(name)
            if status is not None and status.state in _DONE_WITH:
                self.scorers.forget(status.submission)

    def _is_wanted(self, submission_id: str, status: Status | None) -> bool:
        entry = self.outbox.entry(submission_id)
        asked = self._asked_at(submission_id, status)
        return entry is not None and still_wanted(entry, status, asked)

    def _asked_at(self, submission_id: str, status: Status | None) -> datetime | None:
        if status is None or not status.unfinished:
            return None
        return asked_at(self.at.ledger.events(submission_id))
