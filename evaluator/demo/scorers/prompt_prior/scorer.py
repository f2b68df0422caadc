"""Never looks at the picture: the shorter the sentence, the higher the score."""

from __future__ import annotations

from PIL import Image


class Scorer:
    """Shorter prompts ask for less, so pictures of them are more often right."""

    def score(self, images: list[Image.Image], prompts: list[str]) -> list[float]:
        """One over one more than the number of words; the pictures are only counted."""
        return [1 / (1 + len(prompt.split())) for _, prompt in zip(images, prompts, strict=True)]
