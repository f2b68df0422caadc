"""Titles, tokens and order of measures and skills."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from benchmarks.schema import BY_GENERATOR, BY_GENERATOR_INFO, Card, MeasureInfo, Selector

VARIANTS = {
    "paper": "as in the paper",
    "equation": "per equations",
    "code": "as the released code does",
    "assay": "summary by Assay",
    "as_printed": "as printed, errors included",
    "paper_v2": "as in the paper's later version",
    "direction_only": "direction only",
    "held_out": "threshold chosen on other prompts",
    "ntire": "threshold 0.5 (NTIRE 2025)",
    "ntire_code": "as the NTIRE 2025 script does",
    "ntire_page": "as the NTIRE 2025 page says",
    "cleaned": "without ratings outside the scale",
    "ignore_tie": "pairs rated alike left out",
    "no_calibration": "without tie calibration",
    "exact_chance": "scaled by the exact chance level",
}
"""Human names of the variants every benchmark may use."""
_UNKNOWN = MeasureInfo(title="", meaning="")


def short_titles(cards: Iterable[Card]) -> dict[str, str]:
    """Benchmark to its title, without what stands in brackets where that still tells it apart."""
    titles = {card.name: card.title for card in cards}
    short = {name: title.partition(" (")[0] for name, title in titles.items()}
    given = Counter(short.values())
    return {name: one if given[one] == 1 else titles[name] for name, one in short.items()}


def token(selector: Selector) -> str:
    """The selector as one word for a link. It is compared, never taken apart again."""
    parts = (selector.measure, selector.variant, selector.split, selector.facet)
    return "~".join(part or "" for part in parts).rstrip("~")


def info(card: Card, measure: str) -> MeasureInfo:
    """What the card says about a measure; a nameless one is called by its key."""
    if measure == BY_GENERATOR:
        return BY_GENERATOR_INFO
    return card.measures.get(measure, _UNKNOWN.model_copy(update={"title": measure}))


def in_card_order(card: Card, skills: Sequence[str]) -> tuple[str, ...]:
    """Skills as the card orders them, then the others."""
    listed = [skill for skill in card.skills if skill in skills]
    return (*listed, *(skill for skill in skills if skill not in card.skills))


def leaves(skills: Sequence[str]) -> list[str]:
    """Without a skill whose sub-skill is named too."""
    return [one for one in skills if not any(other.startswith(f"{one}:") for other in skills)]


def skill_title(card: Card, skill: str | None) -> str:
    """The display name of a skill; a sub-skill unknown to the card is named below its skill."""
    if skill is None:
        return "All skills"
    if skill in card.skills:
        return card.skills[skill]
    above, colon, below = skill.rpartition(":")
    return f"{skill_title(card, above)} › {below}" if colon else skill


def title(card: Card, selector: Selector, among: Sequence[Selector]) -> str:
    """The name of a measure, with as much of variant, split and facet as tells it from others."""
    same = [other for other in among if other.measure == selector.measure]
    parts = [info(card, selector.measure).title]
    if selector.facet and len({s.facet for s in same}) > 1:
        parts.append(card.facets.get(selector.facet, selector.facet))
    if selector.split and len({s.split for s in same}) > 1:
        parts.append(_split_title(card, selector.split))
    if selector.variant and len({s.variant for s in same}) > 1:
        parts.append(VARIANTS.get(selector.variant, selector.variant))
    return " · ".join(parts)


def _split_title(card: Card, split: str) -> str:
    if split in card.splits:
        return card.splits[split]
    return "all splits" if split == "all" else f"split {split}"


def in_order(card: Card, selectors: Sequence[Selector]) -> tuple[Selector, ...]:
    """The headline first (or what comes nearest to it), then in the card's order of measures."""
    if not selectors:
        return ()
    first = nearest(card.headline, selectors, card)
    places = {measure: place for place, measure in enumerate(card.measures)}

    def order(selector: Selector) -> tuple[bool, int, str, str]:
        return (
            selector != first,
            places.get(selector.measure, len(places)),
            selector.measure,
            token(selector),
        )

    return tuple(sorted(selectors, key=order))


def nearest(wanted: Selector, available: Sequence[Selector], card: Card) -> Selector:
    """The available measure that is most like the wanted one: same measure before same variant.

    Where not even the measure is there, the one most like the headline is taken.
    """
    if not available:
        raise ValueError("there is no measure to choose from")

    def likeness(selector: Selector) -> tuple[bool, int, bool, int, str]:
        return (
            selector.measure != wanted.measure,
            -_agreements(selector, wanted),
            selector.measure != card.headline.measure,
            -_agreements(selector, card.headline),
            token(selector),
        )

    return min(available, key=likeness)


def _agreements(one: Selector, other: Selector) -> int:
    return sum((one.variant == other.variant, one.split == other.split, one.facet == other.facet))
