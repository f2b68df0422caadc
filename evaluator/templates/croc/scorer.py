"""Runs a metric of CROC's `metrics` folder as it is; see WRAPPED."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Sequence
from typing import Any

from picture_files import PictureFiles  # type: ignore[import-not-found]
from PIL import Image

WRAPPED = "metrics.my_metric:MyMetric"
"""module:Class of the metric."""
IMAGES_AS = "path"
"""`path`: the metric is handed names of PNG files, as CROC does; `pil`: pictures."""
IN_BATCHES = True
"""Whether the metric takes lists; else it is called with one prompt and one image."""
OPTIONS: dict[str, Any] = {}
"""Further keywords for its constructor."""


class Scorer:
    """Calls the metric with prompts and images, in this order, as CROC does.

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
            return self._scores(list(images), list(prompts))
        with PictureFiles() as files:
            return self._scores(files.paths(images), list(prompts))

    def _scores(self, images: list[Any], prompts: list[str]) -> list[float]:
        if IN_BATCHES:
            return [float(value) for value in self.metric(prompts, images)]
        return [float(self.metric(*pair)) for pair in zip(prompts, images, strict=True)]
