"""The files of `scorers run`: scores, what belongs to them, and how they came about."""

from __future__ import annotations

import hashlib
import io
import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
import typer

from benchmarks.parquet import parquet_frame
from benchmarks.schema import Benchmark, ScoreTable
from benchmarks.scores import write_scores
from evaluator.scorers.device import versions
from evaluator.scorers.registry import Runtime, ScorerRow
from evaluator.scoring.column import ScoreColumn
from evaluator.scoring.engine import EngineOptions
from evaluator.worker.running.run_records import cost_record, findings_record

_FORMATS = (".parquet", ".csv")


@dataclass(frozen=True)
class Facts:
    """What a run was made of.

    Attributes:
        row: the metric.
        benchmark: what was scored.
        runtime: device, precision, checkpoints.
        fingerprint: what was equal for all scores: code, checkpoints, settings, data.
        seed: of the order of the plan, in hex.
        options: how batches were cut.
        limit: pairs that were asked for at most; None: all.
        actors: that were asked for; None: as many as there was room for.
        began: when this start began.
        seconds: it took, all in all.
    """

    row: ScorerRow
    benchmark: Benchmark
    runtime: Runtime
    fingerprint: str
    seed: str
    options: EngineOptions
    limit: int | None
    actors: int | None
    began: datetime
    seconds: float


def check_out(out: Path) -> None:
    """Refuse now what could not be written after hours.

    Raises:
        typer.BadParameter: another kind of file, or a folder that cannot be made.
    """
    if out.suffix not in _FORMATS:
        raise typer.BadParameter(
            f"{out.name} must end in {' or '.join(_FORMATS)}.", param_hint="--out"
        )
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(str(error), param_hint="--out") from error


def write_files(out: Path, column: ScoreColumn, facts: Facts) -> dict[str, Any]:
    """Write the scores file and its companions; gives what the record holds.

    The scores file holds element scores as further rows, as `benchmarks.scores` reads them.
    """
    table = _table(column, facts.row)
    files = {out: _scores(table, out.suffix)}
    for kind, frame in _companions(column).items():
        files[out.with_name(f"{out.stem}.{kind}.parquet")] = _parquet(frame)
    for path, data in files.items():
        _replace(path, data)
    hashes = {path.name: hashlib.sha256(data).hexdigest() for path, data in files.items()}
    record = _record(column, facts, hashes)
    _replace(
        out.with_name(f"{out.stem}.record.json"), (json.dumps(record, indent=1) + "\n").encode()
    )
    return record


def _table(column: ScoreColumn, row: ScorerRow) -> ScoreTable:
    return ScoreTable(
        column.overall.to_frame(row.name),
        elements={} if column.elements is None else {row.name: column.elements},
        directions={} if row.higher_is_better else {row.name: -1},
    )


def _scores(table: ScoreTable, suffix: str) -> bytes:
    data = write_scores(table)
    if suffix == ".parquet":
        return data
    return parquet_frame(data).to_csv(index=False).encode()


def _companions(column: ScoreColumn) -> Mapping[str, pd.DataFrame]:
    frames = {}
    if column.elements is not None:
        frames["elements"] = column.elements
    if column.answers is not None:
        frames["answers"] = column.answers
    if column.findings:
        frames["findings"] = pd.DataFrame([asdict(finding) for finding in column.findings])
    return frames


def _parquet(frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()


def _record(column: ScoreColumn, facts: Facts, hashes: Mapping[str, str]) -> dict[str, Any]:
    card = facts.benchmark.card
    return {
        "scorer": facts.row.model_dump(mode="json"),
        "benchmark": facts.benchmark.name,
        "revision": card.revision,
        "limit": facts.limit,
        "fingerprint": facts.fingerprint,
        "seed": facts.seed,
        "runtime": asdict(facts.runtime)
        | {
            "folders": {role: str(place) for role, place in facts.runtime.folders.items()},
            "questions": str(facts.runtime.questions or ""),
        },
        "engine": {
            "name": column.environment["engine"],
            "actors": facts.actors,
            **asdict(facts.options),
        },
        "environment": dict(column.environment),
        "versions": {"python": platform.python_version(), **versions(), **_ours(column)},
        "findings": findings_record(column).model_dump(mode="json"),
        "cost": cost_record(column.cost).model_dump(mode="json"),
        "resumed_pairs": column.cost.resumed_pairs,
        "began": facts.began.isoformat(timespec="seconds"),
        "seconds": round(facts.seconds, 3),
        "files": dict(hashes),
    }


def _ours(column: ScoreColumn) -> dict[str, str]:
    names = ["pandas", "pyarrow"] + (["ray"] if column.environment["engine"] == "ray" else [])
    return {name: version(name) for name in names}


def _replace(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_bytes(data)
    temporary.replace(path)
