"""Small images, and the content of their files."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image


def encoded(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    """The file of an image."""
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def opened(data: bytes) -> Image.Image:
    """The image of a file, as RGB."""
    return Image.open(io.BytesIO(data)).convert("RGB")


def noise(seed: int, width: int = 8, height: int = 8) -> Image.Image:
    """Coloured noise, another one for each seed."""
    rng = np.random.default_rng(seed)
    return Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))
