"""Runs a metric of T2IScoreScore's `T2IMetrics` package as it is; see WRAPPED."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Sequence
from typing import Any

from picture_files import PictureFiles  # type: ignore[import-not-found]
from PIL import Image

WRAPPED = "T2IMetrics.my_metric:MyMetric"
"""module:Class of the metric."""
IMAGES_AS = "pil"
"""`pil`: the metric is handed pictures, as `ts2 evaluate` does; `path`: names of PNG files."""
OPTIONS: dict[str, Any] = {}
"""Further keywords for its constructor."""


class Scorer:
    """Calls `calculate_score(image, prompt)` pair by pair.

    Args:
        device: handed on if the metric's constructor names it.
    """

    def __init__(self, device: str = "cpu") -> None:
        module, _, name = WRAPPED.partition(":")
        wrapped = getattr(importlib.import_module(module), name)
        takes = inspect.signature(wrapped).parameters
        given = {"device": device} if "device" in takes else {}
        self.metric = wrapped(**given, **OPTIONS)

    def score(self, images: Sequence[Image.Image], prompts: Sequence[str]) -> list[float]:
        """One number per pair."""
        if IMAGES_AS == "pil":
            return self._scores(images, prompts)
        with PictureFiles() as files:
            return self._scores(files.paths(images), prompts)

    def _scores(self, images: Sequence[Any], prompts: Sequence[str]) -> list[float]:
        pairs = zip(images, prompts, strict=True)
        return [float(self.metric.calculate_score(image, prompt)) for image, prompt in pairs]
