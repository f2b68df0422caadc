"""Pictures of scenes, painted with integer arithmetic so that their bytes are the same everywhere.

`arrange` chooses where everything stands, how large and in which shade; `render` paints it; `encode`
writes PNG files of *stored* deflate blocks, which do not depend on a build of zlib.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.demo.load import pinned_revision
from tools.demo_split.outlines import FINE, FULL, OBJECTS, OUTLINE, Coverage, coverage
from tools.demo_split.scenes import COLOURS, MAIN_PART, Chance, Group, Scene, colours_in

SIDE = 128
"""Pictures are SIDE x SIDE pixels."""
_EDGE = 5
TINTS: tuple[str, ...] = ("cream", "sky", "mint", "lavender", "blush", "stone")
"""Plain grounds; no prompt names them."""
GRAINS: tuple[str, ...] = ("smooth", "paper", "weave", "dots")


@dataclass(frozen=True, slots=True)
class Placed:
    """One thing in a picture."""

    kind: str  # what it is
    x: int  # its centre in pixels from the left
    y: int  # its centre in pixels from the top
    radius: int  # in fine points (thirds of a pixel)
    colours: tuple[tuple[str, str], ...]  # part to colour; the part of a shape is the empty string
    pattern: str  # pattern on it; empty for plain
    shade: int  # how much lighter (or darker) than its nominal colour it is


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything a renderer needs."""

    ground: str  # one of TINTS, or a place of `scenes.PLACES`
    grain: str  # texture of a plain ground, one of GRAINS
    light: int  # how much lighter or darker the ground is
    seed: int  # of the ground's texture
    things: tuple[Placed, ...]  # painted in this order


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


RGB = tuple[int, int, int]

PAINT: dict[str, RGB] = {
    "red": (222, 46, 52),
    "orange": (246, 140, 36),
    "yellow": (250, 212, 44),
    "green": (52, 160, 78),
    "blue": (44, 104, 214),
    "purple": (136, 66, 178),
    "pink": (246, 136, 182),
    "brown": (130, 82, 46),
    "black": (40, 40, 46),
    "white": (250, 250, 248),
}
NATURAL: dict[tuple[str, str], RGB] = {
    ("house", "wall"): (238, 222, 196),
    ("house", "roof"): (176, 112, 92),
    ("house", "door"): (150, 118, 92),
    ("house", "window"): (188, 220, 236),
    ("tree", "trunk"): (132, 98, 70),
    ("tree", "crown"): (104, 168, 98),
    ("car", "body"): (160, 168, 178),
    ("car", "windows"): (206, 230, 242),
    ("car", "wheels"): (66, 68, 76),
    ("flower", "stem"): (92, 156, 88),
    ("flower", "petals"): (238, 196, 206),
    ("flower", "centre"): (232, 190, 96),
    ("boat", "mast"): (116, 92, 72),
    ("boat", "sail"): (244, 240, 228),
    ("boat", "hull"): (160, 126, 98),
    ("fish", "tail"): (146, 176, 190),
    ("fish", "fin"): (146, 176, 190),
    ("fish", "body"): (168, 196, 208),
    ("fish", "eye"): (36, 38, 46),
}
"""Parts without a colour of their own."""
SKIN: tuple[RGB, ...] = (
    (250, 218, 190), (236, 196, 160), (208, 158, 118), (166, 116, 82), (122, 84, 60),
)  # fmt: skip
_GROUNDS: dict[str, tuple[RGB, RGB]] = {
    "cream": ((252, 246, 232), (240, 228, 206)),
    "sky": ((232, 243, 252), (206, 226, 244)),
    "mint": ((234, 248, 240), (208, 234, 220)),
    "lavender": ((242, 238, 252), (222, 214, 242)),
    "blush": ((253, 240, 238), (244, 220, 218)),
    "stone": ((240, 240, 240), (216, 218, 222)),
    "meadow": ((196, 228, 250), (232, 246, 252)),
    "beach": ((186, 224, 250), (232, 244, 250)),
    "night": ((22, 28, 62), (58, 62, 112)),
}
_SHADOW: RGB = (40, 44, 70)
_SHADOW_STRENGTH = 4
_OPAQUE = 16


def picture_png(picture: Picture) -> bytes:
    """Render a picture and encode it; the bytes follow from the picture alone."""
    return encode(render(picture))


def draw(scene: Scene, rng: Chance) -> NDArray[np.uint8]:
    """A picture of a scene as RGB pixels, shape (SIDE, SIDE, 3); another one at each call."""
    return render(arrange(scene, rng))


def render(picture: Picture) -> NDArray[np.uint8]:
    """Paint a picture.

    Returns: RGB pixels, shape (SIDE, SIDE, 3).
    """
    canvas = _ground(picture)
    for thing in picture.things:
        _paint_thing(canvas, thing, picture)
    return np.clip(canvas, 0, 255).astype(np.uint8)


def _paint_thing(canvas: Coverage, thing: Placed, picture: Picture) -> None:
    if picture.ground != "night":  # nothing casts a shadow in the dark
        drop = max(2, thing.radius // 24)
        silhouette = coverage(thing.kind, "", thing.radius, "", OUTLINE)
        _paint(canvas, silhouette, (thing.x + drop, thing.y + drop), _SHADOW, _SHADOW_STRENGTH)
    colours = dict(thing.colours)
    skin = SKIN[picture.seed % len(SKIN)]
    if thing.kind == "hand":  # one outline around the whole, so that fingers grow out of the palm
        rim = coverage("hand", "", thing.radius, "", OUTLINE)
        _paint(canvas, rim, (thing.x, thing.y), _rim(skin))
    for part in OBJECTS.get(thing.kind, ("",)):
        name = colours.get(part)
        base = PAINT[name] if name else NATURAL.get((thing.kind, part), skin)
        _paint_part(canvas, thing, part, base)


def _paint_part(canvas: Coverage, thing: Placed, part: str, base: RGB) -> None:
    at = (thing.x, thing.y)
    tone = _lighter(base, thing.shade)
    if thing.kind != "hand":
        rim = coverage(thing.kind, part, thing.radius, "", OUTLINE)
        _paint(canvas, rim, at, _rim(base))
    _paint(canvas, coverage(thing.kind, part, thing.radius), at, tone, lit=True)
    if thing.pattern:
        second = coverage(thing.kind, part, thing.radius, thing.pattern)
        _paint(canvas, second, at, _second_tone(base))


def _paint(
    canvas: Coverage,
    covered: Coverage,
    at: tuple[int, int],
    colour: RGB,
    strength: int = _OPAQUE,
    *,
    lit: bool = False,
) -> None:
    """Blend a colour into the canvas where `covered` says so; what lies outside is cut off."""
    reach = covered.shape[0] // 2
    top, left = at[1] - reach, at[0] - reach
    bottom, right = min(at[1] + reach + 1, SIDE), min(at[0] + reach + 1, SIDE)
    rows, columns = slice(max(top, 0), bottom), slice(max(left, 0), right)
    if rows.start >= rows.stop or columns.start >= columns.stop:
        return
    part = covered[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left]
    weight = part[:, :, None] * strength
    ink = np.asarray(colour, np.int32)[None, None, :]
    if lit:  # light from above: a little brighter at the top, a little darker at the bottom
        depth = np.arange(rows.start - at[1], rows.stop - at[1], dtype=np.int32)
        ink = ink - (depth * 14 // reach)[:, None, None]
    whole = FULL * _OPAQUE
    target = canvas[rows, columns]
    target[...] = (target * (whole - weight) + ink * weight + whole // 2) // whole


def _lighter(colour: RGB, by: int) -> RGB:
    red, green, blue = (min(max(channel + by, 4), 251) for channel in colour)
    return red, green, blue


def _rim(colour: RGB) -> RGB:
    """A darker version of the colour; a lighter one for what is nearly black."""
    if sum(colour) < 180:
        return _lighter(colour, 70)
    red, green, blue = (channel * 62 // 100 for channel in colour)
    return red, green, blue


def _second_tone(colour: RGB) -> RGB:
    """The other tone of a pattern: pale on most colours, dark on pale ones."""
    if sum(colour) > 620:
        return (128, 132, 142)
    return (252, 246, 236)


def _ground(picture: Picture) -> Coverage:
    canvas = _base(picture.ground, picture.grain).copy()
    if picture.ground == "night":
        _sprinkle(canvas, picture.seed)
    elif picture.grain == "paper":
        canvas += _noise(picture.seed % 16)[:, :, None]
    canvas += picture.light
    return canvas


@lru_cache(maxsize=64)
def _base(ground: str, grain: str) -> Coverage:
    """The ground without what varies from picture to picture."""
    upper, lower = (np.asarray(tone, np.int32) for tone in _GROUNDS[ground])
    depth = np.arange(SIDE, dtype=np.int32)[:, None]
    ramp = (upper * (SIDE - depth) + lower * depth) // SIDE
    canvas = np.repeat(ramp[:, None, :], SIDE, axis=1)
    if ground in _LANDS:
        _LANDS[ground](canvas)
    elif ground != "night":
        canvas -= _grain(grain)[:, :, None]
    return canvas


def _meadow(canvas: Coverage) -> None:
    x = np.arange(SIDE, dtype=np.int32)[None, :]
    y = np.arange(SIDE, dtype=np.int32)[:, None]
    far = y >= 74 + (x - 40) ** 2 // 420
    near = y >= 86 + (x - 96) ** 2 // 900
    canvas[far] = (184, 218, 150)
    canvas[near] = (160, 204, 126)
    canvas[near & ((x * 7 + y * 13) % 29 == 0)] = (134, 182, 104)


def _beach(canvas: Coverage) -> None:
    x = np.arange(SIDE, dtype=np.int32)[None, :]
    y = np.arange(SIDE, dtype=np.int32)[:, None]
    wave = abs((x % 32) - 16) // 5
    canvas[np.broadcast_to(y >= 66, (SIDE, SIDE))] = (110, 184, 214)
    canvas[y >= 86 + wave] = (236, 246, 248)
    canvas[y >= 89 + wave] = (242, 222, 176)
    canvas[(y >= 92 + wave) & ((x * 11 + y * 5) % 37 == 0)] = (222, 198, 148)


_LANDS = {"meadow": _meadow, "beach": _beach}


def _grain(grain: str) -> Coverage:
    x = np.arange(SIDE, dtype=np.int32)[None, :]
    y = np.arange(SIDE, dtype=np.int32)[:, None]
    if grain == "weave":
        return np.asarray(((x % 8 == 0) | (y % 8 == 0)) * 5, np.int32)
    if grain == "dots":
        return np.asarray((((x % 10) // 2 == 0) & ((y % 10) // 2 == 0)) * 7, np.int32)
    return np.zeros((SIDE, SIDE), np.int32)


@lru_cache(maxsize=16)
def _noise(seed: int) -> Coverage:
    """Values -3..3 from a mixing of the coordinates (32-bit arithmetic that wraps)."""
    x = np.arange(SIDE, dtype=np.uint32)[None, :]
    y = np.arange(SIDE, dtype=np.uint32)[:, None]
    mixed = x * np.uint32(374761393) + y * np.uint32(668265263) + np.uint32(seed * 40503 + 1)
    mixed = (mixed ^ (mixed >> np.uint32(13))) * np.uint32(1274126177)
    return ((mixed >> np.uint32(16)) % np.uint32(7)).astype(np.int32) - 3


def _sprinkle(canvas: Coverage, seed: int) -> None:
    """Specks of light, one pixel each."""
    spot = np.arange(26, dtype=np.int64)
    x = (spot * 7919 + seed * 31 + spot * spot * 17) % SIDE
    y = (spot * 104729 + seed * 57 + spot * spot * 29) % SIDE
    canvas[y, x] = (196, 200, 226)


_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_LARGEST_BLOCK = 0xFFFF
_ZLIB_HEADER = b"\x78\x01"  # deflate, 32 KiB window, lowest compression level


def encode(pixels: NDArray[np.uint8]) -> bytes:
    """Encode an RGB picture."""
    height, width, _ = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = np.zeros((height, 1 + width * 3), np.uint8)  # each row begins with filter type 0, none
    rows[:, 1:] = pixels.reshape(height, width * 3)
    data = _stored(rows.tobytes())
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _stored(raw: bytes) -> bytes:
    blocks = [raw[i : i + _LARGEST_BLOCK] for i in range(0, len(raw), _LARGEST_BLOCK)]
    parts = [_ZLIB_HEADER]
    for number, block in enumerate(blocks, start=1):
        last = number == len(blocks)
        parts += [struct.pack("<BHH", last, len(block), len(block) ^ 0xFFFF), block]
    parts.append(struct.pack(">I", zlib.adler32(raw)))
    return b"".join(parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


REVISION = pinned_revision()
"""Part of every seed, and the revision in the cards: a new one makes new pictures throughout."""


def chance(*seed: str | int) -> Chance:
    """A stream of choices that belongs to this revision."""
    return Chance(REVISION, *seed)


def shoot(scene: Scene, image_id: str) -> bytes:
    """The picture of a scene as a PNG file; the id chooses among the many possible pictures."""
    return picture_png(arrange(scene, chance("picture", image_id)))


def later(scene: Scene, image_id: str) -> Callable[[], bytes]:
    """`shoot`, put off until it is called."""
    return partial(shoot, scene, image_id)
