"""Badges beside names: what must be known of an entry before relying on its value on a benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from benchmarks.schema import Card
from leaderboard.publication.entries import (
    MEANINGS,
    SAME_CONTENT,
    SAME_SCORES,
    Entry,
    flags_of,
    is_trained_on,
    origin,
)
from leaderboard.ranking.cells import Cell
from leaderboard.submission_service import UNNAMED
from leaderboard.text import count
from leaderboard.views.addresses import submission_address

_BUNDLED = ("not isolated", "our own code")
"""How the layers of a run begin in which code of this project ran without a sandbox."""
_SAME = {SAME_CONTENT: "The very same files as in", SAME_SCORES: "The very same scores as"}
TagKind = Literal["", "trained", "sim", "good", "bad", "info", "warn"]


@dataclass(frozen=True)
class Tag:
    """A short word beside a name."""

    label: str  # the word
    kind: TagKind = ""  # how grave it is
    hint: str = ""  # the whole of it
    href: str = ""  # where it leads; empty where nowhere


def badges_of(entry: Entry, cell: Cell | None, card: Card) -> tuple[Tag, ...]:
    """What must be known of an entry on a benchmark: its origin, isolation, training and flags."""
    found = [*_origin(entry, card)]
    if is_trained_on(entry, card):
        hint = "Its submitter declares this benchmark, or a part of it, as training data."
        found.append(Tag("trained on this benchmark", "trained", hint))
    if cell is not None and cell.n_missing:
        hint = f"{count(cell.n_missing, 'pair')} of this slice got no score."
        found.append(Tag(f"{cell.n_missing:,} missing", "warn", hint))
    for label, others in flags_of([entry], {card.name}).items():
        if not others:
            found.append(Tag(label, "warn", MEANINGS[label].capitalize()))
            continue
        named = next((other for other in others if other != UNNAMED), "")
        leads = submission_address(named) if named else ""
        found.append(Tag(label, "warn", f"{_SAME[label]} {', '.join(others)}", leads))
    return tuple(found)


def _origin(entry: Entry, card: Card) -> tuple[Tag, ...]:
    if where := origin(entry):
        released = entry.released_with
        return (Tag(where, "info", f"Released with: {released}") if released else Tag(where),)
    layers = entry.isolation.get(card.name, ())
    if any(layer.startswith(_BUNDLED) for layer in layers):
        return (Tag("not isolated: bundled code", "", "; ".join(layers)),)
    return () if layers else (Tag("not isolated", "warn"),)
