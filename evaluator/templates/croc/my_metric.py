"""An example of a metric for CROC; yours takes its place."""

from collections.abc import Sequence

from metrics.BaseMetric import BaseMetric  # type: ignore[import-not-found]
from PIL import Image

NAMES = {"red": 0, "green": 1, "blue": 2}


class MyMetric(BaseMetric):
    """Share of the picture's light that has the colours which the prompt names."""

    def __call__(
        self, caption: str | Sequence[str], image_path: str | Sequence[str]
    ) -> float | list[float]:
        """A number for one pair, a list of numbers for lists."""
        if isinstance(caption, str):
            return self.one(caption, str(image_path))
        return [self.one(*pair) for pair in zip(caption, image_path, strict=True)]

    def get_state(self) -> str:
        """Nothing can be set."""
        return "MyMetric"

    def one(self, caption: str, path: str) -> float:
        """0 to 1; 0.5 where no colour is named."""
        picture = Image.open(path).convert("RGB").resize((32, 32))
        light = [sum(band.getdata()) for band in picture.split()]
        named = [light[NAMES[word]] for word in caption.lower().split() if word in NAMES]
        return sum(named) / len(named) / max(sum(light), 1) if named else 0.5
