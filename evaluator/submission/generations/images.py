"""Inspection of one image: decoded once, and every check answered then.

The perceptual hash is one that images keep when they are encoded again or scaled: 64 bits of their
low frequencies. An image's luma is averaged down to 32 x 32, and of its discrete cosine transform
(type II) the 64 lowest frequencies are kept, in the order of u + v, without the first, which is the
brightness. Bit k says whether coefficient k is above the median of the 64 (Zauner, pHash, 2010).
Half of the bits are ones, so that hashes differ in an even number of them.

`ALIKE` was measured on the 304 pictures that simulated models drew of the prompts of `demo_gecko`:
two models' pictures of one prompt are alike in 0.2% of 456 pairs (1.1% at a distance of 4), any two
pictures in 0.002% of 46,056. Alike to the original are 98% of the pictures as JPEG of quality 50,
95% as WebP of quality 60, 89% as JPEG of quality 20, and 99% or more at other sizes, blurred, or with
one pixel changed; cut by 2% at each edge only half of them (`python -m benchmarks_perf copies`).
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from benchmarks.arrays import FloatArray
from evaluator.scoring.images import DAMAGE, MAX_PIXELS, as_rgb
from evaluator.submission.generations.sources import Fault

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


FORMATS = ("PNG", "JPEG", "WEBP")
SUFFIXES = {"PNG": ".png", "JPEG": ".jpg", "WEBP": ".webp"}
_DAMAGE = (*DAMAGE, Image.DecompressionBombWarning)
_METADATA = frozenset({"exif", "Raw profile type exif", "xmp", "XML:com.adobe.xmp"})
"""Where Pillow keeps what may say which side is up."""
_NEAR = 4
_REST = 0.001
_PLAINLY_VARIED = 16


@dataclass(frozen=True, slots=True)
class ImageInspection:
    """What is known of an image."""

    sha256: bytes  # of its bytes
    form: str  # `PNG`, `JPEG` or `WEBP`
    size: tuple[int, int]  # width and height in pixels, as they are stored
    # 8 bytes that are the same for equal pixels, whatever they are encoded as, and for images of
    # which a pixel or two differ
    pixels: int
    hash: int  # see `perceptual`
    blank: bool  # whether it shows nothing: all but a thousandth of its pixels are of one colour


def look(data: bytes) -> ImageInspection | Fault:
    """Decode an image and tell what it is; one that says to be huge is not decoded."""
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            size, form = image.size, str(image.format)
            if size[0] * size[1] > MAX_PIXELS:
                return Fault("wrong_size", f"{size[0]} x {size[1]} pixels are too many")
            if form not in SUFFIXES or getattr(image, "is_animated", False):
                return Fault("corrupt", "it has several frames, and one image is wanted")
            image.load()
            if not _METADATA.isdisjoint(image.info):
                ImageOps.exif_transpose(image, in_place=True)
            plain = image.mode == "RGB" and not image.has_transparency_data
            rgb = image if plain else as_rgb(image)
            small = seen_from_afar(rgb)
            luma = small.convert("L")
            return ImageInspection(
                hashlib.sha256(data).digest(),
                form,
                size,
                _fingerprint(small),
                perceptual_hash(luma),
                _is_blank(rgb, luma),
            )
    except (UnidentifiedImageError, Image.DecompressionBombError):
        return Fault("corrupt", f"it is no image as {', '.join(FORMATS)}")
    except _DAMAGE as error:
        return Fault("corrupt", f"it is a damaged image ({str(error)[:120]})")


def _fingerprint(small: Image.Image) -> int:
    # A hash of all pixels takes as long as decoding a JPEG, and one changed pixel would escape it.
    return int.from_bytes(hashlib.blake2b(small.tobytes(), digest_size=8).digest(), "big")


def _is_blank(rgb: Image.Image, luma: Image.Image) -> bool:
    # Most images are told from blank ones by what is seen from afar.
    levels = sorted(luma.tobytes())
    tenth = len(levels) // 10
    if levels[-tenth] - levels[tenth] > _PLAINLY_VARIED:
        return False
    counts = np.array(rgb.histogram()).reshape(3, 256)
    return all(_most_near(channel) >= 1 - _REST for channel in counts)


def _most_near(counts: np.ndarray[tuple[int], np.dtype[np.int_]]) -> float:
    """The greatest share of pixels within 4 levels of one level, of one channel."""
    sums = np.convolve(counts, np.ones(2 * _NEAR + 1, int), "same")
    return float(sums.max() / counts.sum())
