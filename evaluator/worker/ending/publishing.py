"""From scores to what is in the store: results, boards, flags, and the state that says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path

from benchmarks.errors import TransientError
from benchmarks.schema import Benchmark
from evaluator.submission.agreement import agreement
from evaluator.worker.claims.tasks import Finished, begun_events
from evaluator.worker.ending.judging import Judged, Scored, judge
from evaluator.worker.ending.judging_generations import (
    judge_generations,
    kept_pictures,
    with_pictures,
)
from evaluator.worker.ending.sameness import PublishedHashes, same_among, same_scores, score_hashes
from leaderboard.ledger.batch import Batch
from leaderboard.ledger.cleanup import tidy
from leaderboard.ledger.ledger import Ledger
from leaderboard.ledger.versions import Further, superseding
from leaderboard.publication.item_scores import CaseFiles
from leaderboard.publication.publisher import Publisher
from leaderboard.publication.results import Displaced, ResultFiles, displaced, read_result
from leaderboard.records import Event, Kind, RunResult, Status, Submission
from leaderboard.states import State
from leaderboard.store.interface import Changes, Store, transact


@dataclass(frozen=True)
class JudgedRun:
    """A finished submission with all its measures, ready to be published.

    Attributes:
        finished: what was judged.
        runs: its runs, one for each benchmark.
        agrees: what is to be said of its author's own receipt.
    """

    finished: Finished
    runs: Sequence[Judged]
    agrees: str

    @property
    def submission(self) -> Submission:
        """Its whole record, with the benchmarks it was run on."""
        return self.finished.task.submission

    @property
    def results(self) -> list[RunResult]:
        """Of its runs."""
        return [one.published.result for one in self.runs]

    @cached_property
    def files(self) -> ResultFiles:
        """Of all its runs."""
        public: dict[str, bytes | Path] = {}
        private: dict[str, bytes | Path] = {}
        for one in self.runs:
            files = one.files()
            public |= files.public
            private |= files.private
        return ResultFiles(public, private)


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
        scratch: folder for files that wait to be sent.
    """

    worker: str
    store: Store
    ledger: Ledger
    publisher: Publisher
    registry: Mapping[str, Benchmark]
    data: Path | None
    clock: Callable[[], datetime]
    scratch: Path

    @cached_property
    def published(self) -> PublishedHashes:
        """Of the scores that are on the boards."""
        return PublishedHashes(self.store)

    @cached_property
    def case_files(self) -> CaseFiles:
        """What people said of the benchmarks that are known here, as files of the store."""
        return CaseFiles(self.registry, self.data)

    def judged(self, finished: Finished) -> JudgedRun:
        """Compute every measure of a finished submission.

        Raises:
            SubmitterError: a benchmark's answers are not here.
        """
        task, now = finished.task, self.clock()
        runs = [self._judged(task.submission, one, now) for one in finished.scored]
        return JudgedRun(finished, runs, self._agreement(task.submission, finished.scored))

    def _judged(self, submission: Submission, scored: Scored, now: datetime) -> Judged:
        benchmark = self.registry[scored.benchmark]
        if submission.kind is not Kind.GENERATIONS:
            return judge(submission, scored, benchmark, self.data, now)
        made = judge_generations(submission, scored, benchmark, self.data, now)
        before = read_result(self.store, submission, scored.benchmark)
        if before is not None:
            return kept_pictures(made, before)
        # Beside its finished shards, with which it is removed.
        place = self.scratch / "shards" / submission.submission_id / "pictures"
        return with_pictures(made, self.ledger.fetch_upload, place)

    def publish(
        self, judged: Sequence[JudgedRun], still: Callable[[Status], bool]
    ) -> frozenset[str]:
        """Show finished submissions, all in one public commit: to all, or to their author alone.

        What is private is written first, since the public commit is what makes it count.

        Args:
            judged: what is to be shown, at most one of each submission.
            still: whether a submission is still this worker's.

        Returns:
            Ids of those that are shown now; the others were moved by somebody else meanwhile.

        Raises:
            TransientError: the store cannot take it now; nothing is shown.
        """
        now = self.clock()
        flagged = self._flagged(judged)
        self._keep_private(flagged, still)
        published: set[str] = set()

        def batch() -> Batch:
            mine = [one for one in flagged if self._is_mine(one, still)]
            published.clear()
            published.update(one.finished.submission_id for one in mine)
            if not mine:
                raise TransientError("lost_race", "All that was to be published was moved.")
            return self._batch(mine, now)

        names = " ".join(one.finished.submission_id for one in flagged)
        states = dict.fromkeys(e.state for one in flagged for e in self._events(one, now))
        try:
            self.ledger.write(batch, f"{'+'.join(states)} {names}")
        except TransientError as error:
            if error.code != "lost_race":
                raise
            return frozenset()
        return frozenset(published)

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

    def _batch(self, mine: Sequence[JudgedRun], now: datetime) -> Batch:
        shown = [one for one in mine if not one.submission.private]

        def files(after: Sequence[Status]) -> Changes:
            if not shown:
                return {}
            runs = [run.published for one in shown for run in one.runs]
            changes: dict[str, bytes | Path | None] = {}
            changes |= self.publisher.snapshot_files(now, after, runs)
            judged = {run.result.benchmark for run in runs}
            changes |= self.case_files.missing(self.store.public, judged)
            for one in shown:
                changes |= self._displaced(one).public
                changes |= one.files.public
            return changes

        return Batch(
            events={one.finished.submission_id: self._events(one, now) for one in mine},
            further=one_after_another(
                [superseding(one.finished.submission_id, now, self.worker) for one in shown]
            ),
            files=files,
        )

    def _is_mine(self, one: JudgedRun, still: Callable[[Status], bool]) -> bool:
        return still(self.ledger.whole_status(one.finished.submission_id))

    def _displaced(self, one: JudgedRun) -> Displaced:
        """What becomes of earlier results; nothing is looked for where there were none."""
        first = one.finished.task.status.scored_at is None
        # What metrics gave for images stays in the new result, beside what further ones give.
        if first or one.submission.kind is Kind.GENERATIONS:
            return Displaced({}, {})
        return displaced(self.store, one.submission, one.results)

    def _keep_private(self, judged: Sequence[JudgedRun], still: Callable[[Status], bool]) -> None:
        kept = {one.finished.submission_id: _kept(one) for one in judged}
        kept = {name: files for name, files in kept.items() if files}
        if not kept:
            return

        def change() -> Changes:
            changes: dict[str, bytes | Path | None] = {}
            for one in judged:
                # What another worker has finished meanwhile is not written over.
                if one.finished.submission_id in kept and self._is_mine(one, still):
                    changes |= self._displaced(one).private
                    changes |= kept[one.finished.submission_id]
            return changes

        transact(self.store.private, change, f"results of {' '.join(kept)}")

    def _flagged(self, judged: Sequence[JudgedRun]) -> list[JudgedRun]:
        """The same with what their scores are equal to: on the boards, or among themselves."""
        statuses, origins = self.ledger.statuses(), self.publisher.origins()
        flagged: list[JudgedRun] = []
        for one in judged:
            runs: list[Judged] = []
            for run in one.runs:
                result = run.published.result
                hashes = _hashes(one.submission, run)
                known = self.published.on(result, origins)
                found = same_scores(one.submission, hashes, statuses, known)
                earlier = [
                    (e.submission, r.published.result, _hashes(e.submission, r))
                    for e in flagged
                    for r in e.runs
                ]
                found += tuple(
                    name
                    for name in same_among(one.submission, result, hashes, earlier)
                    if name not in found
                )
                result = result.model_copy(update={"same_scores_as": found})
                runs.append(replace(run, published=replace(run.published, result=result)))
            flagged.append(replace(one, runs=runs))
        return flagged

    def _events(self, one: JudgedRun, now: datetime) -> list[Event]:
        task = one.finished.task
        shown = State.HELD if one.submission.private else State.PUBLISHED
        last = Event(at=now, state=shown, by=self.worker, reason=one.agrees)
        if task.handed_over:
            return [last]
        return [
            *begun_events(one.finished, self.worker),
            Event(at=one.finished.at, state=State.SCORED, by=self.worker, log=one.finished.output),
            Event(at=now, state=State.JUDGING, by=self.worker),
            last,
        ]

    def _agreement(self, submission: Submission, scored: Sequence[Scored]) -> str:
        with_images = all(self.registry[one.benchmark].has_questions(self.data) for one in scored)
        if submission.receipt is None or not with_images:
            return ""
        columns = {one.benchmark: one.table.overall.iloc[:, 0] for one in scored}
        return agreement(submission.receipt, columns, self.registry, self.data)


def one_after_another(parts: Sequence[Further]) -> Further:
    """Several consequences in one commit, each in the state that those before it leave.

    Args:
        parts: of which each takes versions off the boards, and does nothing else.
    """

    def further(statuses: Sequence[Status]) -> Mapping[str, Sequence[Event]]:
        found: dict[str, list[Event]] = {}
        seen = tuple(statuses)
        for part in parts:
            new = part(seen)
            for name, events in new.items():
                found.setdefault(name, []).extend(events)
            gone = {name: events[-1].state for name, events in new.items() if events}
            seen = tuple(_taken_off(status, gone) for status in seen)
        return found

    return further


def _taken_off(status: Status, gone: Mapping[str, State]) -> Status:
    state = gone.get(status.submission.submission_id)
    if state is None:
        return status
    return status.model_copy(update={"state": state, "on_boards": False})


def _hashes(submission: Submission, run: Judged) -> dict[str, str]:
    """None of generations: a metric that looks at prompts alone gives every model the same."""
    return {} if submission.kind is Kind.GENERATIONS else score_hashes(run.table)


def _kept(one: JudgedRun) -> Mapping[str, bytes | Path]:
    """What the private repository keeps of it."""
    return one.files.held if one.submission.private else one.files.private
