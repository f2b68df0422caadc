"""Takes in a submission, a folder, zip or tar, by our own hand and never by a naive extractall.

Only regular files leave an archive, a bounded number of bytes at a time, into a fresh folder with
modes of ours. Sizes are counted while inflating, since headers lie.
"""

from __future__ import annotations

import shutil
import tarfile
import tempfile
import uuid
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.errors import SubmitterError
from benchmarks.problems import Problem, one_error
from evaluator.submission.archives.content import Content, files_sha256
from evaluator.submission.archives.entries import Entry, reading
from evaluator.submission.archives.folders import folder_entries
from evaluator.submission.archives.intake import Intake, wrapper_of
from evaluator.submission.archives.limits import ArchiveLimits, mb
from evaluator.submission.archives.names import is_left_behind, shown
from evaluator.submission.archives.tars import GZIP, tar_entries
from evaluator.submission.archives.zips import zip_entries

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
class Looked:
    """What came out of a submission.

    Attributes:
        content: of the files that are taken; not of the whole where there are problems.
        problems: of the files that are refused.
    """

    content: Content
    problems: tuple[Problem, ...]


@contextmanager
def taken_in(
    source: Path, scratch: Path | None = None, limits: ArchiveLimits | None = None
) -> Iterator[Content]:
    """The files of a folder, zip or tar in a fresh folder of ours, removed afterwards.

    Folders around everything, as archives of a folder have one, are taken off.

    Args:
        source: folder or archive.
        scratch: folder to unpack in; the system's own if None.
        limits: how much may come.

    Raises:
        SubmitterError: what is wrong: `file_missing`, `not_an_archive`, `damaged_archive`,
            `crafted_archive`, `bomb`, `too_many_files`, `too_large`, `empty_archive`,
            `unsafe_name`, `not_a_file`, `duplicate_name`, `refused_file`, or `several_problems`
            with all of them.
        TransientError: `no_room`, `disk_failed`.
    """
    with looked_into(source, scratch, limits) as looked:
        if looked.problems:
            raise one_error(looked.problems)
        yield looked.content


@contextmanager
def looked_into(
    source: Path, scratch: Path | None = None, limits: ArchiveLimits | None = None
) -> Iterator[Looked]:
    """Like `taken_in`, but problems of single files are told and those files left out.

    Args:
        source: folder or archive.
        scratch: folder to unpack in; the system's own if None.
        limits: how much may come.

    Raises:
        SubmitterError: what is wrong with the whole.
        TransientError: `no_room`, `disk_failed`.
    """
    bounds = limits or ArchiveLimits()
    with _fresh_folder(scratch) as folder:
        name = shown(source.name)
        intake = Intake(folder, name, bounds)
        intake.take_all(reading(submitted_entries(source, bounds), name))
        content = intake.content()
        inside = content.folder.relative_to(folder).as_posix() + "/"
        problems = tuple(replace(p, file=p.file.removeprefix(inside)) for p in intake.problems())
        yield Looked(content, problems)


def content_hash(folder: Path) -> str:
    """Hash of a module's folder, as `Content.sha256` has it, without a copy of the folder.

    Args:
        folder: of a module of our own: nothing in it is checked.
    """
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

    Args:
        source: folder or archive.
        limits: how much may come.
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
        raise SubmitterError("too_large", f"{shown(source.name)} has {mb(n_bytes)}.", limits.sizes)
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
            f"{shown(source.name)} has other bytes in front of the zip.",
            "Send a plain .zip, not a program that unpacks itself.",
        )
    return tar_entries


def _not_taken(source: Path, form: str) -> SubmitterError:
    return SubmitterError(
        "not_an_archive",
        f"{shown(source.name)} is {form}.",
        f"Send a folder or one of {', '.join(SUFFIXES)}.",
    )
