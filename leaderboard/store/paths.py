"""Paths that a store takes: the same rule for every implementation.

A path is refused before anything is written, because a commit that was decided must be possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from benchmarks.errors import PlatformError

CONTROL = ".commits"  # Folder of a store's own files; no path may lie in it

_PART_BYTES = 200
_PATH_BYTES = 1000


def check_path(path: str) -> str:
    """The path itself, if it is a plain relative one that every medium can keep."""
    parts = path.split("/")
    if not all(_plain(part) for part in parts) or len(path.encode()) > _PATH_BYTES:
        raise _bad(path)
    if parts[0].casefold() == CONTROL:  # Some file systems do not tell letter cases apart.
        raise PlatformError("bad_path", f"{path!r} is not a path inside the store: reserved.")
    return path


def check_prefix(prefix: str) -> str:
    """The prefix itself, if a plain relative path can begin with it."""
    *folders, beginning = prefix.split("/")
    if not all(_plain(part) for part in folders) or not _nameable(beginning) or beginning == "..":
        raise _bad(prefix)
    return prefix


def check_clashes(
    changes: Mapping[str, bytes | Path | None],
    is_file: Callable[[str], bool],
    below: Callable[[str], Iterable[str]],
) -> None:
    """Refuse changes after which one path would be a file and a folder."""
    written = {path for path, content in changes.items() if content is not None}
    deleted = changes.keys() - written
    for path in written:
        for folder in folders_of(path):
            if folder in written or (folder not in deleted and is_file(folder)):
                raise _clash(folder, path)
        for file in below(path):
            if file not in deleted:
                raise _clash(path, file)


def entangled(some: Iterable[str], others: Iterable[str]) -> bool:
    """Whether a path of one lies in what, as a path of the other, is a file."""
    first, second = set(some), set(others)
    return any(
        folder in files
        for files, paths in ((first, second), (second, first))
        for path in paths
        for folder in folders_of(path)
    )


def folders_of(path: str) -> Iterable[str]:
    """`a` and `a/b` for `a/b/c`."""
    parts = path.split("/")
    return ("/".join(parts[:end]) for end in range(1, len(parts)))


def _plain(part: str) -> bool:
    return part not in {"", ".", ".."} and _nameable(part)


def _nameable(part: str) -> bool:
    """Whether a file system can keep it as a name, or as the beginning of one."""
    if "\\" in part or "\0" in part:
        return False
    try:
        return len(part.encode()) <= _PART_BYTES
    except UnicodeEncodeError:
        return False


def _bad(path: str) -> PlatformError:
    return PlatformError("bad_path", f"{path!r} is not a path inside the store.")


def _clash(file: str, inside: str) -> PlatformError:
    return PlatformError(
        "path_clash", f"{file!r} cannot be a file and, with {inside!r} in it, a folder."
    )
