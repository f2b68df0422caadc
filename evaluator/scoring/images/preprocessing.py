"""CLIP's image transform in two steps: resize and crop in bytes, then normalise a whole batch.

Bytes take a quarter of the memory of floats while images wait for the device. Backend `pil` gives
the bytes of the authors' transforms exactly; `torchvision` is several times faster and differs
from it by at most one grey level, so a reference row does not use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from PIL import Image
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as transforms

ImageBackend = Literal["pil", "torchvision"]


def resized_and_cropped(
    image: Image.Image, size: int, backend: ImageBackend = "pil"
) -> torch.Tensor:
    """The middle of an image whose shorter side was made `size` pixels long, bicubic.

    Args:
        image: RGB.
        size: side of the square, in pixels.
        backend: which resampling.

    Returns:
        Shape (3, size, size), uint8.
    """
    whole = image if backend == "pil" else _bytes_of(image)
    small = transforms.resize(whole, [size], InterpolationMode.BICUBIC, antialias=True)
    square = transforms.center_crop(small, [size, size])
    return (_bytes_of(square) if backend == "pil" else square).contiguous()


def normalised(pixels: torch.Tensor, mean: Sequence[float], std: Sequence[float]) -> torch.Tensor:
    """Bytes as a model's input, (x / 255 - mean) / std by channel.

    Args:
        pixels: shape (n, 3, h, w), uint8.
        mean: of each channel, for values of 0..1.
        std: of each channel.

    Returns:
        Shape (n, 3, h, w), float32.
    """
    shape = (1, len(mean), 1, 1)
    centre = torch.tensor(mean, device=pixels.device).view(shape)
    spread = torch.tensor(std, device=pixels.device).view(shape)
    return pixels.float().div_(255).sub_(centre).div_(spread)


def _bytes_of(image: Image.Image) -> torch.Tensor:
    """Shape (3, h, w), uint8, channels last in memory, as the fast kernels want them."""
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)
