"""Leaves scores to a judge, and takes them up as a judge."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from benchmarks.errors import PlatformError, TransientError
from benchmarks.questions import Key, key_path
from benchmarks.schema import Benchmark
from evaluator.worker.claims.tasks import Finished, begun_events
from evaluator.worker.ending.handed_over import (
    HandedOver,
    damaged,
    handover_files,
    read_record,
    read_table,
    record_path,
    restored,
)
from evaluator.worker.ending.judging import Scored
from evaluator.worker.running.kept_scores import kept_scores
from leaderboard.ledger.batch import Batch
from leaderboard.ledger.cleanup import tidy
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.private_records import scored_folder
from leaderboard.records import Event, Status, Submission
from leaderboard.states import FINISHED, TO_JUDGE, State
from leaderboard.store.interface import Changes, NotFoundError, Store, transact

WAITING_FOR_A_JUDGE = "Waiting for a judge."

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class HandingOver:
    """Both sides of the hand-over of one worker.

    Attributes:
        worker: who it is.
        store: where scores wait.
        ledger: of that store.
        registry: the benchmarks known here.
        data: folder of benchmark data, if there is one.
        keys: folder of the keys of exported questions; only a judge has it.
        clock: the current time, with a time zone.
    """

    worker: str
    store: Store
    ledger: Ledger
    registry: Mapping[str, Benchmark]
    data: Path | None
    keys: Path | None
    clock: Callable[[], datetime]

    def give(self, finished: Sequence[Finished], still: Callable[[Status], bool]) -> frozenset[str]:
        """Keep scores privately, then say in public that they wait for a judge: a commit each.

        Args:
            finished: the runs, at most one of each submission.
            still: whether a submission is still this worker's.

        Returns:
            Ids of those that wait for a judge now; the others were moved meanwhile.

        Raises:
            TransientError: the store cannot take it now; no judge takes any of them.
        """
        files = {one.submission_id: self._files(one) for one in finished}
        names = " ".join(files)

        def change() -> Changes:
            # What another worker has handed over meanwhile may be under judgement already.
            mine = [one.submission_id for one in finished if self._is_mine(one, still)]
            changes: dict[str, bytes | Path | None] = {}
            for name in mine:
                changes |= dict.fromkeys(self.store.private.list(scored_folder(name)))
                changes |= files[name]
            return changes

        given: set[str] = set()

        def batch() -> Batch:
            mine = [one for one in finished if self._is_mine(one, still)]
            given.clear()
            given.update(one.submission_id for one in mine)
            if not mine:
                raise TransientError("lost_race", f"{names} moved on.")
            return Batch(events={one.submission_id: self._events(one) for one in mine})

        transact(self.store.private, change, f"scores of {names}")
        try:
            self.ledger.write(batch, f"scored {names}")
        except TransientError as error:
            if error.code != "lost_race":
                raise
            return frozenset()
        return frozenset(given)

    def _is_mine(self, one: Finished, still: Callable[[Status], bool]) -> bool:
        return still(self.ledger.whole_status(one.submission_id))

    def _files(self, one: Finished) -> dict[str, bytes]:
        files: dict[str, bytes] = {}
        for scored in one.scored:
            revision = self.registry[scored.benchmark].card.revision
            files |= handover_files(one.task.submission, scored, revision, self.worker, one.output)
        return files

    def _events(self, one: Finished) -> list[Event]:
        handed = Event(
            at=self.clock(),
            state=State.SCORED,
            by=self.worker,
            code=TO_JUDGE,
            reason=WAITING_FOR_A_JUDGE,
            log=one.output,
        )
        return [*begun_events(one, self.worker), handed]

    def can_take(self, submission: Submission) -> bool:
        """Whether the scores that wait can be given their own ids here."""
        if self._kept(submission):
            return True
        try:
            records = [
                read_record(self.store.private, submission.submission_id, name)
                for name in submission.benchmarks
            ]
        except PlatformError as error:
            log.warning("%s is taken to be failed: %s", submission.submission_id, error)
            return True  # So that it ends, with this as its reason, and does not wait for ever.
        return all(not record.tag or self._has_key(record.benchmark) for record in records)

    def take(self, submission: Submission) -> tuple[list[Scored], str]:
        """The scores that wait, under the benchmarks' own ids, and the scorer's output.

        Raises:
            TransientError: `handover_missing`; the store may not show yet what was handed over.
            PlatformError: `handover_damaged`, `key_mismatch`, `key_unreadable`, or as
                `kept_scores`.
        """
        if self._kept(submission):
            named = [self.registry[name] for name in submission.benchmarks]
            return [kept_scores(self.store, submission, one, self.data) for one in named], ""
        records = [self._record(submission, name) for name in submission.benchmarks]
        author = self._scored_by(submission)
        for record in records:
            if record.worker != author:
                path = record_path(record.submission_id, record.benchmark)
                raise damaged(path, f"{record.worker} made them, but {author} handed them over")
        return [self._scored(submission, record) for record in records], records[-1].output

    def remove(self, submission_id: str) -> None:
        """Remove scores that wait no more."""
        tidy(self.store, submission_id)

    def _record(self, submission: Submission, benchmark: str) -> HandedOver:
        try:
            return read_record(self.store.private, submission.submission_id, benchmark)
        except NotFoundError as error:
            raise _missing(error) from error

    def _scored(self, submission: Submission, record: HandedOver) -> Scored:
        benchmark = self.registry[record.benchmark]
        path = record_path(record.submission_id, record.benchmark)
        if record.revision != benchmark.card.revision:
            found, here = record.revision, benchmark.card.revision
            raise damaged(path, f"they are of revision {found}, and revision {here} is here")
        try:
            table = read_table(self.store.private, submission, record)
        except NotFoundError as error:
            raise _missing(error) from error
        scored = record.scored(table)
        if record.tag:
            scored = restored(scored, self._key(record.benchmark))
        if benchmark.track == "models":
            return scored
        ids = benchmark.answers(self.data).pair_ids
        overall = scored.table.overall
        if len(overall) != len(ids) or set(overall.index) != set(ids):
            raise damaged(path, f"they are not of the {len(ids)} pairs of {record.benchmark}")
        return replace(scored, table=replace(scored.table, overall=overall.loc[list(ids)]))

    def _has_key(self, benchmark: str) -> bool:
        return self.keys is not None and key_path(self.keys, benchmark).is_file()

    def _key(self, benchmark: str) -> Key:
        if self.keys is None:
            raise PlatformError(
                "key_unreadable",
                f"The scores on {benchmark} are under opaque ids, and no key is here.",
                "Give the folder of the keys with --keys.",
            )
        return Key.read(key_path(self.keys, benchmark))

    def _kept(self, submission: Submission) -> bool:
        """Whether nobody hands scores over: those of its last results are judged again."""
        steps = pairwise(self.ledger.events(submission.submission_id))
        # A judge may have given them back since.
        asked = [b.state for b, e in steps if e.to_judge and b.state is not State.JUDGING]
        return asked[-1:] != [] and asked[-1] in FINISHED

    def _scored_by(self, submission: Submission) -> str:
        """Who handed the scores over last; a judge may have given them back since."""
        steps = pairwise(self.ledger.events(submission.submission_id))
        handed = [e.by for before, e in steps if e.to_judge and before.state is State.SCORING]
        return handed[-1] if handed else ""


def _missing(error: NotFoundError) -> TransientError:
    return TransientError(
        "handover_missing",
        f"Scores that were handed over are not there: {error.message}",
        "Have the submission run again: python -m evaluator rerun",
    )
