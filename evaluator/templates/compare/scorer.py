"""A metric that compares two images of a prompt. YOUR METRIC GOES INTO `Scorer.compare_pair`.

It needs nothing but numpy and Pillow, and stands here so that everything around it can be tried.
"""

from __future__ import annotations

import numpy as np
from PIL import Image

COLOURS = {
    "red": (222, 46, 52),
    "orange": (246, 140, 36),
    "yellow": (250, 212, 44),
    "green": (52, 160, 78),
    "blue": (44, 104, 214),
    "purple": (136, 66, 178),
    "pink": (246, 136, 182),
    "brown": (130, 82, 46),
    "black": (25, 25, 25),
    "white": (250, 250, 250),
}
BRIGHTNESS = {"dark": 0.0, "night": 0.0, "bright": 1.0, "sunny": 1.0}
NEAR = 60.0
"""How far from a colour a pixel may be."""
ENOUGH = 0.01
"""A colour is certainly there if it covers this share of the picture."""


class Scorer:
    """Called with many comparisons at once. Each may depend on nothing but its prompt and images."""

    def compare(
        self, prompts: list[str], images_a: list[Image.Image], images_b: list[Image.Image]
    ) -> list[float]:
        """One number per comparison: positive where the first image follows the prompt better.

        Args:
            prompts: as many as comparisons.
            images_a: upright RGB pictures, the first of each comparison.
            images_b: the second of each.

        Returns:
            None for a comparison of which there is nothing to say.
        """
        return [self.compare_pair(*one) for one in zip(prompts, images_a, images_b, strict=True)]

    def compare_pair(self, prompt: str, a: Image.Image, b: Image.Image) -> float:
        """PUT YOUR METRIC HERE. This one: which image shows more of the named colours."""
        return _likeness(prompt, a) - _likeness(prompt, b)


def _likeness(prompt: str, image: Image.Image) -> float:
    pixels = np.asarray(image.convert("RGB"), np.float64).reshape(-1, 3)
    words = prompt.lower().replace(",", " ").replace(".", " ").split()
    found = [_colour(pixels, COLOURS[word]) for word in words if word in COLOURS]
    light = float(pixels.mean()) / 255.0
    found += [1.0 - abs(light - BRIGHTNESS[word]) for word in words if word in BRIGHTNESS]
    return sum(found) / len(found) if found else 0.5


def _colour(pixels: np.ndarray, colour: tuple[int, int, int]) -> float:
    distance = np.sqrt(((pixels - np.array(colour)) ** 2).sum(axis=1))
    return min(1.0, float((distance < NEAR).mean()) / ENOUGH)
