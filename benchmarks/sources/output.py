"""Files and folders that a command writes: never over an input, whole or not at all."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from benchmarks.errors import SubmitterError

DRAFT = ".draft"
"""Ending of a file that is not yet what it is to be."""
LOCK = ".lock"
"""File of a folder that the command has open which writes there."""
_PIECE = 1 << 20


def check_output(out: Path, *, force: bool, inputs: Iterable[Path] = ()) -> None:
    """Refuse a place to write to, before any work is done."""
    if out.is_dir():
        raise SubmitterError("cannot_write", f"{out} is a folder.", "Name a file.")
    if not out.exists():
        return
    if any(given.exists() and given.samefile(out) for given in inputs):
        raise SubmitterError(
            "output_is_input", f"{out} is a file that is read.", "Choose another place."
        )
    if not force:
        raise SubmitterError("file_exists", f"{out} exists.", "Replace it with --force.")


def write_whole(out: Path, write: Callable[[Path], object]) -> None:
    """Write a file aside and put it into its place at the end."""
    aside = out.with_name(f".part-{out.name}")
    try:
        write(aside)
        aside.replace(out)
    except OSError as error:
        raise SubmitterError(
            "cannot_write",
            f"{out} cannot be written: {error.strerror or error}.",
            "Choose another place.",
        ) from error
    finally:
        aside.unlink(missing_ok=True)


def replace_durably(path: Path, content: bytes) -> None:
    """Write a file so that readers and a crash see the old content or the new, never a part."""
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}{DRAFT}")
    try:
        write_durably(draft, content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)  # Still there only where something failed.


def write_durably(path: Path, content: bytes | Path) -> None:
    """Write a file, or copy one piece by piece, and wait until the disk has it."""
    with path.open("wb") as file:
        if isinstance(content, Path):
            with content.open("rb") as source:
                shutil.copyfileobj(source, file, _PIECE)
        else:
            file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the disk knows which files a folder has."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Make a folder and keep every other command out of it; drafts that a kill left there go.

    Raises:
        SubmitterError: `folder_busy`, `cannot_write`.
    """
    lock = FileLock(folder / LOCK, timeout=0)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout as error:
        raise SubmitterError(
            "folder_busy", f"Another command writes to {folder}.", "Wait for it, or stop it."
        ) from error
    except OSError as error:
        raise _unwritable(folder, error) from error
    try:
        for draft in folder.glob(f"*{DRAFT}"):
            draft.unlink()
        yield
    finally:
        lock.release()


def append_lines(out: Path, content: bytes) -> None:
    """Add whole lines to a file, or begin one; they are on disk when this returns."""
    try:
        with out.open("ab") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise SubmitterError(
            "cannot_write", f"{out} cannot be written: {error.strerror or error}."
        ) from error


def write_new(folder: Path, files: Mapping[str, bytes], empty: tuple[str, ...] = ()) -> None:
    """Write a folder that was not there before, whole or not at all."""
    with new_folder(folder) as part:
        for path in (part / name for name in empty):
            path.mkdir(parents=True)
        for name, content in files.items():
            (part / name).parent.mkdir(parents=True, exist_ok=True)
            (part / name).write_bytes(content)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder aside to write into, which becomes one that was not there before, or goes.

    Raises:
        SubmitterError: `folder_exists`, `cannot_write`.
    """
    try:
        there = folder.is_symlink() or folder.exists()
    except OSError as error:  # a name that is too long
        raise _unwritable(folder, error) from error
    if there:
        raise SubmitterError(
            "folder_exists", f"{folder} is there already.", "Name a new folder; none is changed."
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{folder.name[:40]}-", dir=folder.parent))
    except OSError as error:
        raise _unwritable(folder, error) from error
    try:
        yield part
        part.chmod(0o755)
        part.rename(folder)
    except OSError as error:
        raise _unwritable(folder, error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _unwritable(folder: Path, error: OSError) -> SubmitterError:
    return SubmitterError(
        "cannot_write",
        f"{folder} cannot be written: {error.strerror or error}.",
        "Choose another folder.",
    )


def finite(value: Any) -> Any:
    """The same with null for numbers that JSON has not."""
    if isinstance(value, Mapping):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
