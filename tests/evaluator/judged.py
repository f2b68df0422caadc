"""A metric that is a function of a batch, for tests of trust and of controls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PIL import Image

from evaluator.scoring.asking import Item, Ready, Reply
from evaluator.scoring.contract import Verdict
from tests.kit.pictures import encoded, noise, opened

Batch = Sequence[tuple[Image.Image, str]]
Judge = Callable[[Batch], Sequence[float]]


class FakeClient:
    """Scores a batch of (image, prompt) with a function of the whole batch."""

    asks_elements = False
    peak_memory_bytes = 0

    def __init__(self, judge: Judge, precision: str = "float32") -> None:
        self._judge = judge
        self.environment = {"dtype": precision}

    def ready(self, data: bytes) -> Ready:
        return Ready(data, len(data))

    def ask(self, items: Sequence[Item]) -> Reply:
        images = [opened(item.image.content) for item in items]
        flat = [
            (image, asked.prompt)
            for image, item in zip(images, items, strict=True)
            for asked in item.asked
        ]
        scores = iter(self._judge(flat))
        return Reply(tuple(tuple(Verdict.of(next(scores)) for _ in one.asked) for one in items))


def picture(number: int) -> bytes:
    """The file of an image that differs from any other number's."""
    return encoded(noise(number))
