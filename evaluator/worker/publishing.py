"""Publication of runs: rows from scores, then results, boards, flags and the state that says so.

What goes out is on disk first (`RunSpool`). It goes when there is enough for one commit, when nothing
is left to do, when it has waited long enough, and when the worker stops: it is published, or handed
to a judge, together. A store that fails costs nothing but time: it is tried again after ever longer
pauses.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from benchmarks.errors import AssayError, TransientError
from benchmarks.inference import versions
from benchmarks.parquet import read_overall, write_stored
from benchmarks.rows import Measured
from benchmarks.schema import Benchmark, ScoreTable
from evaluator.generation.manifest import ImageRow
from evaluator.submission.dry_run import agreement
from evaluator.submission.generations.archive import GenerationsArchive, opened
from evaluator.submission.intake import owner_of
from evaluator.submission.runs import Scored
from evaluator.worker.handoff import Handoff, RunSpool
from evaluator.worker.liveness import Backoff
from evaluator.worker.tasks import (
    MAX_ATTEMPTS_TO_PUBLISH,
    Finalizer,
    Finished,
    Setting,
    Task,
    about,
    begun_events,
    blamed,
    incident,
)
from leaderboard.accounts import ASSAY
from leaderboard.ledger.cleanup import tidy
from leaderboard.ledger.ledger import Batch
from leaderboard.ledger.versions import Further, superseding
from leaderboard.models.pictures import (
    Image,
    image_table,
    images_path,
    pictures_path,
    write_pictures,
)
from leaderboard.models.reading import scores_path
from leaderboard.publication.item_scores import CaseFiles
from leaderboard.publication.publisher import Publisher
from leaderboard.publication.results import (
    Displaced,
    Origin,
    Published,
    ResultFiles,
    displaced,
    public_result,
    read_result,
    result_files,
    scores_sha256,
)
from leaderboard.ranking.draws import Draws
from leaderboard.records import Event, Kind, RunResult, Status, Submission
from leaderboard.states import State
from leaderboard.store.interface import Changes, NotFoundError, Store, transact
from leaderboard.trust import TrustReport

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Judged:
    """One run, ready to be published."""

    published: Published
    measured: Measured
    table: ScoreTable

    answers_public: bool

    def files(self) -> ResultFiles:
        """The files of the run."""
        return result_files(
            self.published.result,
            self.measured,
            self.table,
            answers_public=self.answers_public,
        )


def score_hashes(table: ScoreTable) -> dict[str, str]:
    """Metric to the hash of its scores."""
    return {name: scores_sha256(table.overall[name]) for name in table.metrics}


def judge(
    submission: Submission,
    scored: Scored,
    benchmark: Benchmark,
    data: Path | None,
    judged_at: datetime,
) -> Judged:
    """Compute every measure of one run."""
    measured, result = _measured(submission, scored, benchmark, data, judged_at)
    hashes = {"scores_sha256": score_hashes(scored.table)}
    result = result.model_copy(update=hashes).with_reports(
        lambda report: _of_its_own(report, benchmark)
    )
    if not benchmark.card.answers_public:
        result = public_result(result)
    return Judged(
        Published(submission, result, Draws(measured.resamples, measured.contributions)),
        measured,
        scored.table,
        benchmark.card.answers_public,
    )


def _measured(
    submission: Submission,
    scored: Scored,
    benchmark: Benchmark,
    data: Path | None,
    judged_at: datetime,
) -> tuple[Measured, RunResult]:
    """Every measure of one run, and the record of it."""
    answers = benchmark.answers(data)
    plan = benchmark.plan(answers)
    measured = benchmark.evaluate(scored.table, answers)
    return measured, RunResult(
        submission_id=submission.submission_id,
        benchmark=benchmark.name,
        revision=benchmark.card.revision,
        protocol=benchmark.card.protocol,
        contract=scored.contract,
        rows=tuple(row.to_json() for row in measured.rows),
        resampling_seed=plan.seed,
        n_resamples=plan.n_resamples,
        isolation=scored.isolation,
        versions=versions("pillow"),  # Scorers are given what it decodes.
        sources=dict(answers.sources),
        cost=scored.cost,
        findings=scored.findings,
        repaired={metric: len(pairs) for metric, pairs in scored.table.repaired.items()},
        trust=scored.trust,
        outputs=dict(scored.outputs),
        judges=dict(scored.judges),
        judged_at=judged_at,
    )


def _of_its_own(trust: TrustReport, benchmark: Benchmark) -> TrustReport:
    """The checks without their examples, where these are pairs of another benchmark."""
    if trust.benchmark == benchmark.name:
        return trust
    checks = (check.model_copy(update={"example": None}) for check in trust.checks)
    return trust.model_copy(update={"checks": tuple(checks)})


@dataclass(frozen=True)
class PublishedImages:
    """What of a model's images is published beside their scores."""

    table: bytes  # see `leaderboard.models.pictures`
    pictures: tuple[Path, ...]  # files of pictures on this machine, in their order


@dataclass(frozen=True)
class JudgedGenerations(Judged):
    """The images of one model with their scores, ready to be published."""

    shown: PublishedImages | None = None  # none where it was published before: images never change

    def files(self) -> ResultFiles:
        """The files of the run; models are compared by the scores themselves, without draws."""
        result = self.published.result
        name, prompt_set = result.submission_id, result.benchmark
        public: dict[str, bytes | Path] = {
            f"results/{name}/{prompt_set}.json": result.model_dump_json(indent=1).encode(),
            scores_path(name, prompt_set): write_stored(
                self.table, submission_id=name, benchmark=prompt_set, revision=result.revision
            ),
        }
        if self.shown is not None:
            public[images_path(name, prompt_set)] = self.shown.table
            for number, path in enumerate(self.shown.pictures):
                public[pictures_path(name, prompt_set, number)] = path
        return ResultFiles(public, {})


def judge_generations(
    submission: Submission,
    scored: Scored,
    benchmark: Benchmark,
    data: Path | None,
    judged_at: datetime,
) -> JudgedGenerations:
    """Mean scores of one model by every metric that scored it; what is shown is added later."""
    measured, result = _measured(submission, scored, benchmark, data, judged_at)
    rows = tuple(replace(row, metric=submission.name) for row in measured.rows)
    result = result.model_copy(update={"rows": tuple(row.to_json() for row in rows)})
    return JudgedGenerations(
        Published(submission, result), Measured(rows, measured.resamples), scored.table, True
    )


def with_pictures(
    judged: JudgedGenerations, fetch: Callable[[Submission, Path], None], place: Path
) -> JudgedGenerations:
    """The same with what is shown of the images."""
    submission = judged.published.submission
    upload = place.with_suffix(".zip")
    upload.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    upload.unlink(missing_ok=True)
    try:
        fetch(submission, upload)
        with opened(upload) as archive:
            table = image_table(map(_line, archive.rows))
            pictures = write_pictures(_images(archive), place)
    finally:
        upload.unlink(missing_ok=True)
    result = judged.published.result.model_copy(update={"pictures": len(pictures)})
    published = replace(judged.published, result=result)
    return replace(judged, published=published, shown=PublishedImages(table, tuple(pictures)))


def kept_pictures(judged: JudgedGenerations, before: RunResult) -> JudgedGenerations:
    """The same with the pictures that an earlier result has."""
    result = judged.published.result.model_copy(update={"pictures": before.pictures})
    return replace(judged, published=replace(judged.published, result=result))


def _images(archive: GenerationsArchive) -> Iterator[Image]:
    for row in archive.images:
        yield row.prompt_id, row.seed, lambda row=row: archive.read(row)  # type: ignore[misc]


def _line(row: ImageRow) -> dict[str, object]:
    return {
        "prompt_id": row.prompt_id,
        "seed": row.seed,
        "sha256": row.sha256,
        "width": row.width,
        "height": row.height,
        "problem": row.problem,
    }


class PublishedHashes:
    """Hashes of the scores behind published results.

    The snapshot says them of most runs, so that a publication reads no more files the more there
    are. The others are of results whose answers are private, or that are older than that: each is
    read once.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: dict[tuple[str, str, str], frozenset[str]] = {}

    def on(
        self, like: RunResult, origins: Mapping[str, Origin]
    ) -> Callable[[Submission], frozenset[str]]:
        """From a published submission to the hashes of its scores on the benchmark of a run."""

        def hashes(other: Submission) -> frozenset[str]:
            name = other.submission_id
            if name not in origins:
                return self._equal_metrics(other, like)
            run = origins[name].runs.get(like.benchmark)
            if run is None or run.revision != like.revision:
                return frozenset()
            key = name, like.benchmark, run.sha256
            if not run.scores and key not in self._read:
                self._read[key] = self._equal_metrics(other, like)
            return frozenset(run.scores) or self._read[key]

        return hashes

    def _equal_metrics(self, other: Submission, like: RunResult) -> frozenset[str]:
        """The same from the files of a run; none where they cannot be read."""
        try:
            return frozenset(_published(self._store, other, like))
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            # It is another's run that is damaged, and a flag that is missing: no reason to fail.
            log.warning("Scores of %s are not compared: %s", other.submission_id, error)
            return frozenset()


def same_scores(
    submission: Submission,
    hashes: Mapping[str, str],
    statuses: Iterable[Status],
    published: Callable[[Submission], frozenset[str]],
) -> Iterator[tuple[str, str]]:
    """Metric, and id of a submission by others that published its scores on this benchmark."""
    if owner_of(submission) == ASSAY.key:
        return
    for status in statuses:
        other = status.submission
        if status.on_boards and owner_of(other) != owner_of(submission):
            theirs = published(other)
            yield from ((m, other.submission_id) for m, own in hashes.items() if own in theirs)


def same_among(
    submission: Submission,
    result: RunResult,
    hashes: Mapping[str, str],
    earlier: Iterable[tuple[Submission, RunResult, Mapping[str, str]]],
) -> Iterator[tuple[str, str]]:
    """The same of submissions that are published in the same commit."""
    if owner_of(submission) == ASSAY.key:
        return
    for other, theirs, found in earlier:
        if (
            not other.private
            and owner_of(other) != owner_of(submission)
            and (theirs.benchmark, theirs.revision) == (result.benchmark, result.revision)
        ):
            known = set(found.values())
            yield from ((m, other.submission_id) for m, own in hashes.items() if own in known)


def _published(store: Store, other: Submission, like: RunResult) -> Iterator[str]:
    """Hashes of the scores that another submission published on the benchmark of a run."""
    stem = f"results/{other.submission_id}/{like.benchmark}"
    try:
        theirs = RunResult.model_validate_json(store.public.read(f"{stem}.json"))
    except NotFoundError:
        return
    if theirs.revision != like.revision:
        return
    yield from theirs.scores_sha256.values() or _recomputed(store, f"{stem}.scores.parquet")


def _recomputed(store: Store, path: str) -> Iterator[str]:
    """Hashes that no result names: it is older than they are, or its answers are private."""
    for repository in (store.public, store.private):
        try:
            scores = read_overall(repository.read(path))
        except NotFoundError:
            continue
        for metric in scores.columns:
            yield scores_sha256(scores[metric])


@dataclass(frozen=True)
class JudgedRun:
    """A finished submission with all its measures, ready to be published."""

    finished: Finished  # what was judged
    runs: Sequence[Judged]  # its runs, one for each benchmark
    agrees: str  # what is to be said of its author's own receipt

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
    """Judges finished runs and puts them where they belong."""

    at: Setting
    publisher: Publisher

    @cached_property
    def published(self) -> PublishedHashes:
        """Of the scores that are on the boards."""
        return PublishedHashes(self.at.store)

    @cached_property
    def case_files(self) -> CaseFiles:
        """What people said of the benchmarks that are known here, as files of the store."""
        return CaseFiles(self.at.registry, self.at.data)

    def judged(self, finished: Finished) -> JudgedRun:
        """Compute every measure of a finished submission."""
        task, now = finished.task, self.at.now()
        runs = [self._judged(task.submission, one, now) for one in finished.scored]
        return JudgedRun(finished, runs, self._agreement(task.submission, finished.scored))

    def _judged(self, submission: Submission, scored: Scored, now: datetime) -> Judged:
        benchmark = self.at.registry[scored.benchmark]
        if submission.kind is not Kind.GENERATIONS:
            return judge(submission, scored, benchmark, self.at.data, now)
        made = judge_generations(submission, scored, benchmark, self.at.data, now)
        before = read_result(self.at.store, submission, scored.benchmark)
        if before is not None:
            return kept_pictures(made, before)
        # Beside its finished shards, with which it is removed.
        place = self.at.scratch / "shards" / submission.submission_id / "pictures"
        return with_pictures(made, self.at.ledger.fetch_upload, place)

    def publish(self, judged: Sequence[JudgedRun]) -> frozenset[str]:
        """Show finished submissions, all in one public commit: to all, or to their author alone.

        What is private is written first, since the public commit is what makes it count.
        """
        now = self.at.now()
        flagged = self._flagged(judged)
        self._keep_private(flagged)
        published: set[str] = set()

        def batch() -> Batch:
            mine = [one for one in flagged if self._is_mine(one)]
            published.clear()
            published.update(one.finished.submission_id for one in mine)
            if not mine:
                raise TransientError("lost_race", "All that was to be published was moved.")
            return self._batch(mine, now)

        names = " ".join(one.finished.submission_id for one in flagged)
        states = dict.fromkeys(e.state for one in flagged for e in self._events(one, now))
        try:
            self.at.ledger.write(batch, f"{'+'.join(states)} {names}")
        except TransientError as error:
            if error.code != "lost_race":
                raise
            return frozenset()
        return frozenset(published)

    def discard(self, status: Status) -> None:
        """Remove what was kept of a run whose submission was taken back meanwhile."""
        name = status.submission.submission_id
        tidy(self.at.store, name)
        if status.scored_at is not None:
            return  # What was published before stays in the history, as it does for all others.

        def change() -> Changes:
            return dict.fromkeys(self.at.store.private.list(f"results/{name}/"))

        transact(self.at.store.private, change, f"nothing is kept of {name}")

    def _batch(self, mine: Sequence[JudgedRun], now: datetime) -> Batch:
        shown = [one for one in mine if not one.submission.private]

        def files(after: Sequence[Status]) -> Changes:
            if not shown:
                return {}
            runs = [run.published for one in shown for run in one.runs]
            changes: dict[str, bytes | Path | None] = {}
            changes |= self.publisher.snapshot_files(now, after, runs)
            judged = {run.result.benchmark for run in runs}
            changes |= self.case_files.missing(self.at.store.public, judged)
            for one in shown:
                changes |= self._displaced(one).public
                changes |= one.files.public
            return changes

        return Batch(
            events={one.finished.submission_id: self._events(one, now) for one in mine},
            further=one_after_another(
                [superseding(one.finished.submission_id, now, self.at.name) for one in shown]
            ),
            files=files,
        )

    def _is_mine(self, one: JudgedRun) -> bool:
        return self.at.holds(self.at.ledger.whole_status(one.finished.submission_id))

    def _displaced(self, one: JudgedRun) -> Displaced:
        """What becomes of earlier results; nothing is looked for where there were none."""
        first = one.finished.task.status.scored_at is None
        # What metrics gave for images stays in the new result, beside what further ones give.
        if first or one.submission.kind is Kind.GENERATIONS:
            return Displaced({}, {})
        return displaced(self.at.store, one.submission, one.results)

    def _keep_private(self, judged: Sequence[JudgedRun]) -> None:
        kept = {one.finished.submission_id: _kept(one) for one in judged}
        kept = {name: files for name, files in kept.items() if files}
        if not kept:
            return

        def change() -> Changes:
            changes: dict[str, bytes | Path | None] = {}
            for one in judged:
                # What another worker has finished meanwhile is not written over.
                if one.finished.submission_id in kept and self._is_mine(one):
                    changes |= self._displaced(one).private
                    changes |= kept[one.finished.submission_id]
            return changes

        transact(self.at.store.private, change, f"results of {' '.join(kept)}")

    def _flagged(self, judged: Sequence[JudgedRun]) -> list[JudgedRun]:
        """The same with what their scores are equal to: on the boards, or among themselves."""
        statuses, origins = self.at.ledger.statuses(), self.publisher.origins()
        flagged: list[JudgedRun] = []
        for one in judged:
            runs: list[Judged] = []
            for run in one.runs:
                result = run.published.result
                hashes = _hashes(one.submission, run)
                known = self.published.on(result, origins)
                earlier = [
                    (e.submission, r.published.result, _hashes(e.submission, r))
                    for e in flagged
                    for r in e.runs
                ]
                found: dict[str, dict[str, None]] = {}
                for metric, name in (
                    *same_scores(one.submission, hashes, statuses, known),
                    *same_among(one.submission, result, hashes, earlier),
                ):
                    found.setdefault(metric, {})[name] = None
                result = result.with_same_scores({m: tuple(names) for m, names in found.items()})
                runs.append(replace(run, published=replace(run.published, result=result)))
            flagged.append(replace(one, runs=runs))
        return flagged

    def _events(self, one: JudgedRun, now: datetime) -> list[Event]:
        task = one.finished.task
        shown = State.HELD if one.submission.private else State.PUBLISHED
        last = Event(at=now, state=shown, by=self.at.name, reason=one.agrees)
        if task.scored_before:
            return [last]
        return [
            *begun_events(one.finished, self.at.name),
            Event(at=one.finished.at, state=State.SCORED, by=self.at.name, log=one.finished.output),
            Event(at=now, state=State.JUDGING, by=self.at.name),
            last,
        ]

    def _agreement(self, submission: Submission, scored: Sequence[Scored]) -> str:
        with_images = all(
            self.at.registry[one.benchmark].has_questions(self.at.data) for one in scored
        )
        if submission.receipt is None or not with_images:
            return ""
        tables = {one.benchmark: one.table for one in scored}
        return agreement(submission.receipt, tables, self.at.registry, self.at.data)


def one_after_another(parts: Sequence[Further]) -> Further:
    """Several consequences in one commit, each in the state that those before it leave."""

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
    return one.files.private_copies if one.submission.private else one.files.private


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

    def send_due(self) -> None:
        """Send what is due. A store that fails is tried again later."""
        try:
            if self._is_due():
                self.send()
        except TransientError as error:
            log.warning("Results wait in the outbox: %s", error)

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
