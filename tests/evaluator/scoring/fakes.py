"""Questions, and scorers that count what they are asked and fail when told to."""

from __future__ import annotations

import hashlib
import io
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Self

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from benchmarks.schema import Element, Pair, Questions
from evaluator.isolation.inside.wire_protocol import Capability
from evaluator.isolation.session import ScorerSession
from evaluator.scoring.asking import Finding, Item, OutOfMemoryError, Ready, Reply, Work
from evaluator.scoring.contract import Answer, Verdict
from evaluator.scoring.images import ImageError
from tests.kit.pictures import encoded


@cache
def picture(number: int) -> bytes:
    """The file of an image that differs from any other number's."""
    return encoded(Image.new("RGB", (2, 2), (number % 256, number // 256, 7)))


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


class FakeSession(ScorerSession):
    """Scores by content alone, counts what it is asked, and fails when told to."""

    peak_memory_bytes = 1000

    def __init__(self, *, fails_after: int | None = None, elements: bool = False) -> None:
        more = Capability.SCORE_ELEMENTS if elements else Capability(0)
        self._capabilities = Capability.SCORE | more
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
        self, images: Sequence[bytes] | None, items: Sequence[tuple[int, str, Sequence[str]]]
    ) -> list[NDArray[np.float64]]:
        assert images is None
        sent = self.images[-1 - max(image for image, _ in self.batches[-1]) :]
        return [
            np.array([content_score(sent[image], text) for text in texts])
            for image, _, texts in items
        ]


def content_score(image: bytes | Image.Image, text: str) -> float:
    """A number that depends on the image's pixels and the text, and on nothing else."""
    pixels = (Image.open(io.BytesIO(image)) if isinstance(image, bytes) else image).tobytes()
    return int.from_bytes(hashlib.sha256(pixels + text.encode()).digest()[:4], "big") / 2**32


UNSCORED = "a prompt nobody can score"
LONG = "a prompt that is too long to be read to its end"


@dataclass
class FakeClient:
    """Scores by content alone."""

    fits_pairs: float = math.inf  # more pairs than these in one request do not fit into memory
    never_fits: str = ""  # a prompt that does not fit on its own
    fails_after: float = math.inf  # requests after which it fails for good
    elements: bool = False  # whether it scores elements
    answers: bool = False  # whether it says what it asked on the way
    peak_memory_bytes: int = 1000
    requests: list[list[tuple[str, tuple[str, ...]]]] = field(default_factory=list)
    refused: int = 0
    made_ready: list[int] = field(default_factory=list)  # hash of each image that was made ready
    known_texts: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    @property
    def asks_elements(self) -> bool:
        return self.elements

    @property
    def environment(self) -> dict[str, str]:
        return {"device": "cpu"}

    def ready(self, data: bytes) -> Ready:
        with self._lock:
            self.made_ready.append(hash(data))
        try:
            image = Image.open(io.BytesIO(data))
            image.load()
        except OSError as error:
            raise ImageError("not an image of a known format") from error
        remarks = (("image_converted", "It was grey."),) if image.mode == "L" else ()
        return Ready(image, image.width * image.height * 3, image.width * image.height, remarks)

    def ask(self, items: Sequence[Item]) -> Reply:
        assert items
        assert all(item.asked for item in items)
        prompts = [pair.prompt for item in items for pair in item.asked]
        if len(prompts) > self.fits_pairs or self.never_fits in prompts:
            self.refused += 1
            raise OutOfMemoryError("too much")
        if len(self.requests) >= self.fails_after:
            raise RuntimeError("the scorer is gone")
        self.requests.append([(i.image_id, tuple(p.pair_id for p in i.asked)) for i in items])
        new = set(prompts) - self.known_texts
        self.known_texts |= new
        return Reply(
            verdicts=tuple(
                tuple(self._verdict(item, pair.prompt) for pair in item.asked) for item in items
            ),
            elements=tuple(
                tuple(
                    np.array([content_score(item.image.content, e.text) for e in pair.elements])
                    for pair in item.asked
                )
                for item in items
            )
            if self.elements
            else None,
            findings=tuple(
                Finding("text_truncated", "text", pair.text_id, "Its end is not read.", scored=True)
                for item in items
                for pair in item.asked
                if pair.prompt == LONG
            ),
            work=Work(1, len(items), len(items), len(new), 0.25),
        )

    def _verdict(self, item: Item, prompt: str) -> Verdict:
        score = math.nan if prompt == UNSCORED else content_score(item.image.content, prompt)
        answers = (Answer("q1", f"{prompt}?", "yes", "Yes.", score),) if self.answers else ()
        problem = "it has no words." if prompt == UNSCORED else ""
        return Verdict(score, problem, answers)


@dataclass
class FakeSource:
    """Opens its one client."""

    client: FakeClient = field(default_factory=FakeClient)
    fingerprint: str = "fake"
    opened: int = 0
    closed: int = 0

    def open(self) -> AbstractContextManager[FakeClient]:
        return self._opened()

    @contextmanager
    def _opened(self) -> Iterator[FakeClient]:
        self.opened += 1
        try:
            yield self.client
        finally:
            self.closed += 1
