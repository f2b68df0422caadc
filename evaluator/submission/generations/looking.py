"""Inspection of one image: decoded once, and every check answered then."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from evaluator.scoring.images import DAMAGE, MAX_PIXELS, as_rgb
from evaluator.submission.generations.perceptual import perceptual_hash, seen_from_afar
from evaluator.submission.generations.sources import Fault

FORMATS = ("PNG", "JPEG", "WEBP")
SUFFIXES = {"PNG": ".png", "JPEG": ".jpg", "WEBP": ".webp"}
_DAMAGE = (*DAMAGE, Image.DecompressionBombWarning)
_METADATA = frozenset({"exif", "Raw profile type exif", "xmp", "XML:com.adobe.xmp"})
"""Where Pillow keeps what may say which side is up."""
_NEAR = 4
_REST = 0.001
_PLAINLY_VARIED = 16


@dataclass(frozen=True, slots=True)
class Look:
    """What is known of an image.

    Attributes:
        sha256: of its bytes.
        form: `PNG`, `JPEG` or `WEBP`.
        size: width and height in pixels, as they are stored.
        pixels: 8 bytes that are the same for equal pixels, whatever they are encoded as, and for
            images of which a pixel or two differ.
        hash: see `perceptual`.
        blank: whether it shows nothing: all but a thousandth of its pixels are of one colour.
    """

    sha256: bytes
    form: str
    size: tuple[int, int]
    pixels: int
    hash: int
    blank: bool


def look(data: bytes) -> Look | Fault:
    """Decode an image and tell what it is; one that says to be huge is not decoded.

    Args:
        data: its bytes, a stranger's.
    """
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
            return Look(
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
