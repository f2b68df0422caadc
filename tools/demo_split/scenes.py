"""Scenes that prompts ask for, and the seeded choices that make them.

A `Scene` says what a prompt says and no more: a colour the prompt does not name is None, and the
picture may choose it (`pictures.arrange`). The checkable claims of a scene are its `aspects`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from tools.demo_split.outlines import PATTERNS, SHAPES

T = TypeVar("T")


class Chance:
    """A stream of choices that follows from its seed alone.

    Only `random.Random.random` is used, whose sequence Python promises to keep; everything else
    is integer arithmetic on top of it, so nothing depends on a version of Python or numpy.
    """

    def __init__(self, *seed: str | int) -> None:
        # Not for secrets: the point of this generator is that everyone can repeat it.
        self._random = random.Random("/".join(str(part) for part in seed))  # noqa: S311

    def below(self, n: int) -> int:
        """An integer in 0..n-1."""
        return int(self._random.random() * n)

    def between(self, low: int, high: int) -> int:
        """An integer in low..high, both included; `low` where the range is empty."""
        return low + self.below(max(high - low, 0) + 1)

    def happens(self, probability: float) -> bool:
        """True with this probability."""
        return self._random.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.below(len(options))]

    def sample(self, options: Sequence[T], k: int) -> list[T]:
        """`k` different options in random order."""
        return self.shuffled(options)[:k]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        """All options in random order (Fisher and Yates)."""
        items = list(options)
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]
        return items


COLOURS: tuple[str, ...] = (
    "red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "black", "white",
)  # fmt: skip
SIZES: tuple[str, ...] = ("small", "large")
PATTERN_NAMES: tuple[str, ...] = tuple(PATTERNS)
SHAPE_NAMES: tuple[str, ...] = tuple(SHAPES)
SOLID: tuple[str, ...] = ("circle", "square", "hexagon", "heart", "triangle")
"""Shapes with room inside for another one."""
FINGERS: tuple[str, ...] = (
    "thumb", "index finger", "middle finger", "ring finger", "little finger",
)  # fmt: skip
PARTS: dict[str, tuple[str, ...]] = {
    "house": ("roof", "door", "wall", "window"),
    "tree": ("crown", "trunk"),
    "car": ("body", "wheels"),
    "flower": ("petals", "centre"),
    "boat": ("sail", "hull"),
    "fish": ("body", "tail", "fin"),
}
"""The parts of an object that a prompt may give a colour."""
MAIN_PART: dict[str, str] = {
    "house": "wall",
    "tree": "crown",
    "car": "body",
    "flower": "petals",
    "boat": "hull",
    "fish": "body",
}
"""The part meant by `a red house`."""
OBJECT_NAMES: tuple[str, ...] = tuple(PARTS)
PLACES: tuple[str, ...] = ("meadow", "beach", "night")
SPATIAL: tuple[str, ...] = ("left of", "right of", "above", "below", "inside")
COMPARISONS: tuple[str, ...] = ("bigger than", "smaller than")
OPPOSITE: dict[str, str] = {
    "left of": "right of",
    "right of": "left of",
    "above": "below",
    "below": "above",
    "inside": "right of",
    "bigger than": "smaller than",
    "smaller than": "bigger than",
}
"""What a relation turns into when it is drawn wrongly."""
MOST = 9
"""No group has more members."""


@dataclass(frozen=True, slots=True)
class Group:
    """One or more equal things."""

    kind: str  # a name of SHAPE_NAMES or OBJECT_NAMES, or `hand`
    # of the shape, or of the object's main part; None where the prompt names none
    colour: str | None = None
    count: int = 1  # how many; 1 is said as `a`, and is then not a claim about number
    size: str | None = None  # `small`, `large` or None
    pattern: str | None = None  # a name of PATTERN_NAMES, or None for plain
    # (part, colour) for parts whose colour the prompt names
    parts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Scene:
    """What one prompt asks for."""

    groups: tuple[Group, ...]  # of different kinds, in the order of the prompt
    # of the first group to the second (SPATIAL or COMPARISONS), or None; `inside` holds between
    # single things only
    relation: str | None = None
    place: str | None = None  # one of PLACES, or None for a plain ground
    absent: tuple[str, ...] = ()  # kinds that the prompt says are not there


@dataclass(frozen=True, slots=True)
class Aspect:
    """One claim of a prompt that can be true or false of a picture."""

    id: str  # stable within a scene, e.g. `0.color`, `0.part.roof`, `relation`, `absent.0`.
    # `object`, `shape`, `color`, `counting`, `scale`, `texture`, `part`, `spatial`, `comparison`,
    # `place` or `negation`
    skill: str
    # index of the group it is about; None for claims about the whole scene
    group: int | None = None
    detail: str = ""  # the part, the relation or the absent kind it is about; else empty


def aspects(scene: Scene) -> tuple[Aspect, ...]:
    """Every claim of a scene, in the order in which its prompt makes them."""
    found = [a for i, group in enumerate(scene.groups) for a in _of_group(i, group)]
    if scene.relation is not None:
        skill = "spatial" if scene.relation in SPATIAL else "comparison"
        found.append(Aspect("relation", skill, None, scene.relation))
    found += [Aspect(f"absent.{i}", "negation", None, k) for i, k in enumerate(scene.absent)]
    if scene.place is not None:
        found.append(Aspect("place", "place", None, scene.place))
    return tuple(found)


def _of_group(i: int, group: Group) -> list[Aspect]:
    claims = [
        (group.count > 1, "counting"),
        (group.size is not None, "scale"),
        (group.pattern is not None, "texture"),
        (group.colour is not None, "color"),
    ]
    found = [Aspect(f"{i}.{skill}", skill, i) for made, skill in claims if made]
    found.append(Aspect(f"{i}.object", "shape" if group.kind in SHAPES else "object", i))
    return found + [Aspect(f"{i}.part.{part}", "part", i, part) for part, _ in group.parts]


def with_group(scene: Scene, i: int, group: Group) -> Scene:
    """The scene with another group at position `i`."""
    return replace(scene, groups=(*scene.groups[:i], group, *scene.groups[i + 1 :]))


def colours_in(scene: Scene) -> set[str]:
    """Every colour the prompt names."""
    named = {g.colour for g in scene.groups if g.colour is not None}
    return named | {colour for g in scene.groups for _, colour in g.parts}


def kinds_in(scene: Scene) -> set[str]:
    """Every kind the prompt names, present or absent."""
    return {g.kind for g in scene.groups} | set(scene.absent)


def sample_scene(rng: Chance) -> Scene:
    """Draw a scene of any of the sorts in SAMPLERS, the commoner ones more often.

    All that the demo benchmarks ask about occurs, so this is also the source of training data for
    a small network: `prompts` (in `language`) gives its wordings, `draw` (in `render`) a picture,
    `contradict` (in `mistakes`) a scene that is wrong in one respect.
    """
    return SAMPLERS[rng.pick(_SORTS)](rng)


def sample_group(
    rng: Chance, *, taken: set[str] | None = None, colours: set[str] | None = None
) -> Group:
    """A coloured shape of a kind and a colour that are not taken yet."""
    kind = rng.pick([k for k in SHAPE_NAMES if k not in (taken or set())])
    return Group(kind, rng.pick([c for c in COLOURS if c not in (colours or set())]))


def sample_groups(rng: Chance, n: int) -> tuple[Group, ...]:
    """`n` coloured shapes, all of different kinds and colours."""
    kinds, colours = rng.sample(SHAPE_NAMES, n), rng.sample(COLOURS, n)
    return tuple(Group(kind, colour) for kind, colour in zip(kinds, colours, strict=True))


def one_shape(rng: Chance) -> Scene:
    """`a circle`, `a red circle`: one thing, with or without a colour."""
    group = sample_group(rng)
    return Scene((replace(group, colour=None) if rng.happens(0.25) else group,))


def two_shapes(rng: Chance) -> Scene:
    """`a red circle and a blue star`."""
    return Scene(sample_groups(rng, 2))


def three_shapes(rng: Chance) -> Scene:
    """`a red circle, a blue star and a green heart`."""
    return Scene(sample_groups(rng, 3))


def counted(rng: Chance) -> Scene:
    """`three red circles`, `four stars`."""
    group = replace(sample_group(rng), count=rng.between(2, 6))
    return Scene((replace(group, colour=None) if rng.happens(0.3) else group,))


def counted_sum(rng: Chance) -> Scene:
    """`three red circles and two blue stars`."""
    first, second = sample_groups(rng, 2)
    return Scene(
        (replace(first, count=rng.between(2, 4)), replace(second, count=rng.between(1, 3)))
    )


def related(rng: Chance) -> Scene:
    """`a red circle to the left of a blue star`."""
    first, second = sample_groups(rng, 2)
    relation = rng.pick(SPATIAL)
    if relation == "inside":
        second = replace(second, kind=rng.pick([k for k in SOLID if k != first.kind]))
    return Scene((first, second), relation=relation)


def compared(rng: Chance) -> Scene:
    """`a red circle that is bigger than a blue star`."""
    return Scene(sample_groups(rng, 2), relation=rng.pick(COMPARISONS))


def sized(rng: Chance) -> Scene:
    """`a small red circle`, or `a small red circle and a large blue star`."""
    groups = sample_groups(rng, rng.between(1, 2))
    sizes = rng.shuffled(SIZES)
    return Scene(tuple(replace(g, size=s) for g, s in zip(groups, sizes, strict=False)))


def patterned(rng: Chance) -> Scene:
    """`a striped red circle`, perhaps with a second, dotted shape."""
    groups = sample_groups(rng, rng.between(1, 2))
    names = rng.shuffled(PATTERN_NAMES)
    return Scene(tuple(replace(g, pattern=p) for g, p in zip(groups, names, strict=False)))


def with_parts(rng: Chance) -> Scene:
    """`a house with a red roof and a blue door`."""
    kind = rng.pick(OBJECT_NAMES)
    parts = rng.sample(PARTS[kind], 2)
    colours = rng.sample(COLOURS, 2)
    return Scene((Group(kind, parts=tuple(zip(parts, colours, strict=True))),))


def object_scene(rng: Chance) -> Scene:
    """`a red car and a green tree on a meadow`."""
    kinds, colours = rng.sample(OBJECT_NAMES, 2), rng.sample(COLOURS, 2)
    groups = tuple(Group(k, c) for k, c in zip(kinds, colours, strict=True))
    place = rng.pick(PLACES) if rng.happens(0.6) else None
    return Scene(groups[: rng.between(1, 2)], place=place)


def placed(rng: Chance) -> Scene:
    """`a red circle at the beach`."""
    return replace(one_shape(rng), place=rng.pick(PLACES))


def negated(rng: Chance) -> Scene:
    """`a red circle and no star`."""
    group = sample_group(rng)
    return Scene((group,), absent=(rng.pick([k for k in SHAPE_NAMES if k != group.kind]),))


def hand(rng: Chance) -> Scene:
    """`a hand with a red thumb`."""
    colour = rng.pick([c for c in COLOURS if c != "brown"])  # skin may be brown
    return Scene((Group("hand", parts=((rng.pick(FINGERS), colour),)),))


def detailed(rng: Chance) -> Scene:
    """`two small striped red circles to the left of a large blue star at night`."""
    first, second = sample_groups(rng, 2)
    sizes = rng.shuffled(SIZES)
    first = replace(first, size=sizes[0], count=rng.between(1, 3))
    second = replace(second, size=sizes[1])
    if rng.happens(0.4):
        second = replace(second, pattern=rng.pick(PATTERN_NAMES))
    relation = rng.pick(SPATIAL[:4]) if rng.happens(0.7) else None
    place = rng.pick(PLACES) if rng.happens(0.3) else None
    return Scene((first, second), relation=relation, place=place)


SAMPLERS: dict[str, Callable[[Chance], Scene]] = {
    draw.__name__: draw
    for draw in (
        one_shape, two_shapes, three_shapes, counted, counted_sum, related, compared, sized,
        patterned, with_parts, object_scene, placed, negated, hand, detailed,
    )
}  # fmt: skip
"""Sorts of scenes and the functions that draw one."""

_SORTS: tuple[str, ...] = tuple(
    sort
    for sort, weight in {
        "one_shape": 2, "two_shapes": 3, "three_shapes": 1, "counted": 3, "counted_sum": 2,
        "related": 4, "compared": 2, "sized": 2, "patterned": 2, "with_parts": 3,
        "object_scene": 2, "placed": 1, "negated": 2, "hand": 2, "detailed": 2,
    }.items()
    for _ in range(weight)
)  # fmt: skip
