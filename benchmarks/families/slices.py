"""Slices of a board of a family: splits, and skills within them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.arrays import BoolArray
from benchmarks.families.card import FamilyCard
from benchmarks.families.items import Items

ALL = "all"
"""Split of the rows over all splits."""


@dataclass(frozen=True)
class Slice:
    """Rows of a card's table that a row of the board is about."""

    split: str | None  # None where the card has no splits
    skill: str | None  # None: all skills
    rows: BoolArray  # shape (n,), of `Items.rows`


def slices_of(card: FamilyCard, items: Items) -> tuple[Slice, ...]:
    """Everything, then each split, as the card asks for them; behind each its skills.

    Skills are those of everything where the card pools its splits (`evaluation.pooled`), else of
    each split.
    """
    skills = items.skills() if "skills" in card.evaluation.slices else {}
    found: list[Slice] = []
    for split, rows in _splits(card, items):
        found.append(Slice(split, None, rows))
        if split in (None, ALL) or not card.evaluation.pooled:
            parts = ((skill, rows & members) for skill, members in skills.items())
            found += [Slice(split, skill, members) for skill, members in parts if members.any()]
    return tuple(found)


def _splits(card: FamilyCard, items: Items) -> Iterator[tuple[str | None, BoolArray]]:
    every = np.ones(len(items.rows), bool)
    of_row = items.rows["split"].to_numpy(object)
    names = [name for name in dict.fromkeys(of_row) if name]
    if not names or "split" not in card.evaluation.slices:
        yield None, every
        return
    if card.evaluation.pooled:
        yield ALL, every
    for name in names:
        yield name, np.asarray(of_row == name, bool)
