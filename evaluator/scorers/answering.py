"""Interface of a vision-language model (VLM) to metrics that ask questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image


@dataclass(frozen=True, slots=True)
class Candidate:
    """An answer whose probability is wanted.

    Attributes:
        text: as the model would write it, e.g. `Yes`.
        with_end: whether the end-of-sequence token is part of it.
    """

    text: str
    with_end: bool = False


class AnswerModel(Protocol):
    """A VLM. What it computes for one image is shared by all prompts about that image."""

    def prepare(self, image: Image.Image) -> Any:
        """What the model takes in place of the image; called by several threads at once."""

    def answer_logprobs(
        self,
        images: Sequence[Any],
        prompts: Sequence[Sequence[str]],
        candidates: Sequence[Sequence[Sequence[Candidate]]],
    ) -> list[list[list[NDArray[np.float64]]]]:
        """Teacher-forced log-probabilities, over the whole vocabulary, in float32 or better.

        Args:
            images: n prepared images.
            prompts: for each image, the prompts to it.
            candidates: for each image and prompt, the answers whose probability is wanted.

        Returns:
            For each image, prompt and candidate, log p of each of the candidate's tokens, given
            the image, the prompt and the tokens before it.
        """

    def generate(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]], max_new_tokens: int
    ) -> list[list[str]]:
        """Greedy answers as text, special tokens removed, for each image and prompt."""

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Whether a prompt is longer than the model reads."""


class LoadedAnswerModel(AnswerModel, Protocol):
    """A VLM together with what a result's record says of it."""

    @property
    def environment(self) -> dict[str, str]:
        """Device, precision, checkpoint, image processor, and how work on an image is shared."""
