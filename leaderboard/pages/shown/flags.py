"""Flags beside a name: what a reader should know before taking an entry for a work of its own.

They are never a verdict: two people may send the same baseline in good faith.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from leaderboard.desk import UNNAMED
from leaderboard.pages.shown.markup import badge, text
from leaderboard.publication.flags import (
    AS_SUBMITTED,
    MEANINGS,
    RELEASED,
    SAME_CONTENT,
    SAME_SCORES,
    flags_of,
)
from leaderboard.publication.snapshot import Entry
from leaderboard.records import Kind

_HOW = {SAME_CONTENT: "The very same files as in", SAME_SCORES: "The very same scores as"}


def origin_badge(entry: Entry) -> str:
    """The same as a badge."""
    if entry.released_with:
        return badge(RELEASED, "info", f"Released with: {entry.released_with}")
    return badge(AS_SUBMITTED, "plain") if entry.kind is Kind.SCORES else ""


def flag_badges(found: dict[str, tuple[str, ...]]) -> str:
    """Flags as badges; those about other submissions lead to the first of them."""
    return " ".join(
        same(label, others) if others else badge(label, "warn", MEANINGS[label].capitalize())
        for label, others in found.items()
    )


def same(label: str, others: Sequence[str]) -> str:
    """A flag about other submissions, as a link to the first that may be named.

    Args:
        label: `SAME_CONTENT` or `SAME_SCORES`.
        others: their ids, at least one.
    """
    mark = badge(label, "warn", f"{_HOW[label]} {', '.join(others)}")
    named = next((other for other in others if other != UNNAMED), None)
    if named is None:
        return mark
    return f'<a class="as-flag" href="./submit?id={text(named)}">{mark}</a>'


def flags_legend(
    entries: Iterable[Entry], benchmarks: Collection[str] | None = None
) -> tuple[str, ...]:
    """What the flags of some entries mean, a sentence each; nothing of flags that none has.

    Args:
        entries: those shown.
        benchmarks: as for `flags_of`.
    """
    met = flags_of(entries, benchmarks)
    return tuple(f"<b>{label}:</b> {MEANINGS[label]}" for label in MEANINGS if label in met)
