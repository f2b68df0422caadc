"""An asker that counts what it does, and runs out of memory or dies when told to."""

from __future__ import annotations

import io
import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import numpy as np
from PIL import Image

from evaluator.scoring.asking import Finding, Item, OutOfMemoryError, Ready, Reply, Work
from evaluator.scoring.contract import Answer, Verdict
from evaluator.scoring.images import ImageError
from tests.evaluator.scoring.asking import content_score

UNSCORED = "a prompt nobody can score"
LONG = "a prompt that is too long to be read to its end"


@dataclass
class FakeAsker:
    """Scores by content alone.

    Attributes:
        fits_pairs: more pairs than these in one request do not fit into memory.
        never_fits: a prompt that does not fit on its own.
        fails_after: requests after which it fails for good.
        elements: whether it scores elements.
        answers: whether it says what it asked on the way.
        made_ready: hash of each image that was made ready.
    """

    fits_pairs: float = math.inf
    never_fits: str = ""
    fails_after: float = math.inf
    elements: bool = False
    answers: bool = False
    peak_memory_bytes: int = 1000
    requests: list[list[tuple[str, tuple[str, ...]]]] = field(default_factory=list)
    refused: int = 0
    made_ready: list[int] = field(default_factory=list)
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
                    np.array([_score(item, element.text) for element in pair.elements])
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
        score = math.nan if prompt == UNSCORED else _score(item, prompt)
        answers = (Answer("q1", f"{prompt}?", "yes", "Yes.", score),) if self.answers else ()
        problem = "it has no words." if prompt == UNSCORED else ""
        return Verdict(score, problem, answers)


def _score(item: Item, text: str) -> float:
    buffer = io.BytesIO()
    item.image.content.save(buffer, format="PNG")
    return content_score(buffer.getvalue(), text)


@dataclass
class FakeSource:
    """Opens its one asker."""

    asker: FakeAsker = field(default_factory=FakeAsker)
    fingerprint: str = "fake"
    opened: int = 0
    closed: int = 0

    def open(self) -> AbstractContextManager[FakeAsker]:
        return self._opened()

    @contextmanager
    def _opened(self) -> Iterator[FakeAsker]:
        self.opened += 1
        try:
            yield self.asker
        finally:
            self.closed += 1
