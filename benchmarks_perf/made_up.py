"""Made-up images, questions and ratings for taking times. Seeded: always the same."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from PIL import Image

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.schema import Pair, Questions

N_PROMPTS, N_IMAGES = 1000, 20
"""Prompts, and images of each, as EvalMuse has them."""
_WORDS = ("red", "small", "old", "cup", "dog", "tree", "blue", "house", "near", "under", "lamp")
_APPLICATION_15 = b"\xff\xef"


@cache
def noise_jpeg(seed: int, side: int = 512) -> bytes:
    """A square JPEG of 1/f noise, as photographs have it; about 160 KiB at 512 pixels."""
    rng = np.random.default_rng(seed)
    steps = np.fft.fftfreq(side)
    distance = np.hypot(steps[:, None], steps[None])
    distance[0, 0] = np.inf
    waves = np.fft.fft2(rng.normal(size=(3, side, side))) / distance
    values = np.fft.ifft2(waves).real.transpose(1, 2, 0)
    low, high = values.min(), values.max()
    pixels = ((values - low) / (high - low) * 255).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=95)
    return buffer.getvalue()


def photo_like(number: int, side: int) -> Image.Image:
    """Smooth colours with fine grain, another picture for each number."""
    rng = np.random.default_rng(number)
    coarse = Image.fromarray(rng.integers(0, 256, (12, 12, 3), dtype=np.uint8))
    smooth = np.asarray(coarse.resize((side, side), Image.Resampling.BICUBIC), np.int16)
    grain = rng.integers(-6, 7, (side, side, 1), dtype=np.int16)
    return Image.fromarray(np.clip(smooth + grain, 0, 255).astype(np.uint8))


def numbered(jpeg: bytes, number: int) -> bytes:
    """The same picture in other bytes: a segment that decoders skip holds the number."""
    body = struct.pack(">Q", number)
    return jpeg[:2] + _APPLICATION_15 + struct.pack(">H", len(body) + 2) + body + jpeg[2:]


def croc_like(images: Sequence[Callable[[], bytes]], per_pair: int = 10) -> Questions:
    """Each `per_pair` images share two texts of 6 to 15 words, and both are asked of each."""
    n_texts = 2 * -(-len(images) // per_pair)
    rng = np.random.default_rng(n_texts)
    texts = {
        str(n): f"{' '.join(rng.choice(_WORDS, rng.integers(5, 15)))} {n}" for n in range(n_texts)
    }
    pairs = [
        Pair(f"{image}|{side}", str(image), str(2 * (image // per_pair) + side))
        for image in range(len(images))
        for side in range(2)
    ]
    return Questions({str(n): image for n, image in enumerate(images)}, texts, tuple(pairs))


@dataclass(frozen=True)
class Rated:
    """Scores (n, M), people's mean ratings with ties (n,) and prompts (n,) of images."""

    scores: FloatArray
    gold: FloatArray
    prompts: IntArray

    @property
    def items(self) -> list[IntArray]:
        """The images of each prompt."""
        return np.split(np.arange(self.prompts.size), N_PROMPTS)


def rated(n_metrics: int) -> Rated:
    """Metrics about equally good at following the mean of three ratings from 1 to 5."""
    rng = np.random.default_rng(0)
    gold = rng.integers(1, 6, (N_PROMPTS * N_IMAGES, 3)).mean(axis=1)
    scores = gold[:, None] + rng.normal(size=(gold.size, n_metrics))
    return Rated(scores, gold, np.repeat(np.arange(N_PROMPTS), N_IMAGES))


def resampled_prompts(n_resamples: int = 1000) -> FloatArray:
    """Multiplicities of the prompts in bootstrap resamples, (B, C)."""
    even = np.full(N_PROMPTS, 1.0 / N_PROMPTS)
    return np.random.default_rng(1).multinomial(N_PROMPTS, even, n_resamples).astype(np.float64)


def skills(n_skills: int) -> list[IntArray]:
    """Overlapping quarters of the prompts."""
    rng = np.random.default_rng(3)
    return [np.sort(rng.permutation(N_PROMPTS)[: N_PROMPTS // 4]) for _ in range(n_skills)]
