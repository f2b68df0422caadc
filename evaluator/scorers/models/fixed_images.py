"""Runs an image through a processor once, and the processor on many prompts with the outcome.

How many tokens stand for an image, and which inputs go with it, only the checkpoint's own
processor knows. So its image processor is watched once, and what it made is played back for every
prompt to that image.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from PIL import Image
from transformers import BatchFeature, ProcessorMixin


@dataclass(frozen=True)
class SeenImage:
    """An image that went through its processor.

    Attributes:
        image: as it was given to the processor.
        features: what its image processor made of it.
        length: tokens of an empty prompt with this image.
    """

    image: Image.Image
    features: Mapping[str, Any]
    length: int


class WatchedImages:
    """An image processor that keeps what it made."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.made: Mapping[str, Any] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the image processor makes, kept as well."""
        made = self._inner(*args, **kwargs)
        self.made = dict(made)
        return made

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_inner"], name)


class PlayedImages:
    """An image processor that gives what was made before."""

    def __init__(self, inner: Any, made: Mapping[str, Any]) -> None:
        self._inner = inner
        self._made = made

    def __call__(self, *args: Any, **kwargs: Any) -> BatchFeature:  # noqa: ARG002
        """What was made before, whatever it is asked for."""
        return BatchFeature(dict(self._made))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_inner"], name)


def with_images(processor: ProcessorMixin, images: Any) -> Any:
    """The processor with another image processor in it; the tokenizer is shared."""
    other: Any = copy.copy(processor)
    other.image_processor = images
    return other
