"""Queues generations that are on the boards for the metrics that have not scored them yet."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.errors import PlatformError
from benchmarks.schema import Benchmark
from evaluator.worker.generations import JudgeSet
from evaluator.worker.tasks import about
from leaderboard.accounts import ASSAY
from leaderboard.ledger.batch import Batch
from leaderboard.ledger.ledger import Ledger
from leaderboard.models.grid import RankedMetric, images_to_score, missing
from leaderboard.publication.model_entries import ModelTrack, readable_track
from leaderboard.publication.results import read_result
from leaderboard.records import Event, JudgeRun, Kind, Status
from leaderboard.states import NEW_METRIC, State
from leaderboard.store.interface import Store

log = logging.getLogger(__name__)

AT_ONCE = 100
"""Submissions in one commit; each has its own file of events."""
_NAMED = 8
_FINISHED = frozenset({State.PUBLISHED, State.HELD})


@dataclass
class Backfill:
    """Fills the grid of metrics and generations."""

    store: Store  # where both are
    jury: JudgeSet  # knows the ranked metrics
    # prompt sets as they are now; what was drawn for other prompts is on no board
    registry: Mapping[str, Benchmark] = field(default_factory=dict)
    _looked: str = ""
    _seen: tuple[str, ModelTrack, tuple[RankedMetric, ...]] | None = None

    def look(self) -> bool:
        """Queue what further metrics have to score; False where there is nothing.

        Nothing is read where the store is as it was.
        """
        head = self.store.public.head()
        if head == self._looked:
            return False
        found = self.due()
        for start in range(0, len(found), AT_ONCE):
            self._queue(dict(list(found.items())[start : start + AT_ONCE]))
        self._looked = head if not found else self.store.public.head()
        return bool(found)

    def due(self) -> dict[str, list[RankedMetric]]:
        """Finished generations to the metrics that have not scored them, of most worth first."""
        ledger = Ledger(self.store)
        finished = (
            status
            for status in ledger.statuses()
            if status.submission.kind is Kind.GENERATIONS and status.state in _FINISHED
        )
        whole = (_whole(ledger, status) for status in finished)
        drawn = [status for status in whole if status is not None and self._is_of_now(status)]
        if not drawn:
            return {}
        track, metrics = self._now()
        lacking = [(status, missing(self._judged(status, track), metrics)) for status in drawn]
        wanted = [(status, due) for status, due in lacking if due]
        wanted.sort(key=lambda one: -worth_of(one[0], one[1]))
        return {status.submission.submission_id: due for status, due in wanted}

    def _is_of_now(self, status: Status) -> bool:
        """Whether a set was drawn for the prompts that its prompt set has now."""
        images = status.submission.images
        known = self.registry.get(images.prompt_set) if images else None
        if images is None or known is None:
            return True
        return images.revision in (known.card.revision, *known.card.same_questions_as)

    def worth(self, status: Status) -> float:
        """What it is worth by the second to score a set that waits."""
        track, metrics = self._now()
        return worth_of(status, missing(self._judged(status, track), metrics))

    def _now(self) -> tuple[ModelTrack, tuple[RankedMetric, ...]]:
        """The models and the ranked metrics, read once for each version of the store."""
        head = self.store.public.head()
        if self._seen is None or self._seen[0] != head:
            self._seen = head, readable_track(self.store.public), self.jury.metrics()
        return self._seen[1:]

    def _judged(self, status: Status, track: ModelTrack) -> Mapping[str, JudgeRun]:
        """The metrics that have scored a set, or could not."""
        entry = track.entries.get(status.submission.submission_id)
        if entry is not None:
            return entry.judges
        names = status.submission.benchmarks
        results = (read_result(self.store, status.submission, name) for name in names)
        return next((result.judges for result in results if result is not None), {})

    def _queue(self, found: Mapping[str, list[RankedMetric]]) -> None:
        ledger = Ledger(self.store)

        def batch() -> Batch:
            now = self.store.clock()
            left = {n: due for n, due in found.items() if ledger.status(n).state in _FINISHED}
            return Batch(
                events={
                    name: [
                        Event(
                            at=now,
                            state=State.QUEUED,
                            by=ASSAY.key,
                            code=NEW_METRIC,
                            reason=_reason(due),
                        )
                    ]
                    for name, due in left.items()
                }
            )

        ledger.write(batch, f"{len(found)} sets of generations for further metrics")
        log.info("%d sets of generations are to be scored by further metrics.", len(found))


def _whole(ledger: Ledger, status: Status) -> Status | None:
    """The submission with its whole record; None where that cannot be read: it stops nobody else."""
    if not status.submission.private:
        return status
    name = status.submission.submission_id
    try:
        return ledger.whole_status(name)
    except PlatformError as error:
        log.warning("Passed over for further metrics: %s", error, extra=about(name))
        return None


def worth_of(status: Status, due: list[RankedMetric]) -> float:
    """What it is worth by the second to have metrics score a set."""
    images = status.submission.images
    if images is None or not due:
        return 0.0
    n = images_to_score(images)
    return sum(1.0 + one.first_tiers for one in due) / sum(one.expected_s(n) for one in due)


def _reason(due: list[RankedMetric]) -> str:
    names = ", ".join(one.title for one in due[:_NAMED])
    more = f" and {len(due) - _NAMED} more" if len(due) > _NAMED else ""
    return f"It is scored by further metrics: {names}{more}. What others gave stays."
