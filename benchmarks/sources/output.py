"""Files and folders that a command writes: never over an input, whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from benchmarks.errors import SubmitterError


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


def write_new(folder: Path, files: Mapping[str, bytes], empty: tuple[str, ...] = ()) -> None:
    """Write a folder that was not there before, whole or not at all."""
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
        for path in (part / name for name in empty):
            path.mkdir(parents=True)
        for name, content in files.items():
            (part / name).parent.mkdir(parents=True, exist_ok=True)
            (part / name).write_bytes(content)
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
