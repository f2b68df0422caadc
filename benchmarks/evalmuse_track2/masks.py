"""Masks of distorted regions: one fixed size, one bit per pixel while they are kept.

A thousand masks of 512 x 512 take 32 MB so; what came in is forgotten image by image.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIZE = 512
"""Side of the square on which regions are compared, in pixels."""
MAX_SIDE = 2048
"""Longest side of a mask that is read."""
MAX_MASK_BYTES = 8 << 20
"""Largest mask that is read."""

BoolArray = NDArray[np.bool_]
PackedMask = bytes
"""A mask of SIZE x SIZE, row by row, eight pixels per byte."""
Fit = Callable[[NDArray[Any]], BoolArray]
"""Makes a mask of SIZE x SIZE of what stands in a file, or raises `MaskFileError`."""

_RESIZED_AS_THEY_ARE = frozenset({"uint8", "uint16", "int16", "float32", "float64"})


class MaskFileError(ValueError):
    """A file of masks cannot be used; the text says why and follows the name of the file."""


def pack(mask: BoolArray) -> PackedMask:
    """A mask, shape (SIZE, SIZE), as bits."""
    return np.packbits(mask).tobytes()


def unpack(bits: PackedMask) -> BoolArray:
    """The inverse of `pack`."""
    pixels = np.unpackbits(np.frombuffer(bits, np.uint8), count=SIZE * SIZE)
    return pixels.reshape(SIZE, SIZE).astype(bool)


def resized(mask: NDArray[Any]) -> BoolArray:
    """A predicted mask on the square of comparison: bilinear resize, then everything above 0.

    The organisers resize the array in the type it comes in: in whole numbers the interpolated
    values are rounded, so a region keeps its size; with decimals its border grows by what is
    above 0. Types that OpenCV cannot resize (bool, 32 and 64 bit integers) are cut at 0 first.

    Args:
        mask: shape (height, width), numbers.

    Raises:
        MaskFileError: a value is not finite.
    """
    import cv2  # noqa: PLC0415 - large, and needed only where masks are read

    _check_finite(mask)
    if mask.shape == (SIZE, SIZE):
        return np.asarray(mask > 0)
    plain = mask.astype(mask.dtype.newbyteorder("="))
    known = plain if plain.dtype.name in _RESIZED_AS_THEY_ARE else (plain > 0).astype(np.uint8)
    return np.asarray(cv2.resize(known, (SIZE, SIZE)) > 0)


def as_it_is(mask: NDArray[Any]) -> BoolArray:
    """A label mask: never resized; whatever is not 0 is distorted.

    Raises:
        MaskFileError: it is not SIZE x SIZE, or a value is not finite.
    """
    if mask.shape != (SIZE, SIZE):
        raise MaskFileError(
            f"holds a label mask of {mask.shape[0]} x {mask.shape[1]}; expected {SIZE} x {SIZE}, "
            "since label masks are compared as they are"
        )
    _check_finite(mask)
    return np.asarray(mask != 0)


def _check_finite(mask: NDArray[Any]) -> None:
    if not np.isfinite(mask).all():
        raise MaskFileError("holds a mask with values that are not finite")


def check_size(shape: tuple[object, ...], item_bytes: int) -> tuple[int, int]:
    """The shape of one mask, before memory is taken for it.

    Args:
        shape: as a file says it.
        item_bytes: size of one number.

    Raises:
        MaskFileError: it is not two whole numbers in 1..MAX_SIDE, or the mask is too large.
    """
    sides = [n for n in shape if isinstance(n, int) and not isinstance(n, bool)]
    if len(shape) != 2 or len(sides) != 2 or not all(1 <= n <= MAX_SIDE for n in sides):
        raise MaskFileError(
            f"holds a mask of shape {shape_text(shape)}; expected two sides of 1 to {MAX_SIDE}"
        )
    if sides[0] * sides[1] * item_bytes > MAX_MASK_BYTES:
        raise MaskFileError(
            f"holds a mask of more than {MAX_MASK_BYTES >> 20} MB; send it as uint8"
        )
    return sides[0], sides[1]


def shape_text(shape: tuple[object, ...]) -> str:
    """A shape for a message; what is no number is not shown."""
    return " x ".join(str(n)[:12] if isinstance(n, int) else "?" for n in shape[:4]) or "()"
