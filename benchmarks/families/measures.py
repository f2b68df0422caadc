"""Measures of a card: those of its family that its labels allow, said with its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pandas as pd

from benchmarks.errors import SubmitterError
from benchmarks.families.card import FamilyCard


def with_measures(
    card: FamilyCard,
    *,
    lacking: Mapping[str, str] | None = None,
    problems: Iterable[str] = (),
    rule: Callable[[str], str] = lambda _: "",
) -> FamilyCard:
    """The card with the measures that its labels allow, said with its rules.

    `lacking`: measure to what the card would need for it. `problems`: what else the family cannot
    use. `rule`: measure to what is added to its meaning.

    Raises:
        SubmitterError: `invalid_benchmark`: it has problems, or chooses a measure that it lacks.
    """
    lacking = lacking or {}
    asked = dict.fromkeys((*card.evaluation.measures, card.headline.measure))
    unmet = [f"measure {one} needs {lacking[one]}" for one in asked if one in lacking]
    refuse(card, [*unmet, *problems])
    measures = {
        name: info.model_copy(update={"meaning": f"{info.meaning} {rule(name)}".rstrip()})
        for name, info in card.measures.items()
        if name not in lacking
    }
    return card.model_copy(update={"measures": measures})


def refuse(card: FamilyCard, problems: Iterable[str]) -> None:
    """Raise what a family cannot use of a card, if there is anything.

    Raises:
        SubmitterError: `invalid_benchmark`: all problems.
    """
    said = "; ".join(problems)
    if said:
        raise SubmitterError("invalid_benchmark", f"The card of {card.name}: {said}.")


def guesses(
    card: FamilyCard, reached: Mapping[str, Callable[[str], float]]
) -> dict[str, pd.DataFrame]:
    """Table, under its heading, of what is reached without a look at an image, by measure.

    `reached`: heading of a column to what it says of a measure.
    """
    rows = [
        {"measure": info.title} | {head: value(name) for head, value in reached.items()}
        for name, info in card.measures.items()
    ]
    return {"What needs no look at an image": pd.DataFrame(rows)}
