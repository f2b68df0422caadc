"""A metric with two outputs. YOUR METRIC GOES INTO `Scorer.score_pair`.

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
    """Called with many pairs at once. A pair's score may depend on nothing but that pair."""

    def score(self, images: list[Image.Image], prompts: list[str]) -> list[tuple[float, float]]:
        """A row of numbers per pair, in the order of the outputs in assay.toml.

        Args:
            images: upright RGB pictures; the same object comes again with another prompt.
            prompts: as many as images.

        Returns:
            None in place of a number, or of a row, where there is no score.
        """
        return [self.score_pair(*pair) for pair in zip(images, prompts, strict=True)]

    def score_pair(self, image: Image.Image, prompt: str) -> tuple[float, float]:
        """PUT YOUR METRIC HERE. This one: are the named colours there, and is there contrast."""
        pixels = np.asarray(image.convert("RGB"), np.float64).reshape(-1, 3)
        return _alignment(pixels, prompt), _quality(pixels)


def _alignment(pixels: np.ndarray, prompt: str) -> float:
    """How far the named colours and brightness are shown."""
    words = prompt.lower().replace(",", " ").replace(".", " ").split()
    found = [_colour(pixels, COLOURS[word]) for word in words if word in COLOURS]
    light = float(pixels.mean()) / 255.0
    found += [1.0 - abs(light - BRIGHTNESS[word]) for word in words if word in BRIGHTNESS]
    return sum(found) / len(found) if found else 0.5


def _quality(pixels: np.ndarray) -> float:
    """Contrast, whatever the prompt says."""
    return float(pixels.mean(axis=1).std()) / 127.5


def _colour(pixels: np.ndarray, colour: tuple[int, int, int]) -> float:
    distance = np.sqrt(((pixels - np.array(colour)) ** 2).sum(axis=1))
    return min(1.0, float((distance < NEAR).mean()) / ENOUGH)
