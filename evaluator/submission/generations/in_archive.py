"""Generations in a zip or tar, read as a stream: nothing is unpacked to disk but the table.

It is read twice: for the manifest and the table, then for the images. What archives may do to their
readers is the business of `evaluator.submission.archives`; names of files lead nowhere here.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from benchmarks.errors import SubmitterError
from evaluator.generation.check import Problem
from evaluator.manifest import FILE, MAX_BYTES
from evaluator.submission.archives.archive import submitted_entries
from evaluator.submission.archives.entries import Entry, reading
from evaluator.submission.archives.limits import mb
from evaluator.submission.archives.names import is_left_behind, name_problem, shown
from evaluator.submission.archives.zips import too_large
from evaluator.submission.generations.in_folder import table_lines
from evaluator.submission.generations.limits import TABLE_BYTES, GenerationsLimits
from evaluator.submission.generations.sources import Fault, Found, TableLine, is_stray, stray

_TABLES = ".jsonl"
_MOST_CANDIDATES = 16
_IN_MEMORY = 8 << 20


@dataclass
class _Head:
    """What the first reading finds.

    Attributes:
        manifests: of every folder that has one, by path.
        tables: files that may be the table, by path.
        around: parts of the path that all files share.
        problems: names that are refused.
    """

    manifests: dict[str, bytes] = field(default_factory=dict)
    tables: dict[str, BinaryIO] = field(default_factory=dict)
    around: tuple[str, ...] | None = None
    problems: list[Problem] = field(default_factory=list)

    @property
    def prefix(self) -> str:
        """The folders around everything, which are taken off."""
        return "".join(f"{part}/" for part in self.around or ())

    def went_by(self, name: str) -> None:
        """Note where a file lies."""
        parts = PurePosixPath(name).parts[:-1]
        if self.around is None:
            self.around = parts
            return
        same = 0
        for one, other in zip(self.around, parts, strict=False):
            if one != other:
                break
            same += 1
        self.around = self.around[:same]


class ArchiveSource:
    """A zip or tar of a folder with `assay.toml`, a table and the images.

    Args:
        path: of the archive.
        limits: how much may come.
        stack: closes what is kept of it.
    """

    def __init__(self, path: Path, limits: GenerationsLimits, stack: ExitStack) -> None:
        self._path = path
        self._limits = limits
        self._stack = stack
        self._read_head: _Head | None = None

    @property
    def name(self) -> str:
        """See `Source`."""
        return shown(self._path.name)

    def manifest(self) -> bytes | None:
        """See `Source`."""
        head = self._head()
        return head.manifests.get(f"{head.prefix}{FILE}")

    def table(self, name: str) -> Iterator[TableLine] | str:
        """See `Source`."""
        head = self._head()
        file = head.tables.get(f"{head.prefix}{name}")
        if file is None:
            return f"there is no such file in the archive (its name ends in {_TABLES})"
        file.seek(0)
        return table_lines(file, name)

    def images(self, files: Mapping[str, int]) -> Iterator[Found | Problem]:
        """See `Source`."""
        head, seen, taken = self._head(), set[int](), 0
        yield from head.problems
        for entry in self._entries():
            file = entry.name.removeprefix(head.prefix)
            place = files.get(file)
            if place is None or place in seen:
                if is_stray(file):
                    again = Problem("extra", file, "the archive holds two files of this name")
                    yield stray(file) if place is None else again
            elif place >= 0:
                seen.add(place)
                data = self._content(entry)
                taken += len(data) if isinstance(data, bytes) else 0
                if taken > self._limits.total_bytes:
                    raise too_large(self.name, self._limits)
                yield Found(file, place, lambda found=data: found)  # type: ignore[misc]

    def _head(self) -> _Head:
        if self._read_head is not None:
            return self._read_head
        head = _Head()
        for count, entry in enumerate(self._entries(), start=1):
            if count > self._limits.entries:
                raise SubmitterError(
                    "too_many_files",
                    f"{self.name} holds more than {self._limits.entries} files.",
                    "Send the images of one prompt set, one for each prompt and seed.",
                )
            if problem := name_problem(entry.name, self._limits):
                head.problems.append(Problem("unsafe_name", problem.file, problem.message))
                continue
            head.went_by(entry.name)
            self._keep(entry, head)
        self._read_head = head
        return head

    def _keep(self, entry: Entry, head: _Head) -> None:
        last = PurePosixPath(entry.name).name
        if last != FILE and not last.endswith(_TABLES):
            return
        if len(head.tables) + len(head.manifests) >= _MOST_CANDIDATES:
            return
        if entry.fault:
            raise SubmitterError(
                "unreadable_file",
                f"{shown(entry.name)} in {self.name} cannot be read: it {entry.fault}.",
                "Pack it anew, as a plain file and without a password.",
            )
        if entry.name in head.manifests or entry.name in head.tables:
            raise SubmitterError(
                "file_twice",
                f"{self.name} holds two files {shown(entry.name)}.",
                "Keep the right one.",
            )
        if last == FILE:
            head.manifests[entry.name] = self._beginning(entry, MAX_BYTES + 1)
        else:
            spooled = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 (closed with the source)
            file = self._stack.enter_context(spooled)
            n_bytes = 0
            for piece in reading(entry.pieces(), self.name):
                n_bytes += len(piece)
                if n_bytes > TABLE_BYTES:
                    raise SubmitterError(
                        "too_large",
                        f"{shown(entry.name)} has more than {mb(TABLE_BYTES)}.",
                        "A line of the table needs a prompt id, a seed and a file only.",
                    )
                file.write(piece)
            head.tables[entry.name] = file  # type: ignore[assignment]

    def _beginning(self, entry: Entry, most: int) -> bytes:
        found = b""
        for piece in reading(entry.pieces(), self.name):
            found += piece
            if len(found) >= most:
                break
        return found[:most]

    def _content(self, entry: Entry) -> bytes | Fault:
        if entry.fault:
            return Fault("missing", f"it {entry.fault}")
        pieces: list[bytes] = []
        n_bytes = 0
        for piece in reading(entry.pieces(), self.name):
            pieces.append(piece)
            n_bytes += len(piece)
            if n_bytes > self._limits.file_bytes:
                return Fault("missing", f"it has more than {mb(self._limits.file_bytes)}")
        return b"".join(pieces)

    def _entries(self) -> Iterator[Entry]:
        """Its files, without what tools leave behind."""
        for entry in reading(submitted_entries(self._path, self._limits), self.name):
            if not entry.is_folder and not is_left_behind(entry.name):
                yield entry
