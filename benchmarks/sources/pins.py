"""Pins of a first fetch: what every later one takes and reads, by git's and SHA-256 hashes."""

from __future__ import annotations

import hashlib
import threading
import time
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from benchmarks.errors import SubmitterError
from benchmarks.sources.output import replace_durably

if TYPE_CHECKING:
    from hashlib import _Hash


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's content; computed once per process and state of the file."""
    state = path.stat()
    return _sha256(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=1024)
def _sha256(path: Path, size: int, changed: int) -> str:
    del size, changed  # they make the key of another state of the file
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def bundled_bytes(place: Path, sha256: str, name: str) -> bytes:
    """Content of a file that ships with Assay, checked."""
    remedy = "Restore it: it is part of Assay's source code."
    try:
        content = place.read_bytes()
    except OSError as error:
        raise SubmitterError(
            "data_missing", f"{name} cannot be read: {error.strerror}.", remedy
        ) from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise SubmitterError(
            "data_malformed",
            f"{name} has sha256 {digest[:16]}…; it ships with {sha256[:16]}….",
            remedy,
        )
    return content


def git_blob_digest(size: int) -> _Hash:
    """Hash object for a content of so many bytes; fed with it, its hexdigest is the git blob's id."""
    return hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)


NAME = "pins.json"
_SAVE_EVERY_S = 2.0


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Pin(_Strict):
    """Record of a fetched file."""

    size: int
    sha256: str
    source: str
    """Repository and path, or web address."""
    commit: str = ""
    fetched: str
    """When, in UTC, as ISO 8601."""


class Unpacked(_Strict):
    """Record of an archive that was unpacked beside itself."""

    sha256: str
    """Of the archive."""
    files: int
    """How many files it held."""
    top: list[str]
    """What it put into its folder."""


class _Content(_Strict):
    repositories: dict[str, str] = Field(default_factory=dict)
    """Dataset repository to commit."""
    files: dict[str, Pin] = Field(default_factory=dict)
    """By path below the folder of data."""
    unpacked: dict[str, Unpacked] = Field(default_factory=dict)
    """By path of the archive below the folder of data."""


class Pins:
    """The `pins.json` of one folder below the folder of data; safe for several threads."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._lock = threading.Lock()
        self._saved_at = time.monotonic()
        self._changed = False
        self._content = _read(place)

    @classmethod
    def of(cls, data: Path, path: str) -> Pins:
        """The pins that cover a file declared as `path`, e.g. `croc_hum/croc_hum.tar.gz`."""
        return cls(place_of(data, path))

    def commit(self, repo: str) -> str:
        """Commit of a repository that was pinned here; empty where none was."""
        return self._content.repositories.get(repo, "")

    def pin_commit(self, repo: str, commit: str) -> None:
        """Hold a repository to a commit, from now on."""
        with self._lock:
            self._changed |= self._content.repositories.get(repo) != commit
            self._content.repositories[repo] = commit

    def file(self, path: str) -> Pin | None:
        """Record of a file, if any."""
        return self._content.files.get(path)

    def add_file(self, path: str, *, size: int, sha256: str, source: str, commit: str) -> None:
        """Record a fetched file; written out now and then, and by `save`."""
        with self._lock:
            self._content.files[path] = Pin(
                size=size,
                sha256=sha256,
                source=source,
                commit=commit,
                fetched=datetime.now(UTC).isoformat(timespec="seconds"),
            )
            self._changed = True
            if time.monotonic() - self._saved_at > _SAVE_EVERY_S:
                self._write()

    def unpacked(self, path: str) -> Unpacked | None:
        """Record of an archive, if any."""
        return self._content.unpacked.get(path)

    def add_unpacked(self, path: str, entry: Unpacked) -> None:
        """Record that an archive lies unpacked beside itself."""
        with self._lock:
            self._content.unpacked[path] = entry
            self._changed = True
            self._write()

    def save(self) -> None:
        """Write what changed, so that a kill leaves the old file or the new one."""
        with self._lock:
            if self._changed:
                self._write()

    def _write(self) -> None:
        self.place.parent.mkdir(parents=True, exist_ok=True)
        replace_durably(self.place, self._content.model_dump_json(indent=1).encode())
        self._changed, self._saved_at = False, time.monotonic()


def place_of(data: Path, path: str) -> Path:
    """Path of the record that covers a declared path."""
    parts = PurePosixPath(path).parts
    return data.joinpath(*parts[:1], NAME) if len(parts) > 1 else data / NAME


def _read(place: Path) -> _Content:
    try:
        return _Content.model_validate_json(place.read_bytes())
    except FileNotFoundError:
        return _Content()
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise SubmitterError(
            "data_malformed",
            f"{place} is no record of fetched files: {where}: {first['msg']}.",
            "Delete it and fetch again; files that are right are not downloaded twice.",
        ) from error
