"""A small dual encoder of plain torch modules, with each of the ways a scorer can be asked."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.schema import Element
from evaluator.scorers.embeddings import EmbeddingCache
from evaluator.scorers.in_process import ModelClient
from evaluator.scorers.registry import Loaded, Runtime
from evaluator.scoring.asking import Item, PairRequest, Reply, ScorerClient
from evaluator.scoring.contract import Scorer, Vectors
from tests.kit.pictures import encoded, noise

if TYPE_CHECKING:
    import torch

SIDE, WIDTH, LONGEST = 8, 16, 40


class Towers:
    """A linear layer over pixels, and a mean of embedded bytes."""

    def __init__(self) -> None:
        import torch

        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.image = torch.nn.Linear(3 * SIDE * SIDE, WIDTH).eval()
            self.text = torch.nn.Embedding(256, WIDTH).eval()

    def of_images(self, pixels: Sequence[torch.Tensor]) -> torch.Tensor:
        import torch

        return torch.nn.functional.normalize(self.image(torch.stack(list(pixels))), dim=-1)

    def of_texts(self, prompts: Sequence[str]) -> torch.Tensor:
        import torch

        rows = [self.text(torch.tensor([0, *p.encode()[:LONGEST]])).mean(0) for p in prompts]
        return torch.nn.functional.normalize(torch.stack(rows), dim=-1)


class PairTiny:
    """Scores pairs; counts what goes through its towers."""

    def __init__(self) -> None:
        self.towers = Towers()
        self.image_rows = 0
        self.text_rows = 0
        self.prepared = 0

    def prepare(self, image: Image.Image) -> torch.Tensor:
        import torch

        self.prepared += 1
        small = np.array(image.resize((SIDE, SIDE)), dtype=np.float32) / 255
        return torch.from_numpy(small).ravel()

    def score(self, images: Sequence[Any], prompts: Sequence[str]) -> list[float]:
        return self._cosines(self._images(images), self._texts(prompts)).tolist()

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        return [len(prompt.encode()) > LONGEST for prompt in prompts]

    def _images(self, images: Sequence[Any]) -> torch.Tensor:
        self.image_rows += len(images)
        return self.towers.of_images(images)

    def _texts(self, prompts: Sequence[str]) -> torch.Tensor:
        self.text_rows += len(prompts)
        return self.towers.of_texts(prompts)

    @staticmethod
    def _cosines(images: torch.Tensor, texts: torch.Tensor) -> torch.Tensor:
        return (images.double() * texts.double()).sum(-1)


class SharedTiny(PairTiny):
    """The same, an image once with all its texts."""

    def score_texts(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]]
    ) -> list[list[float]]:
        vectors = self._images(images)
        return [
            self._cosines(vector.expand(len(own), -1), self._texts(own)).tolist()
            for vector, own in zip(vectors, prompts, strict=True)
        ]


class DualTiny(PairTiny):
    """The same, each image and each text once."""

    def encode_images(self, images: Sequence[Any]) -> Vectors:
        return self._images(images).numpy()

    def encode_texts(self, prompts: Sequence[str]) -> Vectors:
        return self._texts(prompts).numpy()

    def similarity(self, image_vectors: Vectors, text_vectors: Vectors) -> NDArray[np.float64]:
        import torch

        cosines: NDArray[np.float64] = self._cosines(
            torch.from_numpy(image_vectors), torch.from_numpy(text_vectors)
        ).numpy()
        return cosines


class ElementTiny(DualTiny):
    """The same, with scores of elements."""

    def score_elements(
        self, images: Sequence[Any], prompts: Sequence[str], elements: Sequence[Sequence[str]]
    ) -> list[list[float]]:
        return [
            self.score([image] * len(own), own) if own else []
            for image, own in zip(images, elements, strict=True)
        ]


def client_of(
    scorer: Scorer, *, batch_texts: int = 64, cache: EmbeddingCache | None = None
) -> ModelClient:
    return ModelClient(Loaded(scorer, {}), Runtime(batch_texts=batch_texts), cache=cache)


def photo(number: int, form: str = "PNG", **options: Any) -> bytes:
    """The file of noise that differs from any other number's."""
    return encoded(noise(number, 10, 12), form, **options)


def item_of(
    client: ScorerClient, data: bytes, prompts: Sequence[str], elements: Sequence[str] = ()
) -> Item:
    """One image with prompts; ids follow from what they name."""
    image_id = hashlib.sha256(data).hexdigest()[:8]
    named = tuple(Element(f"e{n}", text) for n, text in enumerate(elements))
    asked = tuple(
        PairRequest(f"{image_id}|{prompt}", f"text {prompt}", prompt, named) for prompt in prompts
    )
    return Item(image_id, client.ready(data), asked)


def scores_of(reply: Reply) -> list[float]:
    return [verdict.score for verdicts in reply.verdicts for verdict in verdicts]
