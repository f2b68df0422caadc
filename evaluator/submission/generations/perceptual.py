"""A hash that images keep when they are encoded again or scaled: 64 bits of their low frequencies.

An image's luma is averaged down to 32 x 32, and of its discrete cosine transform (type II) the 64
lowest frequencies are kept, in the order of u + v, without the first, which is the brightness. Bit
k says whether coefficient k is above the median of the 64 (Zauner, pHash, 2010). Half of the bits
are ones, so that hashes differ in an even number of them.

`ALIKE` was measured on the 304 pictures that simulated models drew of the prompts of `demo_gecko`:
two models' pictures of one prompt are alike in 0.2% of 456 pairs (1.1% at a distance of 4), any two
pictures in 0.002% of 46,056. Alike to the original are 98% of the pictures as JPEG of quality 50,
95% as WebP of quality 60, 89% as JPEG of quality 20, and 99% or more at other sizes, blurred, or with
one pixel changed; cut by 2% at each edge only half of them (`python -m benchmarks_perf copies`).
"""

from __future__ import annotations

import numpy as np
from PIL import Image

from benchmarks.arrays import FloatArray

SIDE = 32
BITS = 64
ALIKE = 2
"""Most bits that differ between two images that are the same to the eye."""
NAME = "dct64-1"
"""Of this very hash: what is stored under another name is not compared."""


def _cosines(n: int, rows: int) -> FloatArray:
    u, x = np.arange(rows)[:, None], np.arange(n)[None, :]
    return np.cos(np.pi * u * (2 * x + 1) / (2 * n))


_ROWS = 11
"""The 65 lowest of all pairs (u, v) have no greater u or v than ten."""
_BASIS = _cosines(SIDE, _ROWS)
_LOWEST = sorted(
    ((u, v) for u in range(_ROWS) for v in range(_ROWS)), key=lambda at: (at[0] + at[1], at[0])
)[1 : BITS + 1]
_AT = tuple(np.array(axis) for axis in zip(*_LOWEST, strict=True))


def seen_from_afar(image: Image.Image) -> Image.Image:
    """An RGB image as 32 x 32 pixels, each the weighted mean of its surroundings."""
    return image.resize((SIDE, SIDE), Image.Resampling.BILINEAR, reducing_gap=2.0)


def small_luma(image: Image.Image) -> Image.Image:
    """The brightness of what is seen from afar."""
    return seen_from_afar(image).convert("L")


def perceptual_hash(luma: Image.Image) -> int:
    """The hash of what `small_luma` gave, as a number below 2^64."""
    pixels = np.frombuffer(luma.tobytes(), np.uint8).reshape(SIDE, SIDE).astype(np.float64)
    found = (_BASIS @ pixels @ _BASIS.T)[_AT]
    ordered = np.sort(found)
    median = (ordered[BITS // 2 - 1] + ordered[BITS // 2]) / 2
    return int.from_bytes(np.packbits(found > median).tobytes(), "big")


def distance(one: int, other: int) -> int:
    """How many bits of two hashes differ."""
    return (one ^ other).bit_count()
