"""A folder that was not there before, written whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.errors import SubmitterError
from benchmarks.score_columns import check_metric_name


def write_new(folder: Path, files: Mapping[str, bytes], empty: tuple[str, ...] = ()) -> None:
    """Write a folder that was not there before, whole or not at all.

    Args:
        folder: the new folder.
        files: relative path to content.
        empty: folders in it.

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


def name_for(name: str, folder: Path) -> str:
    """The name on the boards of what a folder holds: as given, else that of the folder.

    Raises:
        SubmitterError: see `check_metric_name`.
    """
    try:
        return check_metric_name(name or folder.resolve().name)
    except SubmitterError as error:
        if name:
            raise
        raise SubmitterError(
            error.code,
            f"The folder's name is none for a board: {error.message}",
            f"Give the name with --name. {error.hint}",
        ) from error
