"""Badges of an entry: what a reader must know before trusting a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from benchmarks.schema import Card
from leaderboard.desk import UNNAMED
from leaderboard.publication.entries import Entry
from leaderboard.publication.flags import (
    AS_SUBMITTED,
    MEANINGS,
    RELEASED,
    SAME_CONTENT,
    SAME_SCORES,
    flags_of,
    is_trained_on,
)
from leaderboard.ranking.cells import Cell
from leaderboard.records import Kind
from leaderboard.text import count
from leaderboard.views.addresses import address

_BUNDLED = ("not isolated", "our own code")
_SAME = {SAME_CONTENT: "The very same files as in", SAME_SCORES: "The very same scores as"}


@dataclass(frozen=True)
class Badge:
    """A short word beside a name."""

    label: str  # the word
    kind: Literal["", "trained", "info", "warn"] = ""  # how grave it is
    hint: str = ""  # the whole of it
    href: str = ""  # where it leads; empty where nowhere


def badges_of(entry: Entry, cell: Cell | None, card: Card) -> tuple[Badge, ...]:
    """What must be known of an entry on a benchmark: its origin, isolation, training and flags."""
    found = [*_origin(entry, card)]
    if is_trained_on(entry, card):
        hint = "Its submitter declares this benchmark, or a part of it, as training data."
        found.append(Badge("trained on this benchmark", "trained", hint))
    if cell is not None and cell.n_missing:
        hint = f"{count(cell.n_missing, 'pair')} of this slice got no score."
        found.append(Badge(f"{cell.n_missing:,} missing", "warn", hint))
    for label, others in flags_of([entry], {card.name}).items():
        if not others:
            found.append(Badge(label, "warn", MEANINGS[label].capitalize()))
            continue
        named = next((other for other in others if other != UNNAMED), "")
        leads = address("queue", submission=named) if named else ""
        found.append(Badge(label, "warn", f"{_SAME[label]} {', '.join(others)}", leads))
    return tuple(found)


def _origin(entry: Entry, card: Card) -> tuple[Badge, ...]:
    if entry.released_with:
        return (Badge(RELEASED, "info", f"Released with: {entry.released_with}"),)
    if entry.kind is Kind.SCORES:
        return (Badge(AS_SUBMITTED),)
    layers = entry.isolation.get(card.name, ())
    if any(layer.startswith(_BUNDLED) for layer in layers):
        return (Badge("not isolated: bundled code", "", "; ".join(layers)),)
    return () if layers else (Badge("not isolated", "warn"),)
