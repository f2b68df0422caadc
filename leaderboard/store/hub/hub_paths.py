"""Paths that a repository of the Hub takes: those of every store, less what the Hub itself uses."""

from __future__ import annotations

from benchmarks.errors import PlatformError
from leaderboard.store.paths import check_path

_AT_THE_TOP = frozenset({"readme.md", ".gitattributes", ".gitignore", ".huggingface.yaml"})
_FORBIDDEN = frozenset({".git", ".cache"})
"""Folders the Hub's client refuses to write to."""


def check_hub_path(path: str) -> str:
    """The path itself, if a repository of the Hub can keep it for us.

    Raises:
        PlatformError: `bad_path`.
    """
    check_path(path)
    if path.casefold() in _AT_THE_TOP or any(
        part.casefold() in _FORBIDDEN for part in path.split("/")
    ):
        raise PlatformError("bad_path", f"{path!r} is not a path inside the store: reserved.")
    return path


def is_ours(path: str) -> bool:
    """Whether a file of a repository is part of the store, and not the Hub's or a control file."""
    try:
        check_hub_path(path)
    except PlatformError:
        return False
    return True
