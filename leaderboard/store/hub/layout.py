"""Layout of a store on the Hub: four repositories, because their readers differ."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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

CONTENTS = "contents"
"""Folder, in that of a store on this machine, of what was read of it before."""

_MAY_HOLD: dict[Part, tuple[str, ...]] = {
    Part.SCORES: ("results/",),
    Part.RESULTS: ("results/", "snapshot", "index.html", "boards/", "cases/"),
}


@dataclass(frozen=True, slots=True)
class HubName:
    """A store on the Hub.

    Attributes:
        text: `OWNER/NAME`.
    """

    text: str

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
