"""Scorer: the one contract of submitted modules and of the built-in metrics.

A scorer is any object with a method `score`, or with `compare` where it only compares. The other
methods are optional, and only make the engine's work cheaper: whichever path it takes, a pair gets
the same score.

    score(images, prompts) -> scores                       one per pair
    compare(prompts, images_a, images_b) -> margins        one per comparison of two images of a
                                                           prompt, positive where a is better
    prepare(image) -> prepared                             once per image, ahead of the device
    encode_images(images) -> vectors (n, d)                dual encoders: each image once,
    encode_texts(prompts) -> vectors (m, d)                each text once,
    similarity(image_vectors, text_vectors) -> scores (k,) and the wanted combinations, row by row
    score_texts(images, prompts) -> scores per image       each image once, with all its texts
    score_elements(images, prompts, elements) -> scores    of the named parts of each prompt
    truncated(prompts) -> flags                            whether a prompt is read to its end

A scoring module with several outputs is asked by `score` alone, which gives a row of as many numbers
per pair. Where a scorer has `prepare`, every other method is given what that returned in place of images.
Images are RGB `PIL.Image`s, upright and without metadata. `prepare` may be called by several
threads at once; the other methods are called by one thread at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

NO_NUMBER = "the scorer gave no number"
Vectors = NDArray[np.float32]
"""Embeddings, shape (n, d), one row per item."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One question to an image and what a model said, kept for people to review.

    Attributes:
        question_id: of the question file.
        question: as it was asked.
        expected: the answer that counts.
        raw: the model's own words, or the answer it found likeliest.
        value: what the question contributes, mostly 0..1; NaN where it contributes nothing.
        valid: False where a rule of the metric took the question out (a gate, a filter).
    """

    question_id: str
    question: str
    expected: str
    raw: str
    value: float
    valid: bool = True


@dataclass(frozen=True, slots=True)
class Verdict:
    """A score with what led to it.

    Attributes:
        score: NaN where the scorer gives none.
        problem: why there is no score, in one sentence; empty where there is one.
        answers: what was asked on the way.
        others: scores of the outputs after the first, of a scorer with several; NaN as above.
    """

    score: float
    problem: str = ""
    answers: tuple[Answer, ...] = ()
    others: tuple[float, ...] = ()

    @property
    def outputs(self) -> tuple[float, ...]:
        """The score of every output, shape (k,)."""
        return self.score, *self.others

    @classmethod
    def of(cls, value: float | Verdict) -> Verdict:
        """A bare score as a verdict."""
        if isinstance(value, Verdict):
            return value
        score = float(value)
        return cls(score, NO_NUMBER if math.isnan(score) else "")

    @classmethod
    def of_outputs(cls, values: Sequence[float]) -> Verdict:
        """The scores of several outputs as a verdict."""
        first, *others = map(float, values)
        problem = NO_NUMBER if any(map(math.isnan, (first, *others))) else ""
        return cls(first, problem, others=tuple(others))


class Scorer(Protocol):
    """The least a scorer can do."""

    def score(self, images: Sequence[Image.Image], prompts: Sequence[str]) -> Sequence[float]:
        """One score per pair (image, prompt); NaN where the scorer gives none."""


class Compares(Protocol):
    """Compares two images of a prompt; it is asked in both orders."""

    def compare(
        self, prompts: Sequence[str], images_a: Sequence[Any], images_b: Sequence[Any]
    ) -> Sequence[float | Verdict]:
        """One margin per comparison, positive where `images_a` is better; NaN where there is none."""


class Prepares(Protocol):
    """Turns pixels into what its model eats ahead of the device."""

    def prepare(self, image: Image.Image) -> Any:
        """What the other methods take in place of the image; called by several threads at once."""


class DualEncoder(Protocol):
    """Encodes images and texts apart from each other."""

    def encode_images(self, images: Sequence[Any]) -> Vectors:
        """One vector per image, shape (n, d)."""

    def encode_texts(self, prompts: Sequence[str]) -> Vectors:
        """One vector per prompt, shape (m, d)."""

    def similarity(self, image_vectors: Vectors, text_vectors: Vectors) -> NDArray[np.float64]:
        """The score of each row's image with the same row's text, shape (k,)."""


class SharesImages(Protocol):
    """Scores several texts of one image for less than it costs to score them apart."""

    def score_texts(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]]
    ) -> Sequence[Sequence[float | Verdict]]:
        """For each image, one score per prompt of its own list."""


class ScoresElements(Protocol):
    """Scores the named parts of a prompt."""

    def score_elements(
        self,
        images: Sequence[Any],
        prompts: Sequence[str],
        elements: Sequence[Sequence[str]],
    ) -> Sequence[Sequence[float]]:
        """For each pair, one score per element of its own list; NaN where there is none."""


class Truncates(Protocol):
    """Reads prompts up to some length."""

    def truncated(self, prompts: Sequence[str]) -> Sequence[bool]:
        """Whether the end of each prompt is not read."""
