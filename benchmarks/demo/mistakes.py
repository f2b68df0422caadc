"""Scenes that are wrong in one respect.

`contradict` makes a variant for contrast prompts, contrast pictures and training data; `spoil`
makes one given claim of a scene false, which is how the simulated models and the semantic error
graphs get their errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from benchmarks.demo.chance import Chance
from benchmarks.demo.figures import SHAPES
from benchmarks.demo.scenes import (
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
    Group,
    Scene,
    aspects,
    colours_in,
    kinds_in,
    with_group,
)


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A scene that differs from another one in one respect.

    Attributes:
        kind: one of CONTRADICTIONS.
        scene: the changed scene.
        mutual: whether a picture of either scene is wrong for the prompt of the other. False for
            `added` and `removed`: a picture of a circle and a star also shows `a circle`, so only
            the scene with fewer things is wrong for the prompt with more.
    """

    kind: str
    scene: Scene
    mutual: bool


def contradictions_of(scene: Scene) -> tuple[str, ...]:
    """Kinds of contradiction that this scene admits."""
    return tuple(kind for kind, (admits, _) in CONTRADICTIONS.items() if admits(scene))


def contradict(scene: Scene, rng: Chance, kind: str | None = None) -> Contradiction:
    """A variant of the scene that is wrong in one respect.

    Args:
        scene: the original.
        rng: decides what is changed and into what.
        kind: which contradiction; None for any the scene admits (there is always one).

    Raises:
        ValueError: the scene does not admit this kind.
    """
    admitted = contradictions_of(scene)
    chosen = kind or rng.pick(admitted)
    if chosen not in admitted:
        raise ValueError(f"A contradiction {chosen!r} needs another scene; here: {admitted}")
    changed = CONTRADICTIONS[chosen][1](scene, rng)
    return Contradiction(chosen, changed, mutual=chosen not in ("added", "removed"))


def spoil(scene: Scene, aspect: Aspect, rng: Chance, original: Scene | None = None) -> Scene:
    """Make one claim false and leave the others as they are, as far as that is possible.

    Args:
        scene: the scene as it is so far (other claims may be spoilt already).
        aspect: the claim; its group must still be there.
        rng: decides into what it is changed.
        original: what the prompt says, where `scene` is spoilt already: none of its kinds and
            colours are used, lest a second error undo the first.
    """
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
