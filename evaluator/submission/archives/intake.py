"""Writes the entries of a submission into a folder of ours, and notes whatever is wrong.

What is wrong with one file is noted and the file left out, so that its author hears of everything
at once. What is wrong with the whole, a bomb above all, ends the intake.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path, PurePosixPath

from benchmarks.errors import SubmitterError, TransientError
from benchmarks.problems import Problem
from evaluator.submission.archives.content import Content, FileFacts
from evaluator.submission.archives.entries import Entry, reading
from evaluator.submission.archives.kinds import HEAD_BYTES, content_kind, name_kind
from evaluator.submission.archives.limits import ArchiveLimits
from evaluator.submission.archives.names import (
    clash_key,
    is_left_behind,
    name_problem,
    parents,
    shown,
)
from evaluator.submission.archives.zips import too_large


class Intake:
    """Takes the entries of one submission.

    Args:
        folder: a new folder of ours, to write in.
        archive: what the submission came as, for messages.
        limits: how much may come.
    """

    def __init__(self, folder: Path, archive: str, limits: ArchiveLimits) -> None:
        self._folder = folder
        self._archive = archive
        self._limits = limits
        self._facts: dict[str, FileFacts] = {}
        self._taken: dict[str, tuple[str, bool]] = {}
        self._made: set[Path] = set()
        self._problems: list[Problem] = []
        self._untold = self._members = self._entries = self._bytes = 0

    def take_all(self, entries: Iterable[Entry]) -> None:
        """Take every entry.

        Raises:
            SubmitterError: `too_many_files`, `too_large`, `empty_archive`, or what the reader of
                the entries says.
            TransientError: `no_room`.
        """
        for entry in entries:
            self._count_member()
            if not is_left_behind(entry.name):
                self._take(entry)
        if not self._facts and not self._problems:
            raise SubmitterError(
                "empty_archive", f"{self._archive} holds no file.", "Pack the scorer's folder."
            )

    def content(self) -> Content:
        """What was taken; folders around everything are taken off."""
        wrapper = wrapper_of(self._facts)
        n = len(wrapper)
        return Content(self._folder / wrapper, {name[n:]: f for name, f in self._facts.items()})

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with single files, as far as it is told."""
        if not self._untold:
            return tuple(self._problems)
        more = f"{self._untold} more files of {self._archive} are refused for such reasons."
        return (*self._problems, Problem("more_problems", more, "Mend those above first."))

    def _take(self, entry: Entry) -> None:
        if entry.is_folder:
            plain = entry.name.rstrip("/")
            if plain not in ("", ".") and (problem := name_problem(plain, self._limits)):
                self._note(problem)
            elif entry.fault:
                self._note(_no_file(entry))
            return
        self._count_entry()
        problem = (
            name_problem(entry.name, self._limits)
            or (_no_file(entry) if entry.fault else None)
            or name_kind(entry.name)
            or self._clash(entry.name)
        )
        if problem is not None:
            self._note(problem)
            return
        target = self._folder / entry.name
        facts, head = self._written(entry, target)
        problem = content_kind(entry.name, head)
        if problem is None:
            self._facts[entry.name] = facts
        else:
            target.unlink()
            self._note(problem)

    def _note(self, problem: Problem) -> None:
        if len(self._problems) < self._limits.problems:
            self._problems.append(problem)
        else:
            self._untold += 1

    def _clash(self, name: str) -> Problem | None:
        """Whether a file needs a place on some disk that another has; if not, it takes it."""
        places = [(name, False), *((parent, True) for parent in parents(name))]
        for place, is_folder in places:
            other = self._taken.get(clash_key(place))
            if other is not None and not (is_folder and other == (place, True)):
                return Problem(
                    "duplicate_name",
                    f"{self._archive} holds {other[0]!r} and {place!r}, which are one file on "
                    "some disks.",
                    "Give every file and folder a name of its own.",
                    file=shown(name),
                )
        self._taken.update((clash_key(place), (place, is_folder)) for place, is_folder in places)
        return None

    def _written(self, entry: Entry, target: Path) -> tuple[FileFacts, bytes]:
        """Write a file; returns what is known of it, and its beginning."""
        digest = hashlib.sha256()
        n_bytes, head = 0, b""
        self._make_folder(target.parent)
        with _new_file(target) as descriptor:
            for piece in reading(entry.pieces(), self._archive):
                n_bytes += len(piece)
                self._bytes += len(piece)
                if n_bytes > self._limits.file_bytes:
                    raise too_large(repr(entry.name), self._limits)
                if self._bytes > self._limits.total_bytes:
                    raise too_large(self._archive, self._limits)
                if len(head) < HEAD_BYTES:
                    head += piece[: HEAD_BYTES - len(head)]
                digest.update(piece)
                _write(descriptor, piece)
        return FileFacts(n_bytes, digest.hexdigest()), head

    def _make_folder(self, folder: Path) -> None:
        """Make a folder and those around it, with modes of ours, unless it was made before."""
        if folder == self._folder or folder in self._made:
            return
        self._make_folder(folder.parent)
        with _room():
            folder.mkdir()
            folder.chmod(0o755)
        self._made.add(folder)

    def _count_member(self) -> None:
        self._members += 1
        if self._members > self._limits.members:
            raise self._too_many(self._limits.members, "members, with folders and hidden files")

    def _count_entry(self) -> None:
        self._entries += 1
        if self._entries > self._limits.entries:
            raise self._too_many(self._limits.entries, "files")

    def _too_many(self, most: int, what: str) -> SubmitterError:
        return SubmitterError(
            "too_many_files",
            f"{self._archive} holds more than {most} {what}.",
            "Leave out what the scorer does not need.",
        )


def wrapper_of(names: Iterable[str]) -> str:
    """The folders around everything, with their slash; empty where there is none.

    All of them, so that packing what was taken and taking it in again changes nothing.
    """
    ways = [PurePosixPath(name).parent.parts for name in names]
    shared = takewhile(lambda parts: len(set(parts)) == 1, zip(*ways, strict=False))
    return "".join(f"{parts[0]}/" for parts in shared)


def _no_file(entry: Entry) -> Problem:
    name = shown(entry.name)
    return Problem(
        "not_a_file", f"{name!r} {entry.fault}.", "Put regular files only into it.", file=name
    )


@contextmanager
def _new_file(path: Path) -> Iterator[int]:
    """A new file of ours in a folder of ours: nothing that is there is written over."""
    with _room():
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o644)
    try:
        os.fchmod(descriptor, 0o644)
        yield descriptor
    finally:
        os.close(descriptor)


def _write(descriptor: int, piece: bytes) -> None:
    with _room():
        view = memoryview(piece)
        while view:
            view = view[os.write(descriptor, view) :]


@contextmanager
def _room() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TransientError(
            "no_room",
            f"The unpacked files could not be written: {error.strerror}.",
            "Free space in the folder for temporary files, then try again.",
        ) from error
