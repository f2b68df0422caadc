"""Images that should get the same score: other bytes of the same pixels, and one step brighter."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from benchmarks.rethinking.perturbation import plus_one


def reencoded(image: Image.Image) -> bytes:
    """The same pixels in another lossless file: WebP in place of PNG."""
    return _saved(image, "WEBP", lossless=True, exact=True, method=0)


def one_step_brighter(image: Image.Image) -> bytes:
    """Every channel value below 255 raised by one, kept without loss (Re-Thinking)."""
    return _saved(Image.fromarray(plus_one(np.asarray(image))), "PNG", compress_level=1)


def _saved(image: Image.Image, kind: str, **options: bool | int) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format=kind, **options)
    return buffer.getvalue()
