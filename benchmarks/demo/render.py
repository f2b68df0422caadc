"""Paints a picture with integer arithmetic, so that its pixels are the same on every machine."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.demo import png
from benchmarks.demo.chance import Chance
from benchmarks.demo.figures import FULL, OBJECTS, OUTLINE, Coverage, coverage
from benchmarks.demo.layout import SIDE, Picture, Placed, arrange
from benchmarks.demo.scenes import Scene

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
    return png.encode(render(picture))


def draw(scene: Scene, rng: Chance) -> NDArray[np.uint8]:
    """A picture of a scene as RGB pixels, shape (SIDE, SIDE, 3); another one at each call."""
    return render(arrange(scene, rng))


def render(picture: Picture) -> NDArray[np.uint8]:
    """Paint a picture.

    Returns:
        RGB pixels, shape (SIDE, SIDE, 3).
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
