"""Four simulated text-to-image models. None of them exists, and no network is run.

A "model" takes the scene that a prompt asks for, makes each kind of mistake at a known rate
(ERROR_RATES) and has the result rendered. So the truth about every picture is known exactly, and a
metric can be judged without people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from benchmarks.demo.chance import Chance
from benchmarks.demo.mistakes import can_swap_colours, spoil, swap_colours
from benchmarks.demo.scenes import Aspect, Scene, aspects

SKILLS: tuple[str, ...] = (
    "object", "shape", "color", "binding", "counting", "scale", "texture", "part", "spatial",
    "comparison", "place", "negation", "missing",
)  # fmt: skip
"""Kinds of mistake. All but two are about one claim of the prompt (`scenes.Aspect.skill`);
`binding` exchanges two colours and `missing` leaves a whole group out."""

_RATES: Mapping[str, tuple[float, ...]] = MappingProxyType({
    "demo-alpha": (.03, .03, .05, .05, .12, .08, .08, .10, .08, .10, .03, .30, .02),
    "demo-beta":  (.05, .05, .04, .04, .50, .20, .08, .10, .35, .25, .04, .45, .06),
    "demo-gamma": (.06, .06, .30, .25, .08, .15, .35, .35, .10, .12, .10, .35, .03),
    "demo-delta": (.15, .15, .25, .20, .55, .35, .30, .35, .40, .40, .15, .60, .10),
})  # fmt: skip
# In words: alpha is good at everything; beta knows colours but cannot count or place things;
# gamma counts and places well but confuses colours and patterns; delta is poor throughout.

MODELS: tuple[str, ...] = tuple(_RATES)
"""Names of the simulated models."""
ERROR_RATES: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        model: MappingProxyType(dict(zip(SKILLS, rates, strict=True)))
        for model, rates in _RATES.items()
    }
)
"""Model, kind of mistake -> probability of the mistake each time there is an occasion for it."""


@dataclass(frozen=True)
class Depiction:
    """What a simulated model made of a prompt.

    Attributes:
        asked: the scene of the prompt.
        drawn: the scene that the picture shows.
        wrong: ids of the claims of `asked` that are false of the picture.
        missing: indices of groups that were left out; all their claims are in `wrong`.
        occasions: kind of mistake -> (how often it was made, how often it could have been).
    """

    asked: Scene
    drawn: Scene
    wrong: frozenset[str]
    missing: frozenset[int]
    occasions: Mapping[str, tuple[int, int]]

    @property
    def errors(self) -> int:
        """How many claims of the prompt the picture gets wrong."""
        return len(self.wrong)


def depict(scene: Scene, model: str, rng: Chance) -> Depiction:
    """Let a simulated model draw a scene, with its mistakes.

    Args:
        scene: what the prompt asks for.
        model: one of MODELS.
        rng: decides which mistakes are made.
    """
    rates = ERROR_RATES[model]
    tally = _Tally(rng)
    drawn, wrong = scene, set[str]()
    if can_swap_colours(scene) and tally.mistake("binding", rates["binding"]):
        drawn = swap_colours(scene)
        wrong |= _swapped(scene)
    for aspect in sorted(aspects(scene), key=_order):
        if aspect.id in wrong or not tally.mistake(aspect.skill, rates[aspect.skill]):
            continue
        drawn = spoil(drawn, aspect, rng, scene)
        wrong |= {aspect.id} | _consequences(scene, aspect)
    missing = _left_out(scene, tally, rates["missing"])
    for i in missing:
        wrong |= _claims_about(scene, i)
        drawn = _without(drawn, i)
    return Depiction(scene, drawn, frozenset(wrong), missing, tally.counts)


class _Tally:
    """Draws mistakes and counts the occasions, so that rates can be measured."""

    def __init__(self, rng: Chance) -> None:
        self._rng = rng
        self.counts: dict[str, tuple[int, int]] = {}

    def mistake(self, skill: str, rate: float) -> bool:
        made = self._rng.happens(rate)
        before, occasions = self.counts.get(skill, (0, 0))
        self.counts[skill] = (before + made, occasions + 1)
        return made


def _order(aspect: Aspect) -> int:
    """Kinds last: with another kind of object its named parts are gone."""
    return int(aspect.skill in ("object", "shape"))


def _swapped(scene: Scene) -> set[str]:
    first = scene.groups[0]
    if len(first.parts) > 1:
        return {f"0.part.{part}" for part, _ in first.parts[:2]}
    return {"0.color", "1.color"}


def _consequences(scene: Scene, aspect: Aspect) -> set[str]:
    """A car in place of the house has no red roof."""
    if aspect.skill != "object":
        return set()
    return {a.id for a in aspects(scene) if a.skill == "part" and a.group == aspect.group}


def _left_out(scene: Scene, tally: _Tally, rate: float) -> frozenset[int]:
    """At most one group, and never the only one."""
    for i in range(len(scene.groups)):
        if len(scene.groups) > 1 and tally.mistake("missing", rate):
            return frozenset({i})
    return frozenset()


def _claims_about(scene: Scene, i: int) -> set[str]:
    related = scene.relation is not None and i < 2
    return {a.id for a in aspects(scene) if a.group == i or (related and a.id == "relation")}


def _without(scene: Scene, i: int) -> Scene:
    groups = (*scene.groups[:i], *scene.groups[i + 1 :])
    return replace(scene, groups=groups, relation=scene.relation if i > 1 else None)
