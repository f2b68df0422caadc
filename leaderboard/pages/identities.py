"""Which entries of several submissions are one metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from leaderboard.cells import Cell
from leaderboard.records import Kind
from leaderboard.snapshot import Entry


class Identity(NamedTuple):
    """What makes entries of several submissions one metric.

    A scores file is for one benchmark, so one metric comes in as many submissions; nobody else's
    submission of the same name is mixed with it.
    """

    submitter: str
    metric: str
    version: str
    kind: Kind

    @classmethod
    def of(cls, entry: Entry) -> Identity:
        """The metric an entry belongs to."""
        return cls(entry.submitter, entry.metric, entry.version, entry.kind)


def latest_entries(entries: Iterable[Entry]) -> dict[Identity, Entry]:
    """The latest published entry of every metric."""
    latest: dict[Identity, Entry] = {}
    for entry in entries:
        who = Identity.of(entry)
        if who not in latest or latest[who].published_at < entry.published_at:
            latest[who] = entry
    return latest


def latest_cells(cells: Iterable[Cell], entries: Mapping[str, Entry]) -> dict[Identity, Cell]:
    """The cells of one slice by metric; of several of one metric the latest published."""
    by_age = sorted(cells, key=lambda cell: entries[cell.entry_id].published_at)
    return {Identity.of(entries[cell.entry_id]): cell for cell in by_age}
