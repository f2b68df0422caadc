"""Identities of metrics: entries of several submissions that are one metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from leaderboard.accounts import ASSAY
from leaderboard.publication.entries import Entry
from leaderboard.ranking.cells import Cell
from leaderboard.records import Kind


def shown_account(key: str) -> str:
    """The account as it is shown; empty for what is older than accounts, and for Assay's own."""
    return "" if key == ASSAY.key else key


def signature_text(entry: Entry) -> str:
    """As plain text: `A group (hub:ada)`; not escaped."""
    key = shown_account(entry.account)
    return f"{entry.submitter} ({key})" if key else entry.submitter


class Identity(NamedTuple):
    """What makes entries of several submissions one metric.

    A scores file is for one benchmark, so one metric comes in as many submissions; nobody else's
    submission of the same name is mixed with it.
    """

    submitter: str
    metric: str
    version: str
    kind: Kind
    account: str = ""
    """As it is shown: a signature alone makes nobody the author of somebody's metric."""

    @classmethod
    def of(cls, entry: Entry) -> Identity:
        """The metric an entry belongs to."""
        account = shown_account(entry.account)
        return cls(entry.submitter, entry.metric, entry.version, entry.kind, account)


def entries_of_each(entries: Iterable[Entry]) -> dict[Identity, tuple[Entry, ...]]:
    """All published entries of every metric."""
    found: dict[Identity, list[Entry]] = {}
    for entry in entries:
        found.setdefault(Identity.of(entry), []).append(entry)
    return {who: tuple(own) for who, own in found.items()}


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
