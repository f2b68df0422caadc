"""Questions and a stand-in for a session, for the tests of scoring."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from typing import Self

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from benchmarks.schema import Element, Pair, Questions
from evaluator.isolation.inside.frames import Capability


def picture(number: int) -> bytes:
    """An image that differs from any other number's."""
    buffer = io.BytesIO()
    Image.new("RGB", (2, 2), (number % 256, number // 256, 7)).save(buffer, format="PNG")
    return buffer.getvalue()


def questions_of(pairs: Sequence[tuple[int, int]], *, elements: bool = False) -> Questions:
    """Questions over numbered images and texts."""

    def image(number: int) -> Callable[[], bytes]:
        return lambda: picture(number)

    texts = sorted({text for _, text in pairs})
    return Questions(
        images={f"image-{i}": image(i) for i in sorted({i for i, _ in pairs})},
        texts={f"text-{t}": f"prompt number {t}" for t in texts},
        pairs=tuple(Pair(f"pair-{n}", f"image-{i}", f"text-{t}") for n, (i, t) in enumerate(pairs)),
        elements={f"text-{t}": (Element("a", f"part {t}"),) for t in texts[::2]}
        if elements
        else {},
    )


PAIRS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)), max_size=60)


class FakeSession:
    """Scores by content alone, counts what it is asked, and fails when told to."""

    def __init__(self, *, fails_after: int | None = None, elements: bool = False) -> None:
        self.capabilities = Capability.SCORE
        if elements:
            self.capabilities |= Capability.SCORE_ELEMENTS
        self.peak_memory_bytes = 1000
        self.fails_after = fails_after
        self.images: list[bytes] = []
        self.entered = self.left = 0
        self.batches: list[list[tuple[int, str]]] = []

    def __enter__(self) -> Self:
        self.entered += 1
        return self

    def __exit__(self, *reason: object) -> None:
        self.left += 1

    def score(
        self, images: Sequence[bytes], pairs: Sequence[tuple[int, str]]
    ) -> NDArray[np.float64]:
        if self.fails_after is not None and len(self.batches) >= self.fails_after:
            raise RuntimeError("the box is gone")
        self.images += images
        self.batches.append(list(pairs))
        return np.array([content_score(images[i], prompt) for i, prompt in pairs])

    def score_elements(
        self,
        images: Sequence[bytes] | None,
        items: Sequence[tuple[int, str, Sequence[str]]],
    ) -> list[NDArray[np.float64]]:
        assert images is None
        sent = self.images[-1 - max(image for image, _ in self.batches[-1]) :]
        return [
            np.array([content_score(sent[image], text) for text in texts])
            for image, _, texts in items
        ]


def content_score(image: bytes, text: str) -> float:
    """A number that depends on the image's pixels and the text, and on nothing else."""
    pixels = Image.open(io.BytesIO(image)).tobytes()
    return int.from_bytes(hashlib.sha256(pixels + text.encode()).digest()[:4], "big") / 2**32
