"""Inputs of models: image preprocessing and tokenization of prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from open_clip.tokenizer import basic_clean  # type: ignore[import-untyped]
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
    """Squeezes an image to a square first, without a crop: what CROC's scripts do (Pillow)."""

    side: int  # of the square
    then: ToPixels  # the checkpoint's own way

    def __call__(self, image: Image.Image) -> Tensor:
        """Pixels, shape (3, height, width)."""
        square = image.resize((self.side, self.side), Image.Resampling.BILINEAR)
        return self.then(square)


@dataclass(frozen=True, slots=True)
class ShortestCropped:
    """OpenAI's way: the shortest side becomes `side` by bicubic (Pillow), the middle is cut out.

    Where an odd number of pixels is left over, `transformers` cuts one pixel further to the left or
    top than the authors' transform in every second case: at 640 x 427 and 224, from 55 and not 56.
    """

    side: int  # of the square
    mean: Sequence[float]  # subtracted, for red, green, blue
    std: Sequence[float]  # divided by

    def __call__(self, image: Image.Image) -> Tensor:
        """Pixels, shape (3, side, side)."""
        small = resize(image, [self.side], InterpolationMode.BICUBIC)
        square = to_tensor(center_crop(small, [self.side]))
        found: Tensor = normalize(square, list(self.mean), list(self.std))
        return found


@dataclass(frozen=True, slots=True)
class LongestPadded:
    """HPSv2's way: the longest side becomes `side` by tensor bicubic, zeros fill up the square."""

    side: int  # of the square
    mean: Sequence[float]  # subtracted after padding, for red, green, blue
    std: Sequence[float]  # divided by
    # whether the resize smooths, which moves pixels by up to 17 levels of 255; torchvision does for
    # tensors from 0.17 on
    antialias: bool = True

    def __call__(self, image: Image.Image) -> Tensor:
        """Pixels, shape (3, side, side)."""
        pixels = pil_to_tensor(image).float() / 255
        height, width = pixels.shape[1:]
        scale = self.side / max(height, width)
        if scale != 1:
            size = [max(1, round(height * scale)), max(1, round(width * scale))]
            pixels = functional.interpolate(
                pixels[None], size, mode="bicubic", align_corners=False, antialias=self.antialias
            )[0]
        down, across = self.side - pixels.shape[1], self.side - pixels.shape[2]
        around = [across // 2, across - across // 2, down // 2, down - down // 2]
        padded = functional.pad(pixels, around)
        found: Tensor = normalize(padded, list(self.mean), list(self.std))
        return found


def stack(pixels: Sequence[Tensor], device: torch.device, dtype: torch.dtype) -> Tensor:
    """One batch on the device."""
    return torch.stack(list(pixels)).to(device=device, dtype=dtype)


Padding = Literal["longest", "max_length", "none"]
Truncation = Literal["end_kept", "sliced"]


class Tokens(Protocol):
    """A tokenizer."""

    pad: int  # Number that fills up rows

    def whole(self, texts: Sequence[str]) -> list[list[int]]:
        """All numbers of each text, with those of its start and end."""

    def cut(self, texts: Sequence[str], length: int) -> list[list[int]]:
        """The same, at most `length`, the end's number kept."""


@dataclass(frozen=True, slots=True)
class TextReading:
    """How prompts are read."""

    tokens: Tokens  # the model's tokenizer
    length: int  # most numbers the model reads, those of start and end included
    prefix: str = ""  # put before every prompt
    # `longest` fills rows up to the longest beside them, for models that see no padding;
    # `max_length` up to `length`; `none` gives each text its own length
    padding: Padding = "longest"
    # `end_kept` cuts before the number of the end; `sliced` cuts it off as well
    truncation: Truncation = "end_kept"
    # whether texts are mended as by CLIP's own tokenizer: broken or curled characters made plain,
    # HTML's `&amp;` and the like resolved. That of `transformers` does not
    cleaned: bool = False

    def numbers(self, prompts: Sequence[str]) -> list[list[int]]:
        """Token numbers of each prompt, cut, not padded."""
        texts = self._texts(prompts)
        if self.truncation == "sliced":
            return [ids[: self.length] for ids in self.tokens.whole(texts)]
        return self.tokens.cut(texts, self.length)

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Whether the end of each prompt is cut."""
        texts = self._texts(prompts)
        return [len(ids) > self.length for ids in self.tokens.whole(texts)]

    def encode(
        self, prompts: Sequence[str], rows: int, encode: Callable[[Tensor, Tensor], Tensor]
    ) -> Tensor:
        """Run a text tower over prompts, texts of like length together.

        Returns: Features, shape (m, d).
        """
        numbers = self.numbers(prompts)
        found: dict[int, Tensor] = {}
        for places in self._batches(numbers, rows):
            ids, mask = self._padded([numbers[place] for place in places])
            found.update(zip(places, encode(ids, mask), strict=True))
        return torch.stack([found[place] for place in range(len(prompts))])

    def _texts(self, prompts: Sequence[str]) -> list[str]:
        texts = [self.prefix + prompt for prompt in prompts]
        return [basic_clean(text) for text in texts] if self.cleaned else texts

    def _batches(self, numbers: Sequence[list[int]], rows: int) -> Iterator[list[int]]:
        order = sorted(range(len(numbers)), key=lambda place: len(numbers[place]))
        batch: list[int] = []
        for place in order:
            other = batch and self.padding == "none"
            if len(batch) == rows or (other and len(numbers[batch[0]]) != len(numbers[place])):
                yield batch
                batch = []
            batch.append(place)
        if batch:
            yield batch

    def _padded(self, rows: Sequence[list[int]]) -> tuple[Tensor, Tensor]:
        width = self.length if self.padding == "max_length" else max(map(len, rows))
        ids = torch.full((len(rows), width), self.tokens.pad)
        mask = torch.zeros_like(ids)
        for place, row in enumerate(rows):
            ids[place, : len(row)] = torch.tensor(row)
            mask[place, : len(row)] = 1
        return ids, mask
