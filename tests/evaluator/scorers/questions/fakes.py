"""Models whose answers are known, for tests of metrics that ask a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from evaluator.scorers.answering import Candidate, WrittenReply
from evaluator.scorers.questions.files import Line, Question, QuestionFile, Record


class FakeAnswers:
    """Gives known words, and known log-probabilities per candidate; keeps what it was asked."""

    def __init__(
        self,
        words: Mapping[tuple[Any, str], str] | Callable[[Any, str], str] | None = None,
        logprobs: Mapping[tuple[Any, str, str], Sequence[float]] | None = None,
        longest: int = 2000,
    ) -> None:
        self.words = words if callable(words) else lambda *asked: (words or {})[asked]
        self.logprobs = logprobs or {}
        self.longest = longest
        self.calls: list[list[list[str]]] = []
        self.environment = {"device": "none"}

    @property
    def asked(self) -> list[str]:
        """Every prompt in turn."""
        return [prompt for call in self.calls for of_image in call for prompt in of_image]

    def prepare(self, image: Image.Image) -> Any:
        return image

    def generate(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]], max_new_tokens: int
    ) -> list[list[str]]:
        self.calls.append([list(of_image) for of_image in prompts])
        return [
            [self.words(image, prompt) for prompt in of_image]
            for image, of_image in zip(images, prompts, strict=True)
        ]

    def answer_logprobs(
        self,
        images: Sequence[Any],
        prompts: Sequence[Sequence[str]],
        candidates: Sequence[Sequence[Sequence[Candidate]]],
    ) -> list[list[list[NDArray[np.float64]]]]:
        self.calls.append([list(of_image) for of_image in prompts])
        return [
            [
                [np.array(self.logprobs[image, prompt, one.text]) for one in several]
                for prompt, several in zip(of_image, answers, strict=True)
            ]
            for image, of_image, answers in zip(images, prompts, candidates, strict=True)
        ]

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        return [len(prompt) > self.longest for prompt in prompts]


class FakeWriter:
    """Writes known replies to what is asked about images; keeps what it was asked."""

    def __init__(self, words: Callable[[tuple[Any, ...], str], str], *, cut: bool = False) -> None:
        self.words = words
        self.cut = cut
        self.asked: list[tuple[tuple[Any, ...], str]] = []
        self.environment = {"device": "none"}

    def prepare(self, *images: Image.Image) -> tuple[Any, ...]:
        return images

    def replies(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]], max_new_tokens: int
    ) -> list[list[WrittenReply]]:
        asked = [
            [(image, prompt) for prompt in its] for image, its in zip(images, prompts, strict=True)
        ]
        self.asked += [one for its in asked for one in its]
        return [[WrittenReply(self.words(*one), self.cut) for one in its] for its in asked]

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        return [len(prompt) > 10_000 for prompt in prompts]


class CannedText:
    """A language model that answers from a list, in turn, or by a function; keeps what it was told."""

    def __init__(self, *answers: str | Callable[[str], str], limit: int = 5000) -> None:
        self.answers = list(answers)
        self.limit = limit
        self.told: list[str] = []

    def generate(self, prompts: Sequence[str], max_new_tokens: int) -> list[str]:
        self.told += prompts
        return [self._next(prompt) for prompt in prompts]

    def fits(self, prompt: str, max_new_tokens: int) -> bool:
        return len(prompt) <= self.limit

    def _next(self, prompt: str) -> str:
        first = self.answers[0]
        if not isinstance(first, str):
            return first(prompt)
        self.answers.pop(0)
        return first


class FakeSimilarity:
    """Says that each text is nearest to a known other one."""

    def __init__(self, nearest: Mapping[str, str]) -> None:
        self.nearest = nearest

    def cosines(self, text: str, others: Sequence[str]) -> NDArray[np.float64]:
        return np.array([float(other == self.nearest[text]) for other in others])


class FakeEntailment:
    """Gives known probabilities; keeps the pairs it was asked about."""

    def __init__(self, *values: float) -> None:
        self.values = values
        self.asked: list[tuple[str, str]] = []

    def probabilities(self, premises: Sequence[str], hypotheses: Sequence[str]) -> Any:
        self.asked += zip(premises, hypotheses, strict=True)
        return np.array(self.values[: len(premises)])


def file_of(*records: Record) -> QuestionFile:
    """A question file in memory."""
    return QuestionFile([Line(n, record) for n, record in enumerate(records, start=1)], "test")


def yes_no(prompt: str, question_id: str, question: str, *parents: str, **more: Any) -> Question:
    """A question, by default one that expects a yes."""
    given = {"choices": ("yes", "no"), "expected": "yes", **more}
    return Question(
        prompt=prompt, question_id=question_id, question=question, parents=parents, **given
    )
