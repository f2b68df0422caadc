"""Scores on their way from a worker that runs code to one that judges: the files they are in."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, Protocol

import pandas as pd
import pyarrow as pa
from pandas.api.types import is_float_dtype
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from benchmarks.errors import PlatformError
from benchmarks.parquet import parquet_frame
from benchmarks.questions import Key
from benchmarks.schema import ScoreTable
from benchmarks.scores import write_scores
from benchmarks.stored_scores import read_stored, write_stored
from evaluator.worker.ending.judging import Scored
from leaderboard.ledger.private_records import scored_folder
from leaderboard.records import Cost, FindingExample, Findings, JudgeRun, Kind, Submission
from leaderboard.trust import Check, TrustReport


class HandedOver(BaseModel):
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
        )


class Readable(Protocol):
    """Where the files of a hand-over lie: the private repository, or a worker's own disk."""

    def read(self, path: str) -> bytes:
        """The content of a file.

        Raises:
            NotFoundError: there is none.
        """


def record_path(submission_id: str, benchmark: str) -> str:
    """Where the record of a run is."""
    return f"{scored_folder(submission_id)}{benchmark}.json"


def scores_path(submission_id: str, benchmark: str) -> str:
    """Where its scores are."""
    return f"{scored_folder(submission_id)}{benchmark}.scores.parquet"


def handover_files(
    submission: Submission, scored: Scored, revision: str, worker: str, output: str
) -> dict[str, bytes]:
    """The two files of one run, by path.

    Args:
        submission: whose run it is.
        scored: its scores.
        revision: of the benchmark's data.
        worker: who made them.
        output: of the scorer, as far as it may be kept.
    """
    name = submission.submission_id
    if submission.kind is Kind.GENERATIONS:
        content = write_stored(
            scored.table, submission_id=name, benchmark=scored.benchmark, revision=revision
        )
    else:
        content = write_scores(scored.table)
    record = HandedOver(
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
        contract=scored.contract,
        judges=dict(scored.judges),
        output=output,
    )
    return {
        record_path(name, scored.benchmark): record.model_dump_json(indent=1).encode(),
        scores_path(name, scored.benchmark): content,
    }


def read_record(private: Readable, submission_id: str, benchmark: str) -> HandedOver:
    """The record of a run.

    Raises:
        NotFoundError: there is none.
        PlatformError: `handover_damaged`.
    """
    path = record_path(submission_id, benchmark)
    try:
        record = HandedOver.model_validate_json(private.read(path))
    except ValidationError as error:
        raise damaged(path, str(error.errors()[0]["msg"])) from error
    if (record.submission_id, record.benchmark) != (submission_id, benchmark):
        raise damaged(path, f"it is of {record.submission_id} on {record.benchmark}")
    return record


def read_table(private: Readable, submission: Submission, record: HandedOver) -> ScoreTable:
    """The scores of a run, under the ids they were made with.

    Raises:
        NotFoundError: there are none.
        PlatformError: `handover_damaged`.
    """
    path = scores_path(record.submission_id, record.benchmark)
    content = private.read(path)
    if hashlib.sha256(content).hexdigest() != record.scores_sha256:
        raise damaged(path, "it is not the file its record names")
    if submission.kind is Kind.GENERATIONS:
        return _of_images(content, path, record.judges)
    try:
        frame = parquet_frame(content)
        metric = submission.metrics[0]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise damaged(path, str(error)) from error
    parts = ["element_id", "element_score"] if "element_id" in frame else []
    if list(frame.columns) != ["pair_id", metric, *parts]:
        raise damaged(path, f"its columns are {ascii(list(frame.columns))[:200]}")
    whole = frame[frame["element_id"].isna()] if parts else frame
    elements = frame[frame["element_id"].notna()] if parts else frame[:0]
    numbers = [metric, *parts[1:]]
    if any(not is_float_dtype(frame[name]) for name in numbers):
        raise damaged(path, "its scores are not all numbers")
    return ScoreTable(
        whole.set_index("pair_id")[[metric]],
        elements={metric: _elements(elements)} if parts else {},
        directions=dict.fromkeys(submission.lower_is_better, -1),
    )


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


def restored(scored: Scored, key: Key) -> Scored:
    """The same run under the benchmark's own ids.

    Raises:
        PlatformError: `key_mismatch`.
    """
    findings, trust = scored.findings, scored.trust
    return Scored(
        scored.benchmark,
        key.restore_table(scored.table),
        scored.isolation,
        scored.cost,
        findings and _named_findings(findings, key),
        _named_trust(trust, key) if trust and trust.benchmark == key.benchmark else trust,
        contract=scored.contract,
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
