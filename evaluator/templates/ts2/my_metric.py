"""An example of a metric for T2IScoreScore; yours takes its place."""

from pathlib import Path

from PIL import Image
from T2IMetrics.base import T2IMetric  # type: ignore[import-not-found]

NAMES = {"red": 0, "green": 1, "blue": 2}


class MyMetric(T2IMetric):
    """Share of the picture's light that has the colours which the prompt names."""

    def __init__(self, device: str | None = None) -> None:
        super().__init__(device=device)

    def calculate_score(self, image: str | Path | Image.Image, prompt: str) -> float:
        """A number from 0 to 1; 0.5 where no colour is named."""
        picture = self._load_image(image).convert("RGB").resize((32, 32))
        light = [sum(band.getdata()) for band in picture.split()]
        named = [light[NAMES[word]] for word in prompt.lower().split() if word in NAMES]
        return sum(named) / len(named) / max(sum(light), 1) if named else 0.5
