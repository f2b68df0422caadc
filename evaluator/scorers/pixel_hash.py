"""The name of an image for scorers that look something up: they see pixels and no file."""

from __future__ import annotations

import hashlib

from PIL import Image


def pixel_hash(image: Image.Image) -> str:
    """SHA-256 of width, height (ASCII, as `640x480:`) and RGB bytes, row by row, in hex.

    The same for every lossless encoding of an image.
    """
    shown = image.convert("RGB")
    head = f"{shown.width}x{shown.height}:".encode()
    return hashlib.sha256(head + shown.tobytes()).hexdigest()
