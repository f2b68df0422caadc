"""Takes in a submission, a folder, zip or tar, by our own hand and never by a naive extractall.

Only regular files leave an archive, a bounded number of bytes at a time, into a fresh folder with
modes of ours. Sizes are counted while inflating, since headers lie. What is wrong with one file is
noted and the file left out, so that its author hears of everything at once. What is wrong with the
whole, a bomb above all, ends the intake.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
import uuid
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path, PurePosixPath

from benchmarks.errors import SubmitterError, TransientError
from benchmarks.problems import Problem, one_error
from evaluator.submission.archives.content import Content, FileFacts, files_sha256
from evaluator.submission.archives.entries import (
    ArchiveLimits,
    Entry,
    clash_key,
    is_left_behind,
    mb,
    name_problem,
    parents,
    printable,
    reading,
)
from evaluator.submission.archives.readers import (
    GZIP,
    folder_entries,
    tar_entries,
    too_large,
    zip_entries,
)
from evaluator.submission.archives.refused import HEAD_BYTES, content_kind, name_kind


class Intake:
    """Takes the entries of one submission."""

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
        """Take every entry."""
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
                    file=printable(name),
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
    name = printable(entry.name)
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


SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
_NOT_TAKEN = {
    b"BZh": "compressed with bzip2",
    b"\xfd7zXZ\0": "compressed with xz",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!\x1a\x07": "a RAR archive",
}
"""Forms whose readers take memory by the word of the file."""


@dataclass(frozen=True)
class Inspection:
    """What came out of a submission."""

    content: Content  # of the files that are taken; not of the whole where there are problems
    problems: tuple[Problem, ...]  # of the files that are refused


@contextmanager
def taken_in(
    source: Path, scratch: Path | None = None, limits: ArchiveLimits | None = None
) -> Iterator[Content]:
    """The files of a folder, zip or tar in a fresh folder of ours, removed afterwards.

    Folders around everything, as archives of a folder have one, are taken off.
    """
    with inspected(source, scratch, limits) as looked:
        if looked.problems:
            raise one_error(looked.problems)
        yield looked.content


@contextmanager
def inspected(
    source: Path, scratch: Path | None = None, limits: ArchiveLimits | None = None
) -> Iterator[Inspection]:
    """Like `taken_in`, but problems of single files are told and those files left out."""
    bounds = limits or ArchiveLimits()
    with _fresh_folder(scratch) as folder:
        name = printable(source.name)
        intake = Intake(folder, name, bounds)
        intake.take_all(reading(submitted_entries(source, bounds), name))
        content = intake.content()
        inside = content.folder.relative_to(folder).as_posix() + "/"
        problems = tuple(replace(p, file=p.file.removeprefix(inside)) for p in intake.problems())
        yield Inspection(content, problems)


def content_hash(folder: Path) -> str:
    """Hash of a module's folder, as `Content.sha256` has it, without a copy of the folder."""
    entries = folder_entries(folder, ArchiveLimits())
    names = [e.name for e in entries if not e.is_folder and not is_left_behind(e.name)]
    n = len(wrapper_of(names))
    paths = {name[n:]: folder / name for name in names}
    return files_sha256(paths, {name: path.stat().st_size for name, path in paths.items()})


@contextmanager
def _fresh_folder(scratch: Path | None) -> Iterator[Path]:
    """A folder that others may read, with a name that says nothing: a box can see it."""
    place = scratch / uuid.uuid4().hex if scratch else Path(tempfile.mkdtemp(prefix="assay-"))
    folder = place / "module"
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(place, ignore_errors=True)


def submitted_entries(source: Path, limits: ArchiveLimits) -> Iterator[Entry]:
    """What stands in a folder, zip or tar, one after the other.

    `entries.reading` says in our words what is wrong with it.
    """
    if not source.exists():
        raise SubmitterError("file_missing", f"There is no file {source}.", "Check the path.")
    if source.is_dir():
        yield from folder_entries(source, limits)
        return
    if not source.is_file():
        raise _not_taken(source, "no file and no folder")
    yield from _reader(source, limits)(source, limits)


def _reader(
    source: Path, limits: ArchiveLimits
) -> Callable[[Path, ArchiveLimits], Iterator[Entry]]:
    """What reads an archive, told by its first bytes; its name may say anything."""
    n_bytes = source.stat().st_size
    if n_bytes > limits.archive_bytes:
        raise SubmitterError(
            "too_large", f"{printable(source.name)} has {mb(n_bytes)}.", limits.sizes
        )
    with source.open("rb") as file:
        head = file.read(tarfile.BLOCKSIZE)
    for magic, form in _NOT_TAKEN.items():
        if head.startswith(magic):
            raise _not_taken(source, f"{form}, which is not taken")
    if head.startswith((b"PK\3\4", b"PK\5\6")):
        return zip_entries
    is_tar = head.startswith(GZIP) or head[257:262] == b"ustar"
    if not is_tar and zipfile.is_zipfile(source):
        raise SubmitterError(
            "crafted_archive",
            f"{printable(source.name)} has other bytes in front of the zip.",
            "Send a plain .zip, not a program that unpacks itself.",
        )
    return tar_entries


def _not_taken(source: Path, form: str) -> SubmitterError:
    return SubmitterError(
        "not_an_archive",
        f"{printable(source.name)} is {form}.",
        f"Send a folder or one of {', '.join(SUFFIXES)}.",
    )
