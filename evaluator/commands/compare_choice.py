"""Choice of the slices that `compare` shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.errors import SubmitterError
from benchmarks.schema import Card, Selector
from evaluator.commands.compare_files import SliceKey
from leaderboard.publication.measure_names import in_order, nearest, token
from leaderboard.ranking.slices import Slice, mean_over_skills


@dataclass(frozen=True)
class Asked:
    """What was asked for; None and nothing mean the headline over all skills."""

    measure: str | None = None
    variant: str | None = None
    split: str | None = None
    facet: str | None = None
    skills: tuple[str, ...] = ()
    every_skill: bool = False
    everything: bool = False


@dataclass(frozen=True)
class Chosen:
    """The slice that is said in words, and those that stand in the table below it."""

    first: Slice
    others: tuple[Slice, ...]


def choose(slices: Mapping[SliceKey, Slice], asked: Asked, card: Card) -> Chosen:
    """The slices that were asked for.

    Args:
        slices: all that there are.
        asked: what is wanted.
        card: the benchmark; gives the headline.

    Raises:
        SubmitterError: `unknown_skill`, `unknown_measure`, or `unknown_variant` for what is not
            there, listing what is.
    """
    skills = _skills(slices, asked, card)
    available = [s for s, k in slices if k == skills[0] and all((s, o) in slices for o in skills)]
    first = _selector(available, asked, card)
    shown = in_order(card, available) if asked.everything else _one_each(available, first, card)
    others = [_mean(slices, selector, skills) for selector in shown if selector != first]
    if asked.every_skill:
        others += _by_skill(slices, first, skills, card, everything=asked.everything)
    return Chosen(_mean(slices, first, skills), tuple(others))


def _skills(slices: Mapping[SliceKey, Slice], asked: Asked, card: Card) -> tuple[str | None, ...]:
    known = list(dict.fromkeys(skill for _, skill in slices))
    for skill in asked.skills:
        if skill not in known:
            named = [name for name in known if name]
            raise SubmitterError(
                "unknown_skill",
                f"{card.name} has no skill {skill!r} that these metrics are measured by.",
                f"Known skills: {', '.join(named)}." if named else "It has no skills.",
            )
    if asked.skills:
        return tuple(dict.fromkeys(asked.skills))
    return (None,) if None in known else (known[0],)


def _selector(available: Sequence[Selector], asked: Asked, card: Card) -> Selector:
    """The measure that was asked for, as near to the headline as it comes."""
    left = list(available)
    if asked.measure is not None:
        exact = [s for s in left if token(s) == asked.measure]
        known = ", ".join(dict.fromkeys(s.measure for s in in_order(card, left)))
        left = exact or [s for s in left if s.measure == asked.measure]
        if not left:
            raise SubmitterError(
                "unknown_measure",
                f"{card.name} has no measure {asked.measure!r} there.",
                f"Known measures: {known}.",
            )
    if asked.measure is None and not any((asked.variant, asked.split, asked.facet)):
        return nearest(card.headline, left, card)
    for name in ("variant", "split", "facet"):
        wanted = getattr(asked, name)
        if wanted is None:
            continue
        of_name = list(dict.fromkeys(getattr(s, name) for s in left if getattr(s, name)))
        left = [s for s in left if getattr(s, name) == wanted]
        if not left:
            raise SubmitterError(
                f"unknown_{name}",
                f"{card.name} has no {name} {wanted!r} there.",
                f"Known: {', '.join(of_name)}." if of_name else f"There is no {name} to choose.",
            )
    like = card.headline.model_copy(update={"measure": asked.measure or card.headline.measure})
    return left[0] if len(left) == 1 else nearest(like, left, card)


def _one_each(available: Sequence[Selector], first: Selector, card: Card) -> list[Selector]:
    """Each measure once, as like to the first as it comes."""
    measures = dict.fromkeys(selector.measure for selector in in_order(card, available))
    return [
        nearest(
            first.model_copy(update={"measure": m}), [s for s in available if s.measure == m], card
        )
        for m in measures
        if m != first.measure
    ]


def _by_skill(
    slices: Mapping[SliceKey, Slice],
    first: Selector,
    shown: Sequence[str | None],
    card: Card,
    *,
    everything: bool,
) -> list[Slice]:
    found: list[Slice] = []
    for skill in dict.fromkeys(skill for _, skill in slices):
        if skill is None or skill in shown:
            continue
        there = [s for s, k in slices if k == skill]
        if everything:
            found += [slices[s, skill] for s in in_order(card, there)]
            continue
        same = [s for s in there if s.measure == first.measure]
        if same:
            found.append(slices[nearest(first, same, card), skill])
    return found


def _mean(
    slices: Mapping[SliceKey, Slice], selector: Selector, skills: Sequence[str | None]
) -> Slice:
    return mean_over_skills([slices[selector, skill] for skill in skills])
