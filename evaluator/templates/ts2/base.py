"""Base classes of T2IScoreScore's metrics: the same names and methods, written for Assay."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from PIL import Image


class T2IMetric(ABC):
    """A metric of one image and one prompt.

    Args:
        device: where to compute; None: a GPU if there is one.
    """

    def __init__(self, device: str | None = None) -> None:
        self.device = device or _best_device()

    @abstractmethod
    def calculate_score(self, image: str | Path | Image.Image, prompt: str) -> float:
        """The score of an image, or of a file that holds one, with a prompt."""

    def __call__(self, image: str | Path | Image.Image, prompt: str) -> float:
        """The same."""
        return self.calculate_score(image, prompt)

    def _load_image(self, image: str | Path | Image.Image) -> Image.Image:
        return image if isinstance(image, Image.Image) else Image.open(image)


class CorrelationMetric(T2IMetric):
    """A metric with a `processor` and a `model` that gives `logits_per_image`."""

    def __init__(self, device: str | None = None) -> None:
        super().__init__(device)
        self.processor: Any = None
        self.model: Any = None

    def calculate_score(self, image: str | Path | Image.Image, prompt: str) -> float:
        """The model's logit."""
        picture = self._load_image(image)
        inputs = self.processor(text=prompt, images=picture, return_tensors="pt", padding=True)
        return float(self.model(**inputs.to(self.device)).logits_per_image.item())


class LikelihoodMetric(T2IMetric):
    """A metric made of a model's probabilities of words."""


def _best_device() -> str:
    try:
        import torch  # noqa: PLC0415 - slow to load, and seldom asked for
    except ImportError:
        return "cpu"
    return "cuda" if torch.cuda.is_available() else "cpu"
