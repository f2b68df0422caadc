"""Perturbation of Re-Thinking: an image that nobody can tell from the original."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def plus_one(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Raise every 8-bit channel value below 255 by one; 255 stays.

    Nobody sees the difference, so a score should not move. It belongs on the decoded image, before
    anything a metric does to it, and the result must be kept without loss (PNG).
    """
    if image.dtype != np.uint8:
        raise ValueError(f"an image of 8-bit channel values is needed, not of {image.dtype}")
    return image + (image < 255).astype(np.uint8)
