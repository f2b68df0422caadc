"""CLIPScore reads images and texts as OpenAI's own code does, not as `transformers` does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evaluator.scorers.registry import load_rows, load_scorer
from evaluator.scorers.runtime import Runtime
from tests.evaluator.scorers.tiny_dual import save_clip

MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
ODD_REST = (640, 427)
SIZES = [(640, 480), ODD_REST, (427, 640), (333, 1000), (224, 224), (17, 9)]


class Letters:
    """A tokenizer whose numbers are those of the characters."""

    pad = 0

    def whole(self, texts: Sequence[str]) -> list[list[int]]:
        return [[ord(letter) for letter in text] for text in texts]

    def cut(self, texts: Sequence[str], length: int) -> list[list[int]]:
        return [ids[:length] for ids in self.whole(texts)]


def noise(size: tuple[int, int]) -> Image.Image:
    rng = np.random.default_rng(3)
    return Image.fromarray(rng.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_pixels_are_those_of_the_authors_transform(size: tuple[int, int]) -> None:
    import torch
    from torchvision.transforms import (
        CenterCrop,
        Compose,
        InterpolationMode,
        Normalize,
        Resize,
        ToTensor,
    )
    from transformers import CLIPImageProcessorPil

    from evaluator.scorers.models.clip_like import authors_transform

    authors: Any = Compose(
        [
            Resize(224, interpolation=InterpolationMode.BICUBIC),
            CenterCrop(224),
            ToTensor(),
            Normalize(MEAN, STD),
        ]
    )
    image = noise(size)
    assert torch.equal(authors_transform(CLIPImageProcessorPil())(image), authors(image))


def test_the_processor_of_transformers_cuts_one_pixel_beside_it() -> None:
    import torch
    from transformers import CLIPImageProcessorPil

    from evaluator.scorers.models.clip_like import authors_transform

    processor, image = CLIPImageProcessorPil(), noise(ODD_REST)
    theirs = processor(images=image, return_tensors="pt")["pixel_values"][0]
    authors = authors_transform(processor)(image)
    assert not torch.allclose(theirs, authors, atol=0.1)
    assert torch.allclose(theirs[..., 1:], authors[..., :-1], atol=1e-6)


def test_curled_quotes_and_html_are_mended_before_a_text_is_read() -> None:
    from evaluator.scorers.models.text_reading import TextReading

    reading = TextReading(Letters(), 77, cleaned=True)
    (ids,) = reading.numbers([" a “red” dog &amp; a cat’s tail "])
    assert "".join(map(chr, ids)) == 'a "red" dog & a cat\'s tail'


def test_clipscore_reads_as_its_authors_do(tmp_path: Path) -> None:
    row = load_rows()["clipscore-hessel"]
    scorer: Any = load_scorer(row, Runtime(folders={"model": save_clip(tmp_path)})).scorer
    image = scorer.prepare(noise(ODD_REST))
    curled, straight = scorer.score([image] * 2, ["a “red” dog", 'a "red" dog'])
    assert curled == pytest.approx(straight, abs=1e-6)


def test_open_clip_needs_not_be_told() -> None:
    from evaluator.scorers.families.dual_encoder import DualOptions

    for more in ({"images": "clip"}, {"cleaned": True}):
        with pytest.raises(ValueError, match="without being told"):
            DualOptions.model_validate({"formula": "cos", "backend": "open_clip", **more})
