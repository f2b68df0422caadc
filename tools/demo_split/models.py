"""Four simulated text-to-image models. None of them exists, and no network is run.

A "model" takes the scene that a prompt asks for, makes each kind of mistake at a known rate
(ERROR_RATES) and has the result rendered. So the truth about every picture is known exactly, and a
metric can be judged without people. `contradict` makes a scene wrong in one respect for contrast
prompts and training data; `spoil` makes one given claim of a scene false.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from tools.demo_split.outlines import SHAPES
from tools.demo_split.scenes import (
    COLOURS,
    FINGERS,
    MOST,
    OBJECT_NAMES,
    OPPOSITE,
    PATTERN_NAMES,
    PLACES,
    SHAPE_NAMES,
    SIZES,
    Aspect,
    Chance,
    Group,
    Scene,
    aspects,
    colours_in,
    kinds_in,
    with_group,
)


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A scene that differs from another one in one respect."""

    kind: str  # one of CONTRADICTIONS
    scene: Scene  # the changed scene
    # whether a picture of either scene is wrong for the prompt of the other. False for `added` and
    # `removed`: a picture of a circle and a star also shows `a circle`, so only the scene with
    # fewer things is wrong for the prompt with more.
    mutual: bool


def contradictions_of(scene: Scene) -> tuple[str, ...]:
    """Kinds of contradiction that this scene admits."""
    return tuple(kind for kind, (admits, _) in CONTRADICTIONS.items() if admits(scene))


def contradict(scene: Scene, rng: Chance, kind: str | None = None) -> Contradiction:
    """A variant of the scene that is wrong in one respect.

    `kind`: which contradiction; None for any the scene admits (there is always one).
    """
    admitted = contradictions_of(scene)
    chosen = kind or rng.pick(admitted)
    if chosen not in admitted:
        raise ValueError(f"A contradiction {chosen!r} needs another scene; here: {admitted}")
    changed = CONTRADICTIONS[chosen][1](scene, rng)
    return Contradiction(chosen, changed, mutual=chosen not in ("added", "removed"))


def spoil(scene: Scene, aspect: Aspect, rng: Chance, original: Scene | None = None) -> Scene:
    """Make one claim false and leave the others as they are, as far as that is possible."""
    taken = _Taken.by(scene, original or scene)
    if aspect.group is not None:
        group = scene.groups[aspect.group]
        return with_group(scene, aspect.group, _SPOILERS[aspect.skill](group, aspect, taken, rng))
    if aspect.skill == "negation":
        return replace(
            scene,
            groups=(*scene.groups, Group(aspect.detail, taken.other_colour(rng))),
            absent=tuple(kind for kind in scene.absent if kind != aspect.detail),
        )
    if aspect.skill == "place":
        return replace(scene, place=rng.pick([p for p in PLACES if p != aspect.detail]))
    return replace(scene, relation=OPPOSITE[aspect.detail])


def swap_colours(scene: Scene) -> Scene:
    """Exchange the colours of the first two groups, or of the first two parts of one object."""
    first = scene.groups[0]
    if len(first.parts) > 1:
        (a, red), (b, blue), *rest = first.parts
        return with_group(scene, 0, replace(first, parts=((a, blue), (b, red), *rest)))
    second = scene.groups[1]
    swapped = with_group(scene, 0, replace(first, colour=second.colour))
    return with_group(swapped, 1, replace(second, colour=first.colour))


def can_swap_colours(scene: Scene) -> bool:
    """Whether there are two different colours to exchange."""
    if len(scene.groups[0].parts) > 1:
        return scene.groups[0].parts[0][1] != scene.groups[0].parts[1][1]
    colours = [group.colour for group in scene.groups[:2]]
    return len(colours) == 2 and None not in colours and colours[0] != colours[1]


@dataclass(frozen=True, slots=True)
class _Taken:
    """Kinds and colours that an error must not use."""

    kinds: frozenset[str]
    colours: frozenset[str]

    @classmethod
    def by(cls, *scenes: Scene) -> _Taken:
        kinds = frozenset(kind for scene in scenes for kind in kinds_in(scene))
        return cls(kinds, frozenset(colour for scene in scenes for colour in colours_in(scene)))

    def other_colour(self, rng: Chance) -> str:
        return rng.pick([colour for colour in COLOURS if colour not in self.colours])

    def other_kind(self, family: tuple[str, ...], rng: Chance) -> str:
        return rng.pick([kind for kind in family if kind not in self.kinds])


def _recolour(group: Group, _: Aspect, taken: _Taken, rng: Chance) -> Group:
    return replace(group, colour=taken.other_colour(rng))


def _recount(group: Group, _: Aspect, __: _Taken, rng: Chance) -> Group:
    steps = [s for s in (-2, -1, -1, 1, 1, 2) if 1 <= group.count + s <= MOST]
    return replace(group, count=group.count + rng.pick(steps))


def _resize(group: Group, _: Aspect, __: _Taken, rng: Chance) -> Group:
    del rng
    return replace(group, size=SIZES[1 - SIZES.index(group.size or SIZES[0])])


def _repattern(group: Group, _: Aspect, __: _Taken, rng: Chance) -> Group:
    others = [p for p in PATTERN_NAMES if p != group.pattern]
    return replace(group, pattern=rng.pick([*others, None]))


def _reshape(group: Group, _: Aspect, taken: _Taken, rng: Chance) -> Group:
    """Another kind of the same family; an object's named parts go with it."""
    family = SHAPE_NAMES if group.kind in SHAPES else OBJECT_NAMES
    kind = taken.other_kind(family, rng)
    return replace(group, kind=kind, parts=() if group.kind not in SHAPES else group.parts)


def _repaint_part(group: Group, aspect: Aspect, taken: _Taken, rng: Chance) -> Group:
    """Another colour on the part, or for a hand the same colour on another finger."""
    part, colour = next(p for p in group.parts if p[0] == aspect.detail)
    if group.kind == "hand":
        changed = (rng.pick([f for f in FINGERS if f != part]), colour)
    else:
        changed = (part, taken.other_colour(rng))
    return replace(group, parts=tuple(changed if p[0] == part else p for p in group.parts))


_SPOILERS: dict[str, Callable[[Group, Aspect, _Taken, Chance], Group]] = {
    "color": _recolour,
    "counting": _recount,
    "scale": _resize,
    "texture": _repattern,
    "shape": _reshape,
    "object": _reshape,
    "part": _repaint_part,
}


def _has(*skills: str) -> Callable[[Scene], bool]:
    return lambda scene: any(aspect.skill in skills for aspect in aspects(scene))


def _spoiling(*skills: str) -> Callable[[Scene, Chance], Scene]:
    def change(scene: Scene, rng: Chance) -> Scene:
        fitting = [aspect for aspect in aspects(scene) if aspect.skill in skills]
        return spoil(scene, rng.pick(fitting), rng)

    return change


def _spoiling_count(scene: Scene, rng: Chance) -> Scene:
    i = rng.pick([i for i, group in enumerate(scene.groups) if group.count > 1])
    group = scene.groups[i]
    steps = [s for s in (-1, 1) if 2 <= group.count + s <= MOST]  # `a star` is no number
    return with_group(scene, i, replace(group, count=group.count + rng.pick(steps)))


def _has_replaceable_kind(scene: Scene) -> bool:
    return all(group.kind != "hand" and not group.parts for group in scene.groups)


def _adding(scene: Scene, rng: Chance) -> Scene:
    taken = _Taken.by(scene)
    extra = Group(taken.other_kind(SHAPE_NAMES, rng), taken.other_colour(rng))
    return replace(scene, groups=(*scene.groups, extra))


def _removing(scene: Scene, rng: Chance) -> Scene:
    gone = rng.below(len(scene.groups))
    groups = tuple(group for i, group in enumerate(scene.groups) if i != gone)
    return replace(scene, groups=groups, relation=None)


CONTRADICTIONS: dict[str, tuple[Callable[[Scene], bool], Callable[[Scene, Chance], Scene]]] = {
    "color": (_has("color"), _spoiling("color")),
    "count": (_has("counting"), _spoiling_count),
    "shape": (_has_replaceable_kind, _spoiling("shape", "object")),
    "relation": (_has("spatial"), _spoiling("spatial")),
    "comparison": (_has("comparison"), _spoiling("comparison")),
    "size": (_has("scale"), _spoiling("scale")),
    "binding": (can_swap_colours, lambda scene, _: swap_colours(scene)),
    "pattern": (_has("texture"), _spoiling("texture")),
    "part": (_has("part"), _spoiling("part")),
    "place": (_has("place"), _spoiling("place")),
    "negation": (_has("negation"), _spoiling("negation")),
    "added": (lambda scene: len(scene.groups) < 3, _adding),
    "removed": (lambda scene: len(scene.groups) > 1, _removing),
}
"""Kind to (whether a scene admits it, how it is made)."""


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
    """What a simulated model made of a prompt."""

    asked: Scene  # the scene of the prompt
    drawn: Scene  # the scene that the picture shows
    wrong: frozenset[str]  # ids of the claims of `asked` that are false of the picture
    missing: frozenset[int]  # indices of groups that were left out; all their claims are in `wrong`
    # kind of mistake -> (how often it was made, how often it could have been)
    occasions: Mapping[str, tuple[int, int]]

    @property
    def errors(self) -> int:
        """How many claims of the prompt the picture gets wrong."""
        return len(self.wrong)


def depict(scene: Scene, model: str, rng: Chance) -> Depiction:
    """Let a simulated model draw a scene, with its mistakes."""
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
