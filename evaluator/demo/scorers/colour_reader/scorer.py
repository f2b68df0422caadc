"""Reads which colours a prompt names and looks for pixels of these colours. Nothing else."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray
from PIL import Image

COLOURS: dict[str, tuple[tuple[int, int, int], int]] = {
    "red": ((222, 46, 52), 45),
    "orange": ((246, 140, 36), 45),
    "yellow": ((250, 212, 44), 45),
    "green": ((52, 160, 78), 45),
    "blue": ((44, 104, 214), 45),
    "purple": ((136, 66, 178), 45),
    "pink": ((246, 136, 182), 45),
    "brown": ((130, 82, 46), 28),  # narrower: the outline of an orange thing comes close
    "black": ((40, 40, 46), 28),
    "white": ((251, 251, 249), 8),  # narrower: many grounds are nearly white
}
"""Name to (red, green, blue) and how far from it a pixel may be."""
ENOUGH = 0.004
"""A colour is certainly there if it covers this share of the picture."""
SAYS_NOTHING = 0.5
_WORD = re.compile(r"[a-z]+")


class Scorer:
    """Share of the named colours that the picture shows."""

    def score(self, images: list[Image.Image], prompts: list[str]) -> list[float]:
        """0..1 per pair; 0.5 where the prompt names no colour."""
        pictures = {id(image): image for image in images}
        seen = {key: colour_shares(image) for key, image in pictures.items()}
        return [
            _agreement(seen[id(image)], prompt)
            for image, prompt in zip(images, prompts, strict=True)
        ]


def colour_shares(image: Image.Image) -> dict[str, float]:
    """How certainly each colour is in the picture, 0..1."""
    pixels = np.asarray(image.convert("RGB"), np.int32).reshape(-1, 3)
    distances = np.stack([_squared(pixels, colour) for colour, _ in COLOURS.values()], 1)
    nearest = distances.argmin(1)
    found = {}
    for i, (name, (_, reach)) in enumerate(COLOURS.items()):
        share = np.count_nonzero((nearest == i) & (distances[:, i] <= reach**2)) / len(pixels)
        found[name] = min(1.0, share / ENOUGH)
    return found


def _squared(pixels: NDArray[np.int32], colour: tuple[int, int, int]) -> NDArray[np.int32]:
    difference = pixels - np.array(colour, np.int32)
    return np.asarray(np.einsum("nc,nc->n", difference, difference), np.int32)


def _agreement(seen: dict[str, float], prompt: str) -> float:
    named = [word for word in dict.fromkeys(_WORD.findall(prompt.lower())) if word in COLOURS]
    if not named:
        return SAYS_NOTHING
    return sum(seen[name] for name in named) / len(named)
