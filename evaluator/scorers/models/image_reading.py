"""Image preprocessing before, or in place of, a checkpoint's own image processor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional
from torchvision.transforms import InterpolationMode
from torchvision.transforms.functional import (
    center_crop,
    normalize,
    pil_to_tensor,
    resize,
    to_tensor,
)

ImageReading = Literal["checkpoint", "clip", "squashed_224", "longest_padded"]
_SETTINGS = ("size", "crop_size", "resample", "image_mean", "image_std", "rescale_factor")
ToPixels = Callable[[Image.Image], Tensor]


@dataclass(frozen=True, slots=True)
class Processed:
    """A `transformers` image processor."""

    processor: Any

    def __call__(self, image: Image.Image) -> Tensor:
        """Pixels, shape (3, height, width)."""
        pixels: Tensor = self.processor(images=image, return_tensors="pt")["pixel_values"][0]
        return pixels

    @property
    def described(self) -> str:
        """Its class and settings."""
        settings = self.processor.to_dict()
        shown = {name: settings[name] for name in _SETTINGS if settings.get(name) is not None}
        return f"{type(self.processor).__name__} {shown}"


@dataclass(frozen=True, slots=True)
class Squashed:
    """Squeezes an image to a square first, without a crop: what CROC's scripts do (Pillow).

    Attributes:
        side: of the square.
        then: the checkpoint's own way.
    """

    side: int
    then: ToPixels

    def __call__(self, image: Image.Image) -> Tensor:
        """Pixels, shape (3, height, width)."""
        square = image.resize((self.side, self.side), Image.Resampling.BILINEAR)
        return self.then(square)


@dataclass(frozen=True, slots=True)
class ShortestCropped:
    """OpenAI's way: the shortest side becomes `side` by bicubic (Pillow), the middle is cut out.

    Where an odd number of pixels is left over, `transformers` cuts one pixel further to the left or
    top than the authors' transform in every second case: at 640 x 427 and 224, from 55 and not 56.

    Attributes:
        side: of the square.
        mean: subtracted, for red, green, blue.
        std: divided by.
    """

    side: int
    mean: Sequence[float]
    std: Sequence[float]

    def __call__(self, image: Image.Image) -> Tensor:
        """Pixels, shape (3, side, side)."""
        small = resize(image, [self.side], InterpolationMode.BICUBIC)
        square = to_tensor(center_crop(small, [self.side]))
        found: Tensor = normalize(square, list(self.mean), list(self.std))
        return found


@dataclass(frozen=True, slots=True)
class LongestPadded:
    """HPSv2's way: the longest side becomes `side` by tensor bicubic, zeros fill up the square.

    Attributes:
        side: of the square.
        mean: subtracted after padding, for red, green, blue.
        std: divided by.
        antialias: whether the resize smooths, which moves pixels by up to 17 levels of 255;
            torchvision does for tensors from 0.17 on.
    """

    side: int
    mean: Sequence[float]
    std: Sequence[float]
    antialias: bool = True

    def __call__(self, image: Image.Image) -> Tensor:
        """Pixels, shape (3, side, side)."""
        pixels = pil_to_tensor(image).float() / 255
        height, width = pixels.shape[1:]
        scale = self.side / max(height, width)
        if scale != 1:
            size = [max(1, round(height * scale)), max(1, round(width * scale))]
            pixels = functional.interpolate(
                pixels[None],
                size,
                mode="bicubic",
                align_corners=False,
                antialias=self.antialias,
            )[0]
        down, across = self.side - pixels.shape[1], self.side - pixels.shape[2]
        around = [across // 2, across - across // 2, down // 2, down - down // 2]
        padded = functional.pad(pixels, around)
        found: Tensor = normalize(padded, list(self.mean), list(self.std))
        return found


def stack(pixels: Sequence[Tensor], device: torch.device, dtype: torch.dtype) -> Tensor:
    """One batch on the device."""
    return torch.stack(list(pixels)).to(device=device, dtype=dtype)
