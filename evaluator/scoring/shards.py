"""Finished parts of a run on disk, so that a run that was cut off goes on where it was."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import TransientError
from evaluator.scoring.parts import Part, joined
from evaluator.scoring.plan import PLAN_VERSION
from evaluator.scoring.shard_format import FormatError, decoded, encoded

_LOG = logging.getLogger(__name__)
_SUFFIX = ".parquet"


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
        """Keep a part; when this returns, it survives a loss of power.

        Raises:
            TransientError: `disk_failed`, it is full, for example; parts kept before stay.
        """
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
        return joined(kept)

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
