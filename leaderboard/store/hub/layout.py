"""Layout of a store on the Hub: four repositories, because their readers differ."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from benchmarks.errors import PlatformError
from leaderboard.store.paths import check_path


class Part(StrEnum):
    """One of the repositories; its value is the ending of its name."""

    REQUESTS = "requests"
    """Events, the queue and all that is not named below. Its commits decide."""
    SCORES = "scores"
    """Scores of pairs and what is computed from them, as Parquet."""
    RESULTS = "results"
    """Results, the snapshot, its page, the boards and the cases behind them."""
    SUBMISSIONS = "submissions"
    """What was uploaded; private."""


PAYLOAD = (Part.SCORES, Part.RESULTS)
"""Their files are read at the commits that the requests repository pins."""

CONTENTS = "contents"  # Folder, in that of a store on this machine, of what was read of it before

_MAY_HOLD: dict[Part, tuple[str, ...]] = {
    Part.SCORES: ("results/",),
    Part.RESULTS: ("results/", "snapshot", "index.html", "boards/", "cases/"),
}


@dataclass(frozen=True, slots=True)
class HubName:
    """A store on the Hub."""

    text: str  # `OWNER/NAME`

    def of(self, part: Part) -> str:
        """The name of one of its repositories."""
        return f"{self.text}-{part.value}"


def store_of(repository: str) -> str:
    """The store, `OWNER/NAME`, that a repository belongs to by its name; empty where to none."""
    name, _, ending = repository.rpartition("-")
    return name if ending in {part.value for part in Part} else ""


def part_of(path: str) -> Part:
    """The repository that holds a path of the public side."""
    if path.startswith("results/") and path.endswith(".parquet"):
        return Part.SCORES
    if path.startswith("results/") and path.endswith(".json"):
        return Part.RESULTS
    if path == "index.html" or path.startswith(("snapshot", "boards/", "cases/")):
        return Part.RESULTS
    return Part.REQUESTS


def parts_with(prefix: str) -> tuple[Part, ...]:
    """The repositories that may hold paths that begin so."""
    return (
        Part.REQUESTS,
        *(
            part
            for part in PAYLOAD
            if any(top.startswith(prefix) or prefix.startswith(top) for top in _MAY_HOLD[part])
        ),
    )


_AT_THE_TOP = frozenset({"readme.md", ".gitattributes", ".gitignore", ".huggingface.yaml"})
_FORBIDDEN = frozenset({".git", ".cache"})  # Folders the Hub's client refuses to write to


def check_hub_path(path: str) -> str:
    """The path itself, if a repository of the Hub can keep it for us."""
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
