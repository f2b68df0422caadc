"""Preprocessing: the authors' pixels exactly, or fast and within one grey level of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from benchmarks_perf.made_up import noise_jpeg
from evaluator.scoring.images import decode

if TYPE_CHECKING:
    from evaluator.scorers.models.inputs import ImageBackend

BACKENDS: tuple[ImageBackend, ...] = ("pil", "torchvision")
SIZES = [(128, 128), (160, 96), (90, 151), (64, 64), (40, 33)]


def picture(size: tuple[int, int]) -> Image.Image:
    return decode(noise_jpeg(3, 160)).image.crop((0, 0, *size))


@pytest.mark.parametrize("size", SIZES)
def test_the_exact_way_gives_the_floats_of_open_clip(size: tuple[int, int]) -> None:
    import open_clip  # type: ignore[import-untyped]
    import torch
    from open_clip.transform import PreprocessCfg, image_transform_v2  # type: ignore[import-untyped]

    from evaluator.scorers.models.inputs import normalised, resized_and_cropped

    mean, std = open_clip.OPENAI_DATASET_MEAN, open_clip.OPENAI_DATASET_STD
    expected = image_transform_v2(PreprocessCfg(size=64), is_train=False)(picture(size))
    found = normalised(resized_and_cropped(picture(size), 64)[None], mean, std)[0]
    assert torch.equal(found, expected)


@pytest.mark.parametrize("size", SIZES)
def test_the_fast_way_is_within_one_grey_level(size: tuple[int, int]) -> None:
    import torch

    from evaluator.scorers.models.inputs import resized_and_cropped

    exact, fast = (resized_and_cropped(picture(size), 64, way) for way in BACKENDS)
    assert exact.dtype == fast.dtype == torch.uint8
    assert exact.shape == fast.shape == (3, 64, 64)
    assert np.abs(exact.numpy().astype(int) - fast.numpy()).max() <= 1
