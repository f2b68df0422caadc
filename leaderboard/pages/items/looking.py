"""Selection of cases with the metrics' results on it: for the page and for programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.arrays import BoolArray, IntArray
from benchmarks.schema import Card
from leaderboard.pages.items.cases import CaseSet, Standing
from leaderboard.pages.items.choosing import listed
from leaderboard.pages.items.query import Choice
from leaderboard.pages.items.reading import ItemReader
from leaderboard.pages.reading import View
from leaderboard.records import Status


@dataclass(frozen=True)
class Looked:
    """The cases that a choice lists.

    Attributes:
        standings: of metric A, and of metric B where there is one.
        chosen: shape (C,), the cases with the skill and in the split.
        order: positions of those that are listed, in their order.
    """

    standings: tuple[Standing, ...]
    chosen: BoolArray
    order: IntArray


def answers_are_public(card: Card, here: Mapping[str, Card]) -> bool:
    """Whether those of a benchmark are: by the card that is published, and by the one here."""
    return card.answers_public and here.get(card.name, card).answers_public


def lower_is_better(statuses: Iterable[Status]) -> dict[str, tuple[str, ...]]:
    """Submission to those of its metrics whose smaller scores mean a better match."""
    submissions = (status.submission for status in statuses)
    return {one.submission_id: one.lower_is_better for one in submissions}


def look(
    choice: Choice,
    cases: CaseSet,
    view: View,
    reader: ItemReader,
    lower: Mapping[str, tuple[str, ...]],
) -> Looked:
    """List the cases of a choice.

    Args:
        choice: what is looked at.
        cases: of its benchmark.
        view: what is published.
        reader: of the scores.
        lower: as `lower_is_better` gives it.

    Raises:
        TransientError: the store cannot be read.
    """
    entries = [view.entries[entry] for entry in choice.metrics]
    standings = reader.standings(entries, cases, lower)
    chosen = cases.within(choice.query.skill, choice.query.split)
    return Looked(standings, chosen, listed(choice.show, cases, standings, chosen))
