"""From what a prompt asks for to a picture: where everything stands, how large, in which shade."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.demo.chance import Chance
from benchmarks.demo.figures import FINE, OBJECTS
from benchmarks.demo.scenes import COLOURS, MAIN_PART, Group, Scene, colours_in

SIDE = 128
"""Pictures are SIDE x SIDE pixels."""
_EDGE = 5
TINTS: tuple[str, ...] = ("cream", "sky", "mint", "lavender", "blush", "stone")
"""Plain grounds; no prompt names them."""
GRAINS: tuple[str, ...] = ("smooth", "paper", "weave", "dots")


@dataclass(frozen=True, slots=True)
class Placed:
    """One thing in a picture.

    Attributes:
        kind: what it is.
        x: its centre in pixels from the left.
        y: its centre in pixels from the top.
        radius: in fine points (thirds of a pixel).
        colours: part to colour; the part of a shape is the empty string.
        pattern: pattern on it; empty for plain.
        shade: how much lighter (or darker) than its nominal colour it is.
    """

    kind: str
    x: int
    y: int
    radius: int
    colours: tuple[tuple[str, str], ...]
    pattern: str
    shade: int


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything a renderer needs.

    Attributes:
        ground: one of TINTS, or a place of `scenes.PLACES`.
        grain: texture of a plain ground, one of GRAINS.
        light: how much lighter or darker the ground is.
        seed: of the ground's texture.
        things: painted in this order.
    """

    ground: str
    grain: str
    light: int
    seed: int
    things: tuple[Placed, ...]


@dataclass(frozen=True, slots=True)
class _Region:
    left: int
    top: int
    right: int
    bottom: int


_WHOLE = _Region(_EDGE, _EDGE, SIDE - _EDGE, SIDE - _EDGE)
_HALVES: dict[str, tuple[_Region, _Region]] = {
    "left of": (_Region(_EDGE, 16, 63, 112), _Region(65, 16, SIDE - _EDGE, 112)),
    "above": (_Region(16, _EDGE, 112, 63), _Region(16, 65, 112, SIDE - _EDGE)),
}
# Radius in pixels of a small, an unqualified and a large thing, by the number of things.
_RADII: tuple[tuple[int, tuple[int, int, int]], ...] = (
    (1, (14, 32, 48)),
    (2, (11, 22, 29)),
    (4, (9, 17, 26)),
    (6, (8, 15, 20)),
    (99, (7, 13, 17)),
)


def arrange(scene: Scene, rng: Chance) -> Picture:
    """Choose a picture that shows exactly what the scene says; all else varies."""
    free = [c for c in COLOURS if c not in colours_in(scene)]
    plain = rng.shuffled(free)
    looks = [_look(group, plain[i % len(plain)]) for i, group in enumerate(scene.groups)]
    total = sum(group.count for group in scene.groups)
    things: list[Placed] = []
    for i, (x, y, radius) in _spots(scene, total, rng):
        group = scene.groups[i]
        shade = rng.between(-10, 10)
        things.append(Placed(group.kind, x, y, radius, looks[i], group.pattern or "", shade))
    ground = scene.place or rng.pick(TINTS)
    return Picture(ground, rng.pick(GRAINS), rng.between(-6, 6), rng.below(1 << 16), tuple(things))


def _look(group: Group, spare: str) -> tuple[tuple[str, str], ...]:
    """Colours by part. Parts that are not listed get the natural colour of the renderer."""
    if group.kind == "hand":
        return group.parts
    if group.kind not in MAIN_PART:
        return (("", group.colour or spare),)
    if group.colour is None:
        return group.parts
    return ((MAIN_PART[group.kind], group.colour), *group.parts)


def _spots(scene: Scene, total: int, rng: Chance) -> list[tuple[int, tuple[int, int, int]]]:
    """(group, (x, y, radius)) of every thing, in the order of painting."""
    relation, flipped = _direction(scene.relation)
    if relation == "inside":
        return _nested(rng)
    sizes = [_size(scene, i) for i in range(len(scene.groups))]
    members = [i for i, group in enumerate(scene.groups) for _ in range(group.count)]
    if relation is None:
        return _filled(_WHOLE, rng.shuffled(members), sizes, total, rng)
    halves = _HALVES[relation][::-1] if flipped else _HALVES[relation]
    spots = []
    for i, half in enumerate(halves):
        spots += _filled(half, [m for m in members if m == i], sizes, total, rng)
    rest = [m for m in members if m >= len(halves)]
    return spots + _filled(_WHOLE, rest, sizes, total, rng)


def _direction(relation: str | None) -> tuple[str | None, bool]:
    turned = {"right of": ("left of", True), "below": ("above", True)}
    if relation in ("bigger than", "smaller than"):
        return None, False
    return turned.get(relation or "", (relation, False))


def _size(scene: Scene, i: int) -> int:
    """0 small, 1 unqualified, 2 large."""
    if scene.relation in ("bigger than", "smaller than") and i < 2:
        return 2 if (scene.relation == "bigger than") == (i == 0) else 0
    group = scene.groups[i]
    if group.kind in OBJECTS and group.size is None:  # parts must be large enough to tell apart
        return 2
    return {"small": 0, None: 1, "large": 2}[group.size]


def _filled(
    region: _Region, members: list[int], sizes: list[int], total: int, rng: Chance
) -> list[tuple[int, tuple[int, int, int]]]:
    """Spread the members over cells of the region, a little beside the middle of each cell."""
    if not members:
        return []
    width, height = region.right - region.left, region.bottom - region.top
    columns, rows = _cells(len(members), width, height, rng)
    cells = rng.sample([(c, r) for r in range(rows) for c in range(columns)], len(members))
    spots = []
    for i, (column, row) in zip(members, cells, strict=True):
        across, down = width // columns, height // rows
        radius = _radius(sizes[i], total, min(across, down), rng)
        reach = -(-radius // FINE) + 2
        x = region.left + across * column + across // 2 + _beside(across // 2 - reach, rng)
        y = region.top + down * row + down // 2 + _beside(down // 2 - reach, rng)
        spots.append((i, (x, y, radius)))
    return spots


def _cells(n: int, width: int, height: int, rng: Chance) -> tuple[int, int]:
    """(columns, rows) for `n` things; free choices are left to chance."""
    if n == 2:
        wide, tall = width * 2 > height * 3, height * 2 > width * 3
        across = wide or (not tall and rng.happens(0.5))
        return (2, 1) if across else (1, 2)
    if n > 6:
        return 3, -(-n // 3)
    if n > 4:
        return (3, 2) if rng.happens(0.5) else (2, 3)
    return (1, 1) if n == 1 else (2, 2)


def _radius(size: int, total: int, cell: int, rng: Chance) -> int:
    table = next(radii for most, radii in _RADII if total <= most)
    nominal = min(table[size], cell // 2 - 1) * FINE
    # Even radii only: half as many figures to work out.
    return (nominal + rng.between(-(nominal // 12), nominal // 16)) // 2 * 2


def _beside(slack: int, rng: Chance) -> int:
    bounded = min(max(slack, 0), 16)
    return rng.between(-bounded, bounded)


def _nested(rng: Chance) -> list[tuple[int, tuple[int, int, int]]]:
    """The second group large in the middle, the first one small on top of it."""
    x, y = SIDE // 2 + rng.between(-10, 10), SIDE // 2 + rng.between(-10, 10)
    large, small = 46 * FINE + rng.between(-6, 6), 15 * FINE + rng.between(-4, 4)
    inner = (x + rng.between(-4, 4), y + 2 + rng.between(-4, 4), small)
    return [(1, (x, y, large)), (0, inner)]
