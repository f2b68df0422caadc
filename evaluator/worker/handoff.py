"""Files of finished runs: in a spool on the worker's disk, and handed to a worker that judges.

An entry of a finished run is a folder `<id>/` with the files that a judge is handed and `entry.json`,
which says for which request it was made. It is written beside its place, synced and renamed, so it
is there whole or not at all. What becomes of an entry when a worker starts on this disk:

| the submission now | the entry |
|---|---|
| in work, its worker is gone | used by whoever claims it: it is not scored again |
| in work, its worker lives | left: that worker publishes it, or what it makes itself |
| waits, for the same request (handed back, an attempt failed) | used by whoever claims it here |
| waits or is in work, for a later request (a rerun, new data) | dropped: its scores are of before |
| its scores were handed over by another | dropped |
| published, held, failed, rejected, withdrawn, hidden, superseded | dropped: it is settled |
| not known in this store | dropped |
| of another revision of a benchmark, or damaged | dropped, and scored from its shards |

Scores that were uploaded as a file have no entry: they are read again at no cost.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Literal, Protocol

import pandas as pd
import pyarrow as pa
from pandas.api.types import is_float_dtype
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from benchmarks.errors import PlatformError, SubmitterError, TransientError
from benchmarks.parquet import parquet_frame, read_margins, read_stored, write_stored
from benchmarks.questions import Key, key_path
from benchmarks.schema import Benchmark, ScoreTable
from benchmarks.scores import parse_scores, score_rows
from benchmarks.sources.output import replace_durably, sync_folder, write_durably
from evaluator.submission.runs import Scored
from evaluator.worker.tasks import Finished, Setting, Task, begun_events
from leaderboard.ledger.cleanup import tidy
from leaderboard.ledger.ledger import Batch
from leaderboard.ledger.private_records import results_folder, scored_folder
from leaderboard.publication.results import read_result
from leaderboard.records import (
    Cost,
    Event,
    FindingExample,
    Findings,
    JudgeRun,
    Kind,
    OutputReport,
    Status,
    Submission,
)
from leaderboard.states import FINISHED, IN_WORK, TO_JUDGE, State
from leaderboard.store.interface import Changes, NotFoundError, Store, transact
from leaderboard.trust import Check, TrustReport

log = logging.getLogger(__name__)


class ScoreBundle(BaseModel):
    """All a judge needs of a run beside its scores."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    schema_version: Literal[1] = 1
    submission_id: str
    benchmark: str
    revision: str
    """Of the benchmark's data."""
    tag: str
    """Of the exported questions; empty where the scores are under the benchmark's own ids."""
    worker: str
    """Who made the scores."""
    scores_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Of the scores file beside it."""
    isolation: tuple[str, ...]
    cost: Cost | None
    findings: Findings | None
    trust: TrustReport | None
    outputs: dict[str, OutputReport] = Field(default_factory=dict)
    """See `Scored`."""
    contract: int | None = None
    judges: dict[str, JudgeRun] = Field(default_factory=dict)
    """Of generations: see `Scored`."""
    output: str
    """The end of what the scorer printed, as far as it may be kept."""

    def scored(self, table: ScoreTable) -> Scored:
        """The run with its scores."""
        return Scored(
            self.benchmark,
            table,
            self.isolation,
            self.cost,
            self.findings,
            self.trust,
            self.tag,
            self.contract,
            self.judges,
            self.outputs,
        )


class Readable(Protocol):
    """Where the files of a hand-over lie: the private repository, or a worker's own disk."""

    def read(self, path: str) -> bytes:
        """The content of a file."""


def record_path(submission_id: str, benchmark: str) -> str:
    """Where the record of a run is."""
    return f"{scored_folder(submission_id)}{benchmark}.json"


def scores_path(submission_id: str, benchmark: str) -> str:
    """Where its scores are."""
    return f"{scored_folder(submission_id)}{benchmark}.scores.parquet"


def handover_files(
    submission: Submission, scored: Scored, revision: str, worker: str, output: str
) -> dict[str, bytes]:
    """The two files of one run, by path."""
    name = submission.submission_id
    if submission.kind is Kind.GENERATIONS:
        content = write_stored(
            scored.table, submission_id=name, benchmark=scored.benchmark, revision=revision
        )
    else:
        content = _with_margins(scored.table)
    record = ScoreBundle(
        submission_id=name,
        benchmark=scored.benchmark,
        revision=revision,
        tag=scored.tag,
        worker=worker,
        scores_sha256=hashlib.sha256(content).hexdigest(),
        isolation=scored.isolation,
        cost=scored.cost,
        findings=scored.findings,
        trust=scored.trust,
        outputs=dict(scored.outputs),
        contract=scored.contract,
        judges=dict(scored.judges),
        output=output,
    )
    return {
        record_path(name, scored.benchmark): record.model_dump_json(indent=1).encode(),
        scores_path(name, scored.benchmark): content,
    }


def read_record(private: Readable, submission_id: str, benchmark: str) -> ScoreBundle:
    """The record of a run."""
    path = record_path(submission_id, benchmark)
    try:
        record = ScoreBundle.model_validate_json(private.read(path))
    except ValidationError as error:
        raise damaged(path, str(error.errors()[0]["msg"])) from error
    if (record.submission_id, record.benchmark) != (submission_id, benchmark):
        raise damaged(path, f"it is of {record.submission_id} on {record.benchmark}")
    return record


def _with_margins(table: ScoreTable) -> bytes:
    """The rows of a scores file and, as further rows, what was said of each comparison."""
    buffer = BytesIO()
    rows = pd.concat([score_rows(table), *table.margins.values()], ignore_index=True)
    rows.to_parquet(buffer, index=False)
    return buffer.getvalue()


def read_table(private: Readable, submission: Submission, record: ScoreBundle) -> ScoreTable:
    """The scores of a run, under the ids they were made with."""
    path = scores_path(record.submission_id, record.benchmark)
    content = private.read(path)
    if hashlib.sha256(content).hexdigest() != record.scores_sha256:
        raise damaged(path, "it is not the file its record names")
    if submission.kind is Kind.GENERATIONS:
        return _of_images(content, path, record.judges)
    try:
        frame = parquet_frame(content)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise damaged(path, str(error)) from error
    metrics = submission.metrics_on(record.benchmark)
    parts = [
        *(["element_id", "element_score"] if "element_id" in frame else []),
        *(["other_id", "margin"] if submission.method == "compare" else []),
    ]
    if list(frame.columns) != ["pair_id", *metrics, *parts] or (parts and metrics[1:]):
        raise damaged(path, f"its columns are {ascii(list(frame.columns))[:200]}")
    further = frame[parts[::2]].notna().any(axis=1)
    numbers = [*metrics, *parts[1::2]]
    if any(not is_float_dtype(frame[name]) for name in numbers):
        raise damaged(path, "its scores are not all numbers")
    elements, compared = (
        frame[frame[name].notna()] if name in parts else frame[:0]
        for name in ("element_id", "other_id")
    )
    margins = frame.reindex(columns=["pair_id", "other_id", "margin"]).loc[compared.index]
    return ScoreTable(
        frame[~further].set_index("pair_id")[list(metrics)],
        elements={metrics[0]: _elements(elements)} if "element_id" in parts else {},
        directions=dict.fromkeys(_lower_is_better(submission, metrics), -1),
        margins={metrics[0]: margins.reset_index(drop=True)} if "other_id" in parts else {},
    )


def _lower_is_better(submission: Submission, metrics: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in submission.lower_is_better if name in metrics)


def _of_images(content: bytes, path: str, judges: Mapping[str, JudgeRun]) -> ScoreTable:
    try:
        table = read_stored(content)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise damaged(path, str(error)) from error
    if unknown := [metric for metric in table.metrics if metric not in judges]:
        raise damaged(path, f"nothing is said of the run of {ascii(unknown)[:200]}")
    lower = (name for name, run in judges.items() if run.lower_is_better)
    return replace(table, directions=dict.fromkeys(lower, -1))


def _elements(rows: pd.DataFrame) -> pd.DataFrame:
    named = rows[["pair_id", "element_id", "element_score"]].reset_index(drop=True)
    return named.rename(columns={"element_score": "score"})


DISK_FAILED = "disk_failed"
_ENTRY = "entry.json"
_DRAFT = ".draft-"


class Entry(BaseModel):
    """What is known of a finished run beside its scores."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    schema_version: Literal[1] = 1
    submission_id: str
    benchmarks: tuple[str, ...]
    worker: str
    """Who finished it."""
    asked_at: AwareDatetime
    """When the run was asked for; a later request is another run."""
    begun_at: AwareDatetime | None
    at: AwareDatetime
    """When it was finished."""
    handed_over: bool
    """Whether the scores are from the store, where another worker left them to a judge."""
    output: str
    judged: bool = False
    """Whether its judging ended well once: until then, it may be what its workers die of."""

    def of_same_run(self, other: Entry) -> bool:
        """Whether both are of one finished run, whoever has it in hand."""
        own = {"worker", "begun_at", "judged"}
        return self.model_dump(exclude=own) == other.model_dump(exclude=own)


def still_wanted(entry: Entry, status: Status | None, asked_at: object) -> bool:
    """Whether an entry may still be used, by whoever holds or claims its submission."""
    if status is None or not (status.state in IN_WORK or status.unfinished):
        return False
    if asked_at != entry.asked_at:
        return False
    return entry.handed_over or not status.to_judge


@dataclass(frozen=True)
class RunSpool:
    """Finished runs on a disk."""

    folder: Path  # where; may be shared by workers of one machine
    worker: str  # who writes here

    def put(self, finished: Finished, revisions: Sequence[str]) -> None:
        """Keep a finished run; when this returns, it survives a loss of power."""
        if finished.task.submission.kind is Kind.SCORES:
            return
        entry, known = _entry_of(finished, self.worker), self.entry(finished.submission_id)
        if known is not None and known.of_same_run(entry):
            return  # It was taken from there.
        files = {_ENTRY: _bytes_of(entry)}
        for one, revision in zip(finished.scored, revisions, strict=True):
            made = handover_files(
                finished.task.submission, one, revision, self.worker, finished.output
            )
            files |= {path.rpartition("/")[2]: content for path, content in made.items()}
        with _writing():
            self._write(finished.submission_id, files)

    def judged(self, submission_id: str) -> None:
        """Note that it was judged; harmless where there is no entry.

        What cannot be noted is merely given fewer attempts.
        """
        entry = self.entry(submission_id)
        if entry is None or entry.judged:
            return
        after = entry.model_copy(update={"judged": True})
        try:
            replace_durably(self.folder / submission_id / _ENTRY, _bytes_of(after))
        except OSError as error:
            log.warning("Not noted as judged: %s: %s", submission_id, error)

    def ids(self) -> tuple[str, ...]:
        """Of all entries, oldest name first."""
        with suppress(FileNotFoundError):
            return tuple(sorted(p.name for p in self.folder.iterdir() if p.name[0] != "."))
        return ()

    def entry(self, submission_id: str) -> Entry | None:
        """An entry; None: there is none, or none that can be read."""
        try:
            content = (self.folder / submission_id / _ENTRY).read_bytes()
            found = Entry.model_validate_json(content)
        except FileNotFoundError:
            return None
        except (OSError, ValidationError, json.JSONDecodeError) as error:
            log.warning("The entry %s of the outbox cannot be read: %s", submission_id, error)
            return None
        return found if found.submission_id == submission_id else None

    def take(self, task: Task, revisions: Sequence[str]) -> Finished | None:
        """The run of a task, if it was finished before; what cannot be used is dropped."""
        name = task.submission_id
        entry = self.entry(name)
        if entry is None or not still_wanted(entry, task.status, task.asked_at):
            self.drop(name)
            return None
        try:
            return self._finished(task, entry, revisions)
        except PlatformError as error:
            log.warning("What was finished of %s is not used: %s", name, error)
            self.drop(name)
            return None

    def drop(self, submission_id: str) -> None:
        """Remove an entry; harmless where there is none."""
        place = self.folder / submission_id
        gone = self.folder / f"{_DRAFT}{uuid.uuid4().hex}"
        with suppress(OSError):  # Renamed first, so that no half of it is ever taken for whole.
            place.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)

    def sweep(self, older_than_s: float) -> None:
        """Remove drafts that a crash left."""
        for draft in self.folder.glob(f"{_DRAFT}*"):
            with suppress(OSError):
                if draft.stat().st_mtime < older_than_s:
                    shutil.rmtree(draft, ignore_errors=True)

    def _finished(self, task: Task, entry: Entry, revisions: Sequence[str]) -> Finished:
        files, submission = _Files(self.folder / task.submission_id), task.submission
        if entry.benchmarks != submission.benchmarks:
            raise PlatformError("other_benchmarks", "It was run on other benchmarks.")
        scored: list[Scored] = []
        for name, revision in zip(submission.benchmarks, revisions, strict=True):
            record = read_record(files, task.submission_id, name)
            if record.revision != revision:
                raise PlatformError(
                    "other_revision",
                    f"It is of revision {record.revision} of {name}, not {revision}.",
                )
            table = read_table(files, submission, record)
            scored.append(record.scored(table))
        return Finished(task, scored, entry.output, entry.at)

    def _write(self, submission_id: str, files: dict[str, bytes]) -> None:
        # Scores of submissions that may be private.
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self.folder / f"{_DRAFT}{uuid.uuid4().hex}"
        try:
            draft.mkdir(mode=0o700)
            for name, content in files.items():
                write_durably(draft / name, content)
            sync_folder(draft)
            self.drop(submission_id)
            draft.rename(self.folder / submission_id)
            sync_folder(self.folder)
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)
            raise


@dataclass(frozen=True)
class _Files:
    """The files of an entry, under the paths they have in a hand-over."""

    folder: Path

    def read(self, path: str) -> bytes:
        """See `Readable`."""
        try:
            return (self.folder / path.rpartition("/")[2]).read_bytes()
        except OSError as error:
            raise NotFoundError(path) from error


def _entry_of(finished: Finished, worker: str) -> Entry:
    task = finished.task
    return Entry(
        submission_id=task.submission_id,
        benchmarks=task.submission.benchmarks,
        worker=worker,
        asked_at=task.asked_at,
        begun_at=task.begun_at,
        at=finished.at,
        handed_over=task.scored_before,
        output=finished.output,
    )


def _bytes_of(entry: Entry) -> bytes:
    return entry.model_dump_json(indent=1).encode()


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TransientError(
            DISK_FAILED,
            f"A finished run cannot be kept on the worker's disk: {error.strerror or error}.",
            "Make room for the folder `scratch` of the store.",
        ) from error


def restored(scored: Scored, key: Key) -> Scored:
    """The same run under the benchmark's own ids."""

    def own(findings: Findings | None) -> Findings | None:
        return findings and _named_findings(findings, key)

    def named(trust: TrustReport | None) -> TrustReport | None:
        return _named_trust(trust, key) if trust and trust.benchmark == key.benchmark else trust

    return replace(
        scored,
        table=key.restore_table(scored.table),
        findings=own(scored.findings),
        trust=named(scored.trust),
        tag="",
        outputs={
            name: OutputReport(findings=own(one.findings), trust=named(one.trust))
            for name, one in scored.outputs.items()
        },
    )


def _named_findings(findings: Findings, key: Key) -> Findings:
    def named(example: FindingExample) -> FindingExample:
        return example.model_copy(update={"item_id": key.original(example.item_id)})

    return findings.model_copy(update={"examples": tuple(map(named, findings.examples))})


def _named_trust(trust: TrustReport, key: Key) -> TrustReport:
    def named(check: Check) -> Check:
        if check.example is None:
            return check
        pair = key.original(check.example.pair_id)
        example = check.example.model_copy(update={"pair_id": pair})
        return check.model_copy(update={"example": example})

    return trust.model_copy(update={"checks": tuple(map(named, trust.checks))})


def damaged(path: str, what: str) -> PlatformError:
    """The error of a file that cannot be judged."""
    return PlatformError(
        "handover_damaged",
        f"The scores in {path} cannot be judged: {what}.",
        "Have the submission run again: python -m evaluator rerun",
    )


def cached_scores(
    store: Store, submission: Submission, benchmark: Benchmark, data: Path | None
) -> Scored:
    """The scores behind a submission's latest result on a benchmark, and how they came about."""
    result = read_result(store, submission, benchmark.name)
    if result is None:
        raise _scores_missing(submission, benchmark)
    content, answers = _content(store, submission, benchmark, "scores"), benchmark.answers(data)
    try:
        table = parse_scores(
            content,
            f"{benchmark.name}.scores.parquet",
            benchmark,
            answers,
            metric=submission.metrics[0],
            lower_is_better=_lower_is_better(submission, submission.metrics_on(benchmark.name)),
        )
        margins = stored_margins(store, submission, benchmark)
    except (SubmitterError, pa.ArrowException, ValueError) as error:
        why = error.message if isinstance(error, SubmitterError) else f"{error}"
        raise PlatformError(
            "scores_damaged",
            f"The scores of {submission.submission_id} on {benchmark.name} cannot be judged "
            f"again: {why}",
            "Have the submission run again: python -m evaluator rerun",
        ) from error
    return Scored(
        benchmark.name,
        replace(table, margins=margins),
        result.isolation,
        result.cost,
        result.findings,
        result.trust,
        contract=result.contract,
        outputs=result.outputs,
    )


def stored_margins(
    store: Store, submission: Submission, benchmark: Benchmark
) -> dict[str, pd.DataFrame]:
    """Margins of a metric that compares, beside its latest scores; none of any other."""
    if submission.method != "compare":
        return {}
    return read_margins(_content(store, submission, benchmark, "margins"))


def _content(store: Store, submission: Submission, benchmark: Benchmark, what: str) -> bytes:
    name, file = submission.submission_id, f"{benchmark.name}.{what}.parquet"
    places = (
        [(store.private, f"{results_folder(name)}{file}")]
        if submission.private
        else [(store.public, f"results/{name}/{file}"), (store.private, f"results/{name}/{file}")]
    )
    for repository, path in places:
        try:
            return repository.read(path)
        except NotFoundError:
            continue
    raise _scores_missing(submission, benchmark)


def _scores_missing(submission: Submission, benchmark: Benchmark) -> PlatformError:
    return PlatformError(
        "scores_missing",
        f"The scores of {submission.submission_id} on {benchmark.name} are not in the store.",
        "Have the submission run again: python -m evaluator rerun",
    )


WAITING_FOR_A_JUDGE = "Waiting for a judge."


@dataclass(frozen=True)
class Handoff:
    """Both sides of the hand-over of one worker."""

    at: Setting

    def give(self, finished: Sequence[Finished]) -> frozenset[str]:
        """Keep scores privately, then say in public that they wait for a judge: a commit each."""
        files = {one.submission_id: self._files(one) for one in finished}
        names = " ".join(files)

        def change() -> Changes:
            # What another worker has handed over meanwhile may be under judgement already.
            mine = [one.submission_id for one in finished if self._is_mine(one)]
            changes: dict[str, bytes | Path | None] = {}
            for name in mine:
                changes |= dict.fromkeys(self.at.store.private.list(scored_folder(name)))
                changes |= files[name]
            return changes

        given: set[str] = set()

        def batch() -> Batch:
            mine = [one for one in finished if self._is_mine(one)]
            given.clear()
            given.update(one.submission_id for one in mine)
            if not mine:
                raise TransientError("lost_race", f"{names} moved on.")
            return Batch(events={one.submission_id: self._events(one) for one in mine})

        transact(self.at.store.private, change, f"scores of {names}")
        try:
            self.at.ledger.write(batch, f"scored {names}")
        except TransientError as error:
            if error.code != "lost_race":
                raise
            return frozenset()
        return frozenset(given)

    def _is_mine(self, one: Finished) -> bool:
        return self.at.holds(self.at.ledger.whole_status(one.submission_id))

    def _files(self, one: Finished) -> dict[str, bytes]:
        files: dict[str, bytes] = {}
        for scored in one.scored:
            revision = self.at.registry[scored.benchmark].card.revision
            files |= handover_files(one.task.submission, scored, revision, self.at.name, one.output)
        return files

    def _events(self, one: Finished) -> list[Event]:
        handed = Event(
            at=self.at.now(),
            state=State.SCORED,
            by=self.at.name,
            code=TO_JUDGE,
            reason=WAITING_FOR_A_JUDGE,
            log=one.output,
        )
        return [*begun_events(one, self.at.name), handed]

    def can_take(self, submission: Submission) -> bool:
        """Whether the scores that wait can be given their own ids here."""
        if self._kept(submission):
            return True
        try:
            records = [
                read_record(self.at.store.private, submission.submission_id, name)
                for name in submission.benchmarks
            ]
        except PlatformError as error:
            log.warning("%s is taken to be failed: %s", submission.submission_id, error)
            return True  # So that it ends, with this as its reason, and does not wait for ever.
        return all(not record.tag or self._has_key(record.benchmark) for record in records)

    def take(self, submission: Submission) -> tuple[list[Scored], str]:
        """The scores that wait, under the benchmarks' own ids, and the scorer's output."""
        if self._kept(submission):
            named = [self.at.registry[name] for name in submission.benchmarks]
            return [
                cached_scores(self.at.store, submission, one, self.at.data) for one in named
            ], ""
        records = [self._record(submission, name) for name in submission.benchmarks]
        author = self._scored_by(submission)
        for record in records:
            if record.worker != author:
                path = record_path(record.submission_id, record.benchmark)
                raise damaged(path, f"{record.worker} made them, but {author} handed them over")
        return [self._scored(submission, record) for record in records], records[-1].output

    def remove(self, submission_id: str) -> None:
        """Remove scores that wait no more."""
        tidy(self.at.store, submission_id)

    def _record(self, submission: Submission, benchmark: str) -> ScoreBundle:
        try:
            return read_record(self.at.store.private, submission.submission_id, benchmark)
        except NotFoundError as error:
            raise _missing(error) from error

    def _scored(self, submission: Submission, record: ScoreBundle) -> Scored:
        benchmark = self.at.registry[record.benchmark]
        path = record_path(record.submission_id, record.benchmark)
        if record.revision != benchmark.card.revision:
            found, here = record.revision, benchmark.card.revision
            raise damaged(path, f"they are of revision {found}, and revision {here} is here")
        try:
            table = read_table(self.at.store.private, submission, record)
        except NotFoundError as error:
            raise _missing(error) from error
        scored = record.scored(table)
        if record.tag:
            scored = restored(scored, self._key(record.benchmark))
        if benchmark.track == "models":
            return scored
        ids = benchmark.answers(self.at.data).pair_ids
        overall = scored.table.overall
        if len(overall) != len(ids) or set(overall.index) != set(ids):
            raise damaged(path, f"they are not of the {len(ids)} pairs of {record.benchmark}")
        return replace(scored, table=replace(scored.table, overall=overall.loc[list(ids)]))

    def _has_key(self, benchmark: str) -> bool:
        return self.at.keys is not None and key_path(self.at.keys, benchmark).is_file()

    def _key(self, benchmark: str) -> Key:
        if self.at.keys is None:
            raise PlatformError(
                "key_unreadable",
                f"The scores on {benchmark} are under opaque ids, and no key is here.",
                "Give the folder of the keys with --keys.",
            )
        return Key.read(key_path(self.at.keys, benchmark))

    def _kept(self, submission: Submission) -> bool:
        """Whether nobody hands scores over: those of its last results are judged again."""
        steps = pairwise(self.at.ledger.events(submission.submission_id))
        # A judge may have given them back since.
        asked = [b.state for b, e in steps if e.to_judge and b.state is not State.JUDGING]
        return asked[-1:] != [] and asked[-1] in FINISHED

    def _scored_by(self, submission: Submission) -> str:
        """Who handed the scores over last; a judge may have given them back since."""
        steps = pairwise(self.at.ledger.events(submission.submission_id))
        handed = [e.by for before, e in steps if e.to_judge and before.state is State.SCORING]
        return handed[-1] if handed else ""


def _missing(error: NotFoundError) -> TransientError:
    return TransientError(
        "handover_missing",
        f"Scores that were handed over are not there: {error.message}",
        "Have the submission run again: python -m evaluator rerun",
    )
