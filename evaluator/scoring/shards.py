"""Finished parts of a run on disk, so that a run that was cut off goes on where it was."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.errors import TransientError
from benchmarks.parquet import parquet_table
from evaluator.scoring.asking import Finding, Work
from evaluator.scoring.column import AnswerRow, ElementScore, Part, merged_parts
from evaluator.scoring.plan import PLAN_VERSION

_META = b"assay"
_SCHEMA = pa.schema(
    [
        ("pair_id", pa.string()),
        ("element_id", pa.string()),
        ("score", pa.float64()),
        ("question_id", pa.string()),
        ("question", pa.string()),
        ("expected", pa.string()),
        ("raw", pa.string()),
        ("valid", pa.bool_()),
    ]
)
_NO_ANSWER = (None, None, None, None, None)
_PLAIN = ("environment", "asks_elements", "images", "peak_memory_bytes")
"""Fields of a part that JSON holds as they are; so it does what the part cost."""
_WORK = tuple(field.name for field in fields(Work))


class FormatError(ValueError):
    """The bytes are not a part."""


def encoded(part: Part, fingerprint: str) -> bytes:
    """A part of the run with this fingerprint."""
    meta = {
        "fingerprint": fingerprint,
        "findings": [asdict(finding) for finding in part.findings],
        **{name: getattr(part, name) for name in _PLAIN},
        **asdict(part.work),
    }
    columns = list(zip(*_rows(part), strict=True)) or [()] * len(_SCHEMA.names)
    arrays = dict(zip(_SCHEMA.names, columns, strict=True))
    schema = _SCHEMA.with_metadata({_META: json.dumps(meta).encode()})
    buffer = io.BytesIO()
    pq.write_table(pa.table(arrays, schema=schema), buffer)
    return buffer.getvalue()


def decoded(data: bytes) -> tuple[Part, str]:
    """A part and the fingerprint of its run."""
    try:
        table = parquet_table(data)
        meta = json.loads((table.schema.metadata or {})[_META])
        return _part(table, meta), str(meta["fingerprint"])
    except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise FormatError(str(error)) from error


def _rows(part: Part) -> Iterator[tuple[object, ...]]:
    for pair_id, score in part.scores.items():
        yield pair_id, None, score, *_NO_ANSWER
    for one in part.elements:
        yield one.pair_id, one.element_id, one.score, *_NO_ANSWER
    for a in part.answers:
        yield a.pair_id, None, a.value, a.question_id, a.question, a.expected, a.raw, a.valid


def _part(table: Any, meta: dict[str, Any]) -> Part:
    scores: dict[str, float] = {}
    elements, answers = [], []
    columns = (table[name].to_pylist() for name in _SCHEMA.names)
    for pair_id, element_id, score, question_id, *rest in zip(*columns, strict=True):
        if question_id is not None:
            question, expected, raw, valid = rest
            answers.append(AnswerRow(pair_id, question_id, question, expected, raw, score, valid))
        elif element_id is not None:
            elements.append(ElementScore(pair_id, element_id, score))
        else:
            scores[pair_id] = score
    return Part(
        scores=scores,
        elements=tuple(elements),
        answers=tuple(answers),
        findings=tuple(Finding(**finding) for finding in meta["findings"]),
        work=Work(**{name: meta[name] for name in _WORK}),
        **{name: meta[name] for name in _PLAIN},
    )


_LOG = logging.getLogger(__name__)
_SUFFIX = ".parquet"


def run_fingerprint(
    *, submission: str, benchmark: str, revision: str, plan_version: int = PLAN_VERSION
) -> str:
    """What must be equal for a score to be worth keeping."""
    parts = json.dumps([submission, benchmark, revision, plan_version])
    return hashlib.sha256(parts.encode()).hexdigest()


@dataclass(frozen=True)
class ShardFolder:
    """The shards of one run. A file is named by the hash of its bytes, and written whole or not."""

    folder: Path  # made when the first shard is written
    fingerprint: str  # of the run (`run_fingerprint`); a shard of any other is removed

    def write(self, part: Part) -> Path:
        """Keep a part; when this returns, it survives a loss of power."""
        data = encoded(part, self.fingerprint)
        path = self.folder / f"{hashlib.sha256(data).hexdigest()}{_SUFFIX}"
        try:
            _write_whole(path, data)
        except OSError as error:
            raise TransientError(
                "disk_failed",
                f"Finished scores cannot be kept on the worker's disk: {error.strerror or error}.",
                "Make room for the folder `scratch` of the store.",
            ) from error
        return path

    def load(self, pair_ids: Collection[str]) -> Part:
        """All that is kept of these pairs; whatever cannot be trusted is removed and logged."""
        wanted = frozenset(pair_ids)
        scores: dict[str, float] = {}
        kept = []
        for path in sorted(path for path in self.folder.glob("*") if path.is_file()):
            try:
                part = self._read(path)
                _check_pairs(part, wanted, scores)
            except _UntrustedError as error:
                _LOG.warning("Removed shard %s of an earlier start: %s", path.name, error)
                path.unlink(missing_ok=True)
                continue
            scores |= part.scores
            kept.append(part)
        return merged_parts(kept)

    def clear(self) -> None:
        """Keep nothing."""
        for path in self.folder.glob("*"):
            if path.is_file():
                path.unlink(missing_ok=True)

    def _read(self, path: Path) -> Part:
        try:
            data = path.read_bytes()
        except FileNotFoundError as error:
            # A worker that lost its lease may still be at work here.
            raise _UntrustedError("it was renamed or removed meanwhile") from error
        if path.name != f"{hashlib.sha256(data).hexdigest()}{_SUFFIX}":
            raise _UntrustedError("it is damaged or was not finished")
        try:
            part, fingerprint = decoded(data)
        except FormatError as error:
            raise _UntrustedError("it is not a shard") from error
        if fingerprint != self.fingerprint:
            raise _UntrustedError("it belongs to another submission, revision or plan")
        return part


class _UntrustedError(Exception):
    """A file that may not be used."""


def _check_pairs(part: Part, wanted: Collection[str], known: Collection[str]) -> None:
    for pair_id in part.scores:
        if pair_id not in wanted:
            raise _UntrustedError("it holds pairs that nobody asked for")
        if pair_id in known:
            raise _UntrustedError("it repeats pairs of another shard")


def _write_whole(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class Keeper:
    """Collects parts and writes them now and then: one file per batch would be too many."""

    def __init__(self, shards: ShardFolder, every_s: float, clock: Callable[[], float]) -> None:
        self._shards = shards
        self._every_s = every_s
        self._clock = clock
        self._flushed = clock()
        self._waiting: list[Part] = []
        self.written: list[Part] = []

    def add(self, part: Part) -> None:
        """Keep this part, soon."""
        self._waiting.append(part)
        if self._clock() - self._flushed >= self._every_s:
            self.flush()

    def flush(self) -> None:
        """Keep everything now."""
        if self._waiting:
            part = merged_parts(self._waiting)
            self._shards.write(part)
            self.written.append(part)
            self._waiting = []
        self._flushed = self._clock()
