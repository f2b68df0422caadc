"""Layout of a store on the Hub: three repositories, because their readers and writers differ."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from benchmarks.errors import PlatformError
from leaderboard.store.interface import check_path


class Part(StrEnum):
    """One of the repositories; its value is the ending of its name."""

    REQUESTS = "requests"
    """Events, the queue and all that is not named below. Its commits decide."""
    RESULTS = "results"
    """Results, scores, the snapshot, its page, the boards, the cases and ratings behind them; it is read at
    the commit that the requests repository pins."""
    SUBMISSIONS = "submissions"
    """What was uploaded; private."""


OLD_SCORES = "scores"
"""Ending of a fourth repository, in which release 0.1.0 kept the Parquet files of `results/`."""

CONTENTS = "contents"  # Folder, in that of a store on this machine, of what was read of it before

_OF_RESULTS = frozenset({"results", "boards", "cases", "ratings", "index.html"})


@dataclass(frozen=True, slots=True)
class HubName:
    """A store on the Hub."""

    text: str  # `OWNER/NAME`

    def of(self, part: Part) -> str:
        """The name of one of its repositories."""
        return f"{self.text}-{part.value}"

    @property
    def old_scores(self) -> str:
        """The name of the repository of scores that a store of release 0.1.0 has."""
        return f"{self.text}-{OLD_SCORES}"


def store_of(repository: str) -> str:
    """The store, `OWNER/NAME`, that a repository belongs to by its name; empty where to none."""
    name, _, ending = repository.rpartition("-")
    return name if ending in {OLD_SCORES, *(part.value for part in Part)} else ""


def part_of(path: str) -> Part:
    """The repository that holds a path of the public side, and all that begins with its folder."""
    top = path.partition("/")[0]
    return Part.RESULTS if top in _OF_RESULTS or top.startswith("snapshot") else Part.REQUESTS


def parts_with(prefix: str) -> tuple[Part, ...]:
    """The public repositories that may hold paths that begin so."""
    return (part_of(prefix),) if "/" in prefix else (Part.REQUESTS, Part.RESULTS)


def was_in_scores(path: str) -> bool:
    """Whether release 0.1.0 kept a path in the repository of scores."""
    return path.startswith("results/") and path.endswith(".parquet")


CARD = "README.md"
COLUMNS = "columns"  # Folder of the files that say which columns the tables have
_AT_THE_TOP = frozenset({"readme.md", ".gitattributes", ".gitignore", ".huggingface.yaml"})
_FORBIDDEN = frozenset({".git", ".cache"})  # Folders the Hub's client refuses to write to


def check_hub_path(path: str) -> str:
    """The path itself, if a repository of the Hub can keep it for us."""
    check_path(path)
    parts = path.casefold().split("/")
    if parts[0] in {*_AT_THE_TOP, COLUMNS} or any(part in _FORBIDDEN for part in parts):
        raise PlatformError("bad_path", f"{path!r} is not a path inside the store: reserved.")
    return path


def is_ours(path: str) -> bool:
    """Whether a file of a repository is part of the store, and not the Hub's or a control file."""
    try:
        check_hub_path(path)
    except PlatformError:
        return False
    return True
