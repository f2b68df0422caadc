"""Models that say what a test tells them to, and keep what they were asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from evaluator.scorers.answering import Candidate


class CannedVLM:
    """Answers by a function of image and prompt."""

    def __init__(self, reply: Callable[[Any, str], str]) -> None:
        self._reply = reply
        self.asked: list[tuple[Any, str]] = []

    def prepare(self, image: Image.Image) -> Any:
        return image.getpixel((0, 0))

    def answer_logprobs(
        self,
        images: Sequence[Any],
        prompts: Sequence[Sequence[str]],
        candidates: Sequence[Sequence[Sequence[Candidate]]],
    ) -> list[list[list[NDArray[np.float64]]]]:
        raise AssertionError("a judge reads text only")

    def generate(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]], max_new_tokens: int
    ) -> list[list[str]]:
        assert max_new_tokens > 0
        return [
            [self._one(image, prompt) for prompt in of_image]
            for image, of_image in zip(images, prompts, strict=True)
        ]

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        return [len(prompt) > 2000 for prompt in prompts]

    def _one(self, image: Any, prompt: str) -> str:
        self.asked.append((image, prompt))
        return self._reply(image, prompt)


class CannedLLM:
    """Answers by a function of the prompt; reads up to `limit` characters."""

    def __init__(self, reply: Callable[[str], str], limit: int = 5000) -> None:
        self._reply = reply
        self._limit = limit
        self.asked: list[str] = []

    def generate(self, prompts: Sequence[str], max_new_tokens: int) -> list[str]:
        self.asked.extend(prompts)
        return [self._reply(prompt) for prompt in prompts]

    def fits(self, prompt: str, max_new_tokens: int) -> bool:
        return len(prompt) <= self._limit
