"""Canonical images: what a sandbox is sent of an image as a benchmark keeps it."""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.scoring.images.canonical import as_png, canonical_size, is_canonical
from evaluator.scoring.images.decoding import decode


@dataclass(frozen=True, slots=True)
class CanonicalImage:
    """An image in the form that strangers' scorers see.

    Attributes:
        png: the image.
        width: in pixels.
        height: in pixels.
        remarks: (code, message) of what was done to it beyond decoding.
        decoded: whether it had to be decoded for that.
    """

    png: bytes
    width: int
    height: int
    remarks: tuple[tuple[str, str], ...] = ()
    decoded: bool = True


def canonical_image(data: bytes) -> CanonicalImage:
    """Any image as an 8-bit RGB PNG without metadata: upright, flattened on white.

    Bytes that are such a PNG already come back as they are. Sizes and compression artefacts stay
    in the pixels; colour profiles are dropped without conversion, as metrics' own loaders do.

    Raises:
        ImageError: not an image, damaged, or of more than `canonical.MAX_PIXELS`, which is found
            out before a pixel is decoded.
    """
    if is_canonical(data):
        return CanonicalImage(data, *canonical_size(data), decoded=False)
    found = decode(data)
    return CanonicalImage(as_png(found.image), *found.image.size, found.remarks)


def canonical_png(data: bytes) -> bytes:
    """Any image as an 8-bit RGB PNG without metadata; see `canonical_image`.

    Raises:
        ImageError: not an image, damaged, or of more than `canonical.MAX_PIXELS`.
    """
    return canonical_image(data).png
