"""Finished parts of a run on disk, so that a run that was cut off goes on where it was."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evaluator.scoring.plan import PLAN_VERSION

_LOG = logging.getLogger(__name__)
_META = b"assay"
_SUFFIX = ".parquet"
_SCHEMA = pa.schema(
    [("pair_id", pa.string()), ("element_id", pa.string()), ("score", pa.float64())]
)


@dataclass(frozen=True, slots=True)
class ElementScore:
    """The score of one element of one pair."""

    pair_id: str
    element_id: str
    score: float


@dataclass(frozen=True, slots=True)
class Part:
    """Scores of some pairs, and what they cost.

    Attributes:
        scores: pair_id to score; NaN where the scorer gave none.
        elements: scores of the elements of these pairs.
        images: images that were sent for them.
        seconds: how long the scorer took.
        peak_memory_bytes: the most memory it held until then.
    """

    scores: dict[str, float] = field(default_factory=dict)
    elements: tuple[ElementScore, ...] = ()
    images: int = 0
    seconds: float = 0.0
    peak_memory_bytes: int = 0


def run_fingerprint(
    *, submission: str, benchmark: str, revision: str, plan_version: int = PLAN_VERSION
) -> str:
    """What must be equal for a score to be worth keeping.

    Args:
        submission: content hash of the submission.
        benchmark: its name.
        revision: revision of its data.
        plan_version: version of what a scorer is given for a pair.
    """
    parts = json.dumps([submission, benchmark, revision, plan_version])
    return hashlib.sha256(parts.encode()).hexdigest()


@dataclass(frozen=True)
class ShardFolder:
    """The shards of one run. A file is named by the hash of its bytes, and written whole or not.

    Attributes:
        folder: made when the first shard is written.
        fingerprint: of the run (`run_fingerprint`); a shard of any other is removed.
    """

    folder: Path
    fingerprint: str

    def write(self, part: Part) -> Path:
        """Keep a part; when this returns, it survives a loss of power."""
        data = _encoded(part, self.fingerprint)
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{hashlib.sha256(data).hexdigest()}{_SUFFIX}"
        temporary = path.with_suffix(".tmp")
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(self.folder)
        return path

    def load(self, pair_ids: Collection[str]) -> Part:
        """All that is kept of these pairs; whatever cannot be trusted is removed and logged."""
        wanted = frozenset(pair_ids)
        scores: dict[str, float] = {}
        kept = []
        for path in sorted(self.folder.glob("*")):
            try:
                part = self._read(path)
                _check_pairs(part, wanted, scores)
            except _UntrustedError as error:
                _LOG.warning("Removed shard %s of an earlier start: %s", path.name, error)
                path.unlink()
                continue
            scores |= part.scores
            kept.append(part)
        return joined(kept)

    def _read(self, path: Path) -> Part:
        data = path.read_bytes()
        if path.name != f"{hashlib.sha256(data).hexdigest()}{_SUFFIX}":
            raise _UntrustedError("it is damaged or was not finished")
        try:
            table = pq.read_table(io.BytesIO(data))
            meta = json.loads((table.schema.metadata or {})[_META])
        except (pa.ArrowException, KeyError, ValueError) as error:
            raise _UntrustedError("it is not a shard") from error
        if meta["fingerprint"] != self.fingerprint:
            raise _UntrustedError("it belongs to another submission, revision or plan")
        return _decoded(table, meta)


class _UntrustedError(Exception):
    """A file that may not be used."""


def joined(parts: Iterable[Part]) -> Part:
    """Many parts as one."""
    many = list(parts)
    return Part(
        scores={pair_id: score for part in many for pair_id, score in part.scores.items()},
        elements=tuple(element for part in many for element in part.elements),
        images=sum(part.images for part in many),
        seconds=sum(part.seconds for part in many),
        peak_memory_bytes=max((part.peak_memory_bytes for part in many), default=0),
    )


def _check_pairs(part: Part, wanted: Collection[str], known: Collection[str]) -> None:
    for pair_id in part.scores:
        if pair_id not in wanted:
            raise _UntrustedError("it holds pairs that nobody asked for")
        if pair_id in known:
            raise _UntrustedError("it repeats pairs of another shard")


def _encoded(part: Part, fingerprint: str) -> bytes:
    meta = {
        "fingerprint": fingerprint,
        "images": part.images,
        "seconds": part.seconds,
        "peak_memory_bytes": part.peak_memory_bytes,
    }
    rows = {
        "pair_id": [*part.scores, *(e.pair_id for e in part.elements)],
        "element_id": [*[None] * len(part.scores), *(e.element_id for e in part.elements)],
        "score": [*part.scores.values(), *(e.score for e in part.elements)],
    }
    schema = _SCHEMA.with_metadata({_META: json.dumps(meta).encode()})
    buffer = io.BytesIO()
    pq.write_table(pa.table(rows, schema=schema), buffer)
    return buffer.getvalue()


def _decoded(table: Any, meta: dict[str, Any]) -> Part:
    columns = (table[name].to_pylist() for name in _SCHEMA.names)
    scores: dict[str, float] = {}
    elements = []
    for pair_id, element_id, score in zip(*columns, strict=True):
        if element_id is None:
            scores[pair_id] = score
        else:
            elements.append(ElementScore(pair_id, element_id, score))
    return Part(scores, tuple(elements), meta["images"], meta["seconds"], meta["peak_memory_bytes"])


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
