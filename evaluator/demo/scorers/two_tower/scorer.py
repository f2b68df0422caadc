"""A small two-tower network: a picture and a sentence become vectors, the score is their cosine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

SIDE = 64
"""Pictures are reduced to SIDE x SIDE pixels."""
LENGTH = 32
"""Sentences are cut after so many words."""
WIDTH = 128
"""Length of the vectors that are compared."""
CHUNK = 16
THREADS = 1
"""One: where other work shares the machine, threads that wait for each other cost more than they give."""
PADDING, UNKNOWN = 0, 1
_VOCABULARY = """
, 2 3 4 5 6 7 8 9 a an the and or no not without but of with to is are there
two three four five six seven eight nine one picture image drawing that shows in
red orange yellow green blue purple pink brown black white
small large little smaller larger bigger than much striped dotted checked
circle circles square squares triangle triangles star stars diamond diamonds heart hearts
cross crosses hexagon hexagons ring rings crescent crescents
house houses tree trees car cars flower flowers boat boats fish hand hands
roof door wall window crown trunk body wheels petals centre sail hull tail fin
thumb index middle finger fingers
left right above below underneath directly inside on at meadow beach night
"""
WORDS: tuple[str, ...] = tuple(_VOCABULARY.split())
_TOKEN = re.compile(r"[a-z]+|[0-9]+|,")
_NUMBER = {word: i for i, word in enumerate(WORDS, start=2)}
Floats = NDArray[np.float32]


def pixels(image: Image.Image) -> NDArray[np.uint8]:
    """The picture as the network sees it, shape (SIDE, SIDE, 3)."""
    reduced = image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX)
    return np.array(reduced, np.uint8)


def tokens(prompt: str) -> list[int]:
    """The sentence as LENGTH numbers, filled up with PADDING."""
    found = [_NUMBER.get(word, UNKNOWN) for word in _TOKEN.findall(prompt.lower())][:LENGTH]
    return [*found, *[PADDING] * (LENGTH - len(found))]


def _convolution(before: int, after: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(before, after, 3, stride, padding=1, bias=False),
        nn.GroupNorm(8, after),
        nn.ReLU(),
    )


class ImageTower(nn.Module):
    """Convolutions that also see where they are, then a summary over the picture and a map of it."""

    where: Tensor

    def __init__(self) -> None:
        super().__init__()
        line = torch.linspace(-1, 1, SIDE)
        across, down = line.expand(SIDE, SIDE), line[:, None].expand(SIDE, SIDE)
        self.register_buffer("where", torch.stack([across, down]), persistent=False)
        self.layers = nn.Sequential(
            _convolution(5, 32, 2),
            _convolution(32, 64, 2),
            _convolution(64, 96, 2),
            _convolution(96, 128, 1),
            _convolution(128, 128, 1),
        )
        self.map = nn.Conv2d(128, 16, 1)
        self.head = nn.Sequential(nn.Linear(2 * 128 + 16 * 64, 256), nn.ReLU())
        self.out = nn.Linear(256, WIDTH)

    def forward(self, pictures: Tensor) -> Tensor:
        """Unit vectors of pictures given as uint8 of shape (n, SIDE, SIDE, 3)."""
        colours = pictures.permute(0, 3, 1, 2).float() / 127.5 - 1
        where = self.where.expand(len(pictures), -1, -1, -1)
        found = self.layers(torch.cat([colours, where], 1))
        summary = [found.mean((2, 3)), found.amax((2, 3)), self.map(found).flatten(1)]
        return functional.normalize(self.out(self.head(torch.cat(summary, 1))), dim=1)


class TextTower(nn.Module):
    """Reads word by word; keeps what it has gathered at the end and on the way."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(len(WORDS) + 2, 64, padding_idx=PADDING)
        self.reader = nn.GRU(64, 192, batch_first=True)
        self.out = nn.Linear(2 * 192, WIDTH)

    def forward(self, sentences: Tensor) -> Tensor:
        """Unit vectors of sentences given as token numbers of shape (n, LENGTH)."""
        states, _ = self.reader(self.words(sentences))
        said = (sentences != PADDING).float()
        counted = said.sum(1).clamp(min=1)
        last = states[torch.arange(len(states)), counted.long() - 1]
        mean = (states * said[:, :, None]).sum(1) / counted[:, None]
        return functional.normalize(self.out(torch.cat([last, mean], 1)), dim=1)


class Network(nn.Module):
    """Both towers, and the sharpness with which training compared their vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.images = ImageTower()
        self.texts = TextTower()
        self.log_sharpness = nn.Parameter(torch.tensor(2.7))


class Scorer:
    """Cosine of a picture's and a sentence's vector.

    Args:
        weights: the safetensors file with the network's weights; empty: the one beside this file.
        device: where to compute.
    """

    def __init__(self, weights: str = "", device: str = "cpu") -> None:
        torch.set_num_threads(THREADS)
        self._device = torch.device(device)
        stored = load_file(weights or Path(__file__).with_name("weights.safetensors"))
        network = Network()
        network.load_state_dict({name: value.float() for name, value in stored.items()})
        self.network = network.to(self._device).eval()

    def score(self, images: list[Image.Image], prompts: list[str]) -> list[float]:
        """One score per pair, -1..1; each picture and each sentence is encoded once."""
        pictures = {id(image): image for image in images}
        texts = tuple(dict.fromkeys(prompts))
        row = {key: i for i, key in enumerate(pictures)}
        column = {text: i for i, text in enumerate(texts)}
        seen, said = self.encode_images(list(pictures.values())), self.encode_texts(texts)
        wanted_images = seen[[row[id(image)] for image in images]]
        wanted_texts = said[[column[text] for text in prompts]]
        return [float(value) for value in self.similarity(wanted_images, wanted_texts)]

    def encode_images(self, images: Sequence[Image.Image]) -> Floats:
        """Unit vectors, shape (n, WIDTH)."""
        return self._encode(self.network.images, [pixels(image) for image in images])

    def encode_texts(self, prompts: Sequence[str]) -> Floats:
        """Unit vectors, shape (n, WIDTH)."""
        return self._encode(self.network.texts, [np.array(tokens(text)) for text in prompts])

    def similarity(self, image_vectors: Floats, text_vectors: Floats) -> NDArray[np.float64]:
        """Cosine of each row's picture with the same row's sentence, shape (k,)."""
        return _cosines(image_vectors, text_vectors)

    def _encode(self, tower: nn.Module, items: Sequence[NDArray[np.generic]]) -> Floats:
        """Encode in batches that are always full: no score depends on what it was asked with."""
        found = [np.zeros((0, WIDTH), np.float32)]
        for start in range(0, len(items), CHUNK):
            part = items[start : start + CHUNK]
            batch = np.stack([*part, *[part[-1]] * (CHUNK - len(part))])
            with torch.inference_mode():
                vectors = tower(torch.from_numpy(batch).to(self._device))
            found.append(vectors[: len(part)].cpu().numpy())
        return np.concatenate(found)


def _cosines(first: Floats, second: Floats) -> NDArray[np.float64]:
    """Row by row, without a matrix product, whose last digits would depend on its shape."""
    products = first.astype(np.float64) * second.astype(np.float64)
    return np.asarray(np.round(products.sum(axis=1), 6), np.float64)
