"""A small dual encoder, trained from nothing on contrast pairs: the network of the bundled `two-tower`."""

from __future__ import annotations

import importlib.util
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from evaluator.bundled import FOLDER
from evaluator.scoring.images import decode
from evaluator.training.data import TrainingData, contrast_pairs
from evaluator.training.recipe import (
    Count,
    CountOrNone,
    Example,
    Examples,
    ExportedModule,
    NotNegative,
    Positive,
    Recipe,
    Schedule,
    Share,
    TrainingSettings,
    cosine,
)

if TYPE_CHECKING:
    from torch import Tensor, nn

MODULE = FOLDER / "two_tower" / "scorer.py"
"""The scoring module that holds the network, and is exported with new weights."""
_ALIKE = "prompts that the vocabulary of the network cannot tell apart"
_ONE_SIDED = "pairs that lack the images of a side"


class DualEncoderSettings(TrainingSettings):
    """For some hundred pairs; the bundled one was trained on 12,000 with batches of 64."""

    batch: Count = 32
    epochs: Count = 30
    rate: Positive = 2e-3
    weight_decay: NotNegative = 0.02
    warmup_steps: CountOrNone = 20
    held_out: Share = 0.2


@dataclass(frozen=True)
class ContrastSides:
    """A pair of images with their texts; each side may be worded in several ways."""

    texts: tuple[tuple[str, ...], tuple[str, ...]]
    images: tuple[str, str]
    # whether the image of a side is wrong for the other side's text; an image with one thing more
    # also shows what the shorter text asks for
    wrong: tuple[bool, bool] = (True, True)

    def example(self, example_id: str, images: Mapping[str, Any]) -> Example:
        """The example; `images` reads encoded images by id."""
        used = {one: images[one] for one in self.images}
        return Example(example_id, tuple(dict.fromkeys(sum(self.texts, ()))), used, self)


@dataclass(frozen=True)
class Batch:
    """Neighbouring rows are the two sides of a pair."""

    pictures: Tensor  # uint8, shape (2 n, side, side, 3)
    sentences: Tensor  # int64, shape (2 n, length)
    wrong: Tensor  # bool, shape (2 n,)
    same: Tensor  # bool, whether two rows have the same sentence or image, shape (2 n, 2 n)

    def to(self, device: Any) -> Batch:
        """The same on a device."""
        return Batch(*(one.to(device) for one in vars(self).values()))


class DualEncoder(Recipe):
    """Contrast within the batch, and once more between the two sides of each pair."""

    name = "dual-encoder"
    summary = "A small dual encoder on pairs of prompts with images, as of CROC; minutes on a CPU."
    settings_class = DualEncoderSettings

    def __init__(self, settings: TrainingSettings | None = None) -> None:
        super().__init__(settings)
        self._pixels: dict[str, NDArray[np.uint8]] = {}  # a network input is small

    def examples(self, data: TrainingData) -> Examples:
        """An example for each image of a pair, with one of the other side."""
        tokens = network_module().tokens
        found: list[Example] = []
        dropped: Counter[str] = Counter()
        for pair in contrast_pairs(data):
            if not pair.original_images or not pair.contrast_images:
                dropped[_ONE_SIDED] += 1
                continue
            if tokens(pair.prompt) == tokens(pair.contrast):
                dropped[_ALIKE] += 1
                continue
            sides = (pair.original_images, pair.contrast_images)
            for number in range(max(map(len, sides))):
                one, other = (side[number % len(side)] for side in sides)
                contrast = ContrastSides(((pair.prompt,), (pair.contrast,)), (one, other))
                found.append(contrast.example(f"{pair.id}#{number}", data.questions.images))
        return Examples(tuple(found), dropped)

    def build(self, device: str) -> nn.Module:
        """A new network, all of which is trained."""
        network: nn.Module = network_module().Network()
        return network.to(device)

    def collate(self, examples: Sequence[Example], rng: np.random.Generator) -> Batch:
        """Both sides of each pair, each in a wording drawn at random."""
        import torch  # noqa: PLC0415 (takes seconds)

        tokens = network_module().tokens
        names: list[str] = []
        pictures: list[NDArray[np.uint8]] = []
        sentences: list[list[int]] = []
        wrong: list[bool] = []
        for one in examples:
            sides: ContrastSides = one.content
            names += sides.images
            pictures += [self._picture(image, one.images[image]) for image in sides.images]
            sentences += [tokens(texts[rng.integers(len(texts))]) for texts in sides.texts]
            wrong += sides.wrong
        images, texts = np.array(names), np.array(sentences)
        same = (images[:, None] == images) | (texts[:, None] == texts).all(axis=2)
        return Batch(
            torch.from_numpy(np.stack(pictures)),
            torch.from_numpy(texts),
            torch.tensor(wrong),
            torch.from_numpy(same),
        )

    def _picture(self, image_id: str, read: Any) -> NDArray[np.uint8]:
        if image_id not in self._pixels:
            self._pixels[image_id] = network_module().pixels(decode(read()).image)
        return self._pixels[image_id]

    def losses(self, model: Any, batch: Batch) -> dict[str, Tensor]:
        """Cross-entropy of images over texts and of texts over images, and softplus of both margins."""
        import torch  # noqa: PLC0415 (takes seconds)
        from torch.nn import functional  # noqa: PLC0415

        images, texts = model.images(batch.pictures), model.texts(batch.sentences)
        logits = model.log_sharpness.exp().clamp(max=60) * images @ texts.T
        own = torch.arange(len(logits), device=logits.device)
        beside = own ^ 1
        right, across = logits[own, own], logits[own, beside]
        hard = functional.softplus(across - right) + functional.softplus(across - right[beside])
        # What is not wrong must not be pushed away either.
        excused = batch.same.clone()
        excused[own, beside] |= ~batch.wrong
        excused[own, own] = False
        contrast = logits.masked_fill(excused, -math.inf)
        terms = {
            "text_of_image": functional.cross_entropy(contrast, own),
            "image_of_text": functional.cross_entropy(contrast.T, own),
            "contrast": (hard * batch.wrong).mean(),
        }
        return terms | {
            "total": terms["text_of_image"] + terms["image_of_text"] + terms["contrast"]
        }

    def score(
        self, model: Any, images: Sequence[Image.Image], prompts: Sequence[str]
    ) -> Sequence[float]:
        """The cosine, as the exported module has it."""
        scorer = object.__new__(network_module().Scorer)  # which would read weights from a file
        scorer.network, scorer._device = model, next(model.parameters()).device
        found: list[float] = scorer.score(list(images), list(prompts))
        return found

    def rate(self, at: Schedule) -> float:
        """Half a cosine."""
        return cosine(at, self.settings.warmup_steps)

    def export(self, model: nn.Module, folder: Path) -> ExportedModule:
        """The bundled scoring module with these weights."""
        from safetensors.torch import save  # noqa: PLC0415 (torch)

        state = {name: one.detach().cpu().contiguous() for name, one in model.state_dict().items()}
        (folder / "weights.safetensors").write_bytes(save(state))
        (folder / MODULE.name).write_bytes(MODULE.read_bytes())
        return ExportedModule(
            range=(-1.0, 1.0),
            licence="Apache-2.0",
            description="A small network with a tower for images and one for texts; the score is "
            "the cosine of their vectors.",
            card="It reads images at 64 x 64 pixels, and knows about a hundred words, those of the "
            "demo splits; any other word is unknown to it.",
        )


@cache
def network_module() -> ModuleType:
    """The scoring module that holds the network."""
    spec = importlib.util.spec_from_file_location("assay_two_tower", MODULE)
    if spec is None or spec.loader is None:
        raise ImportError(f"{MODULE} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RECIPE = DualEncoder
