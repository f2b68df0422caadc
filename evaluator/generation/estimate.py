"""Estimate of the room that images will take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluator.generation.folder import RunFolder
from evaluator.generation.rows import ImageRow

BYTES_PER_PIXEL = 1.5
"""Of a PNG of a generated photograph, about; drawings take less."""


def image_bytes(
    folder: RunFolder, rows: Sequence[ImageRow], arguments: Mapping[str, object]
) -> float | None:
    """Bytes of one image: the mean of those that are there, else about that of its pixels.

    Returns:
        None where nothing is there and the size is not known.
    """
    paths = [folder.path / row.file for row in rows if row.file]
    sizes = [path.stat().st_size for path in paths if path.is_file()]
    if sizes:
        return sum(sizes) / len(sizes)
    width, height = arguments.get("width"), arguments.get("height")
    if isinstance(width, int) and isinstance(height, int):
        return BYTES_PER_PIXEL * width * height
    return None


def readable(count: float) -> str:
    """Bytes in words: `3.2 GB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
