"""From scores to what is in the store: results, boards, flags, and the state that says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from benchmarks.schema import Benchmark
from evaluator.submission.agreement import agreement
from evaluator.worker.judging import Judged, Scored, judge
from evaluator.worker.sameness import same_scores, score_hashes
from leaderboard.governance.versions import superseding
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.tidying import tidy
from leaderboard.publication.publisher import Publisher
from leaderboard.publication.results import ResultFiles
from leaderboard.records import Event, Status, Submission
from leaderboard.states import State
from leaderboard.store.interface import Changes, Store, transact


@dataclass(frozen=True)
class RunPublisher:
    """Judges finished runs and puts them where they belong.

    Attributes:
        worker: who does it.
        store: where the results go.
        ledger: of that store.
        publisher: of that store's boards.
        registry: the benchmarks known here.
        data: folder of benchmark data, if there is one.
        clock: the current time, with a time zone.
    """

    worker: str
    store: Store
    ledger: Ledger
    publisher: Publisher
    registry: Mapping[str, Benchmark]
    data: Path | None
    clock: Callable[[], datetime]

    def publish(
        self,
        submission: Submission,
        scored: Sequence[Scored],
        output: str,
        still: Callable[[Status], bool],
        *,
        handed_over: bool = False,
    ) -> None:
        """Judge all runs of a submission and show them: to all, or to its author alone.

        What is private is written first, since the public commit is what makes it count.

        Args:
            submission: its whole record.
            scored: its scores on each benchmark.
            output: of the scorer, as far as it may be kept.
            still: whether the submission is still this worker's.
            handed_over: whether the events say already that it is scored and being judged.

        Raises:
            TransientError: `lost_race` where it is not.
            SubmitterError: a benchmark's answers are not here.
        """
        now, name = self.clock(), submission.submission_id
        judged = [self._judged(submission, one, now) for one in scored]
        files, events = _together(judged), self._events(submission, scored, output, now)
        events = events[-1:] if handed_over else events
        kept = files.held if submission.private else files.private
        if kept:
            transact(self.store.private, lambda: kept, f"results of {name}")
        if submission.private:
            self.ledger.append(name, events, still=still)
            return
        runs = [one.published for one in judged]
        self.ledger.append(
            name,
            events,
            still=still,
            also=lambda after: {
                **self.publisher.snapshot_files(now, after, runs),
                **files.public,
            },
            others=superseding(name, now, self.worker),
        )

    def discard(self, status: Status) -> None:
        """Remove what was kept of a run whose submission was taken back meanwhile.

        Args:
            status: of the submission, which no worker holds any more.
        """
        name = status.submission.submission_id
        tidy(self.store, name)
        if status.scored_at is not None:
            return  # What was published before stays in the history, as it does for all others.

        def change() -> Changes:
            return dict.fromkeys(self.store.private.list(f"results/{name}/"))

        transact(self.store.private, change, f"nothing is kept of {name}")

    def _judged(self, submission: Submission, scored: Scored, now: datetime) -> Judged:
        benchmark = self.registry[scored.benchmark]
        judged = judge(submission, scored, benchmark, self.data, now)
        found = same_scores(
            self.store,
            submission,
            judged.published.result,
            score_hashes(scored.table),
            self.ledger.statuses(),
        )
        result = judged.published.result.model_copy(update={"same_scores_as": found})
        return replace(judged, published=replace(judged.published, result=result))

    def _events(
        self, submission: Submission, scored: Sequence[Scored], output: str, now: datetime
    ) -> list[Event]:
        finished = State.HELD if submission.private else State.PUBLISHED
        agrees = self._agreement(submission, scored)
        return [
            Event(at=now, state=State.SCORED, by=self.worker, log=output),
            Event(at=now, state=State.JUDGING, by=self.worker),
            Event(at=now, state=finished, by=self.worker, reason=agrees),
        ]

    def _agreement(self, submission: Submission, scored: Sequence[Scored]) -> str:
        with_images = all(self.registry[one.benchmark].has_questions(self.data) for one in scored)
        if submission.receipt is None or not with_images:
            return ""
        columns = {one.benchmark: one.table.overall.iloc[:, 0] for one in scored}
        return agreement(submission.receipt, columns, self.registry, self.data)


def _together(judged: Sequence[Judged]) -> ResultFiles:
    every = ResultFiles({}, {})
    for one in judged:
        files = one.files()
        every.public.update(files.public)
        every.private.update(files.private)
    return every
