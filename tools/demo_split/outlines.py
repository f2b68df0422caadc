"""Outlines of everything that can be drawn, as integer inequalities on a grid.

A figure is measured in thousandths of its radius and evaluated on a grid three times as fine as the
pixels; how many of a pixel's nine points lie inside is its coverage. Integers only, so that a
picture is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

FINE = 3
"""Points per pixel along each axis."""
FULL = FINE * FINE
"""Coverage of a pixel that lies inside entirely."""
UNIT = 1000
"""Figures are given in thousandths of their radius."""
OUTLINE = 3
"""Width of an outline in fine points: one pixel."""

Mask = NDArray[np.bool_]
Coverage = NDArray[np.int32]


@dataclass(frozen=True)
class Grid:
    """Fine points around the centre of a figure."""

    x: NDArray[np.int64]  # shape (1, n), offset to the right in fine points times UNIT
    y: NDArray[np.int64]  # shape (n, 1), offset downwards, likewise
    r: int  # radius of the figure in fine points


Figure = Callable[[Grid], Mask]


def _disc(cx: int, cy: int, radius: int) -> Figure:
    def inside(g: Grid) -> Mask:
        distance = (g.x - cx * g.r) ** 2 + (g.y - cy * g.r) ** 2
        return np.asarray(distance <= (radius * g.r) ** 2)

    return inside


def _ellipse(cx: int, cy: int, rx: int, ry: int) -> Figure:
    def inside(g: Grid) -> Mask:
        distance = ((g.x - cx * g.r) * ry) ** 2 + ((g.y - cy * g.r) * rx) ** 2
        return np.asarray(distance <= (rx * ry * g.r) ** 2)

    return inside


def _box(left: int, top: int, right: int, bottom: int) -> Figure:
    def inside(g: Grid) -> Mask:
        across = (g.x >= left * g.r) & (g.x <= right * g.r)
        return np.asarray(across & (g.y >= top * g.r) & (g.y <= bottom * g.r))

    return inside


def _polygon(*corners: tuple[int, int]) -> Figure:
    """Even-odd rule: a point is inside if a ray to the right crosses the border an odd number."""

    def inside(g: Grid) -> Mask:
        found = np.zeros((g.y.size, g.x.size), np.bool_)
        for (x1, y1), (x2, y2) in zip(corners, corners[1:] + corners[:1], strict=True):
            if y1 == y2:
                continue
            spans = (y1 * g.r > g.y) != (y2 * g.r > g.y)
            side = (g.x - x1 * g.r) * (y2 - y1) - (g.y - y1 * g.r) * (x2 - x1)
            found ^= spans & ((side < 0) if y2 > y1 else (side > 0))
        return found

    return inside


def _union(*figures: Figure) -> Figure:
    def inside(g: Grid) -> Mask:
        found = figures[0](g)
        for figure in figures[1:]:
            found = found | figure(g)
        return found

    return inside


def _without(figure: Figure, hole: Figure) -> Figure:
    return lambda g: np.asarray(figure(g) & ~hole(g))


def _finger(x: int, tip: int, half_width: int) -> Figure:
    """An upright finger that ends in the palm."""
    return _union(
        _disc(x, tip + half_width, half_width),
        _box(x - half_width, tip + half_width, x + half_width, 250),
    )


SHAPES: dict[str, Figure] = {
    "circle": _disc(0, 0, 960),
    "square": _box(-840, -840, 840, 840),
    "triangle": _polygon((0, -960), (1000, 780), (-1000, 780)),
    "star": _polygon(
        (0, -1050), (247, -340), (999, -325), (400, 130), (617, 850),
        (0, 420), (-617, 850), (-400, 130), (-999, -325), (-247, -340),
    ),
    "diamond": _polygon((0, -1050), (740, 0), (0, 1050), (-740, 0)),
    "heart": _union(
        _disc(-460, -300, 510), _disc(460, -300, 510), _polygon((-905, -50), (905, -50), (0, 960))
    ),
    "cross": _union(_box(-960, -330, 960, 330), _box(-330, -960, 330, 960)),
    "hexagon": _polygon((1000, 0), (500, 866), (-500, 866), (-1000, 0), (-500, -866), (500, -866)),
    "ring": _without(_disc(0, 0, 980), _disc(0, 0, 520)),
    "crescent": _without(_disc(0, 0, 980), _disc(470, -180, 800)),
}  # fmt: skip
"""Plain shapes: one figure, one colour, perhaps a pattern."""

OBJECTS: dict[str, dict[str, Figure]] = {
    "house": {
        "wall": _box(-740, -160, 740, 900),
        "roof": _polygon((0, -980), (980, -140), (-980, -140)),
        "door": _box(-480, 290, -80, 900),
        "window": _box(150, 170, 540, 560),
    },
    "tree": {
        "trunk": _box(-150, 180, 150, 1000),
        "crown": _union(
            _disc(0, -480, 520), _disc(-450, -50, 480), _disc(450, -50, 480), _disc(0, 60, 480)
        ),
    },
    "car": {
        "body": _union(
            _box(-1000, -60, 1000, 440),
            _polygon((-640, -40), (-400, -560), (340, -560), (660, -40)),
        ),
        "windows": _union(
            _polygon((-480, -90), (-320, -430), (-70, -430), (-70, -90)),
            _polygon((60, -90), (60, -430), (270, -430), (480, -90)),
        ),
        "wheels": _union(_disc(-540, 440, 290), _disc(540, 440, 290)),
    },
    "flower": {
        "stem": _union(_box(-75, 0, 75, 1000), _ellipse(-280, 680, 280, 120)),
        "petals": _union(
            _disc(0, -760, 290), _disc(390, -535, 290), _disc(390, -85, 290),
            _disc(0, 140, 290), _disc(-390, -85, 290), _disc(-390, -535, 290),
        ),
        "centre": _disc(0, -310, 260),
    },
    "boat": {
        "mast": _box(-50, -900, 40, 260),
        "sail": _polygon((90, -960), (820, 170), (90, 170)),
        "hull": _polygon((-1000, 260), (1000, 260), (660, 820), (-660, 820)),
    },
    "fish": {
        "tail": _polygon((350, 0), (1000, -520), (860, 0), (1000, 520)),
        "fin": _polygon((-300, -300), (120, -820), (330, -250)),
        "body": _ellipse(-180, 0, 800, 500),
        "eye": _disc(-600, -110, 95),
    },
    "hand": {
        "thumb": _union(
            _polygon((-925, 10), (-735, -130), (-330, 390), (-480, 700)), _disc(-830, -60, 118)
        ),
        "index finger": _finger(-410, -800, 118),
        "middle finger": _finger(-105, -1000, 118),
        "ring finger": _finger(200, -870, 118),
        "little finger": _finger(490, -580, 102),
        "palm": _union(
            _box(-530, 120, 595, 620), _ellipse(30, 620, 560, 380), _disc(-420, 230, 110)
        ),
    },
}  # fmt: skip
"""Things with parts, in the order in which the parts are painted."""


def _striped(g: Grid) -> Mask:
    period = max(g.r * 300, 6 * UNIT)
    return np.asarray((g.x + g.y + period // 2) % (2 * period) < period)


def _dotted(g: Grid) -> Mask:
    cell = max(g.r * 500, 12 * UNIT)
    shifted = np.where((g.y + cell // 2) // cell % 2 == 0, g.x, g.x + cell // 2)
    x = (shifted + cell // 2) % cell - cell // 2
    y = (g.y + cell // 2) % cell - cell // 2
    return np.asarray(x**2 + y**2 <= (cell * 3 // 10) ** 2)


def _checked(g: Grid) -> Mask:
    cell = max(g.r * 360, 7 * UNIT)
    return np.asarray((g.x // cell + g.y // cell) % 2 == 0)


PATTERNS: dict[str, Figure] = {"striped": _striped, "dotted": _dotted, "checked": _checked}
"""What may lie on a shape in a second tone; `plain` has no second tone."""


@lru_cache(maxsize=2048)
def coverage(
    kind: str, part: str = "", radius: int = 60, pattern: str = "", grown: int = 0
) -> Coverage:
    """Coverage of every pixel around the centre of a figure.

    `kind`: a shape or an object; `part`: part of an object; empty for a shape, or for the
    silhouette of an object.
    Returns: shape (n, n) with n odd, the centre in the middle, values 0..FULL. Do not change it.
    """
    reach = (radius * 11 // 10 + grown) // FINE + 2
    steps = np.arange(-(FINE * reach + 1), FINE * reach + 2, dtype=np.int64) * UNIT
    grid = Grid(steps[None, :], steps[:, None], radius)
    mask = np.broadcast_to(_figure(kind, part)(grid), (steps.size, steps.size))
    if grown:
        mask = _grow(mask, grown)
    if pattern:
        mask = mask & PATTERNS[pattern](grid)
    n = 2 * reach + 1
    counted: Coverage = mask.reshape(n, FINE, n, FINE).sum(axis=(1, 3), dtype=np.int32)
    counted.setflags(write=False)
    return counted


def _figure(kind: str, part: str) -> Figure:
    if kind in SHAPES:
        return SHAPES[kind]
    parts = OBJECTS[kind]
    return parts[part] if part else _union(*parts.values())


def _grow(mask: Mask, width: int) -> Mask:
    """Union of the mask moved into eight directions: a dilation with an octagon."""
    slant = max(width * 7 // 10, 1)
    moves = [(width, 0), (-width, 0), (0, width), (0, -width)]
    moves += [(a * slant, b * slant) for a in (-1, 1) for b in (-1, 1)]
    grown = mask.copy()
    for down, right in moves:
        grown |= np.roll(mask, (down, right), axis=(0, 1))
    return grown
