"""Images and questions of no meaning for taking times: 1/f noise, as photographs have it."""

from __future__ import annotations

import io
import os
import struct
import sys
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from PIL import Image

from benchmarks.schema import Pair, Questions

SIDE, QUALITY = 512, 95
_WORDS = ("red", "small", "old", "cup", "dog", "tree", "blue", "house", "near", "under", "lamp")
_APPLICATION_15 = b"\xff\xef"


@cache
def noise_jpeg(seed: int, side: int = SIDE) -> bytes:
    """A square JPEG of about 160 KiB at 512 pixels."""
    rng = np.random.default_rng(seed)
    steps = np.fft.fftfreq(side)
    distance = np.hypot(steps[:, None], steps[None])
    distance[0, 0] = np.inf
    waves = np.fft.fft2(rng.normal(size=(3, side, side))) / distance
    values = np.fft.ifft2(waves).real.transpose(1, 2, 0)
    low, high = values.min(), values.max()
    pixels = ((values - low) / (high - low) * 255).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=QUALITY)
    return buffer.getvalue()


def numbered(jpeg: bytes, number: int) -> bytes:
    """The same picture in other bytes: a segment that decoders skip holds the number."""
    body = struct.pack(">Q", number)
    return jpeg[:2] + _APPLICATION_15 + struct.pack(">H", len(body) + 2) + body + jpeg[2:]


def prompts(n: int) -> list[str]:
    """Texts of 6 to 15 words, no two the same."""
    rng = np.random.default_rng(n)
    texts = (" ".join(rng.choice(_WORDS, rng.integers(5, 15))) for _ in range(n))
    return [f"{text} {number}" for number, text in enumerate(texts)]


def croc_like(images: Sequence[Callable[[], bytes]], per_pair: int = 10) -> Questions:
    """Each `per_pair` images share two texts, and both are asked of each."""
    texts = prompts(2 * -(-len(images) // per_pair))
    pairs = [
        Pair(f"{image}|{side}", str(image), str(2 * (image // per_pair) + side))
        for image in range(len(images))
        for side in range(2)
    ]
    return Questions(
        {str(number): image for number, image in enumerate(images)},
        {str(number): text for number, text in enumerate(texts)},
        tuple(pairs),
    )


def on_one_thread(module: str) -> None:
    """Start again with one thread: libraries read the number when they are loaded."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    if any(os.environ.get(name) != value for name, value in limits.items()):
        command = [sys.executable, "-m", module, *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, **limits})
