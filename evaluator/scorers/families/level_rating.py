"""Rating by levels: how likely a model's next word is each of five levels of quality.

Q-Align (Wu et al. 2023) and DeQA-Score (You et al. 2025). The prompt of an image is not read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from PIL import Image
from pydantic import model_validator

from benchmarks.arrays import FloatArray
from benchmarks.sources.pins import sha256_of
from benchmarks.tables import read_table
from evaluator.scorers.answering import (
    AnswerModel,
    Candidate,
    Reading,
    SharedImageScorer,
    pixel_hash,
)
from evaluator.scorers.models.vlm_loading import load_answer_model
from evaluator.scorers.questions.table import by_image, finite_number, table_of
from evaluator.scorers.registry import Family, Frozen, Loaded, Runtime, ScorerRow
from evaluator.scoring.contract import Verdict


class Options(Frozen):
    """What differs between rows."""

    question: str
    levels: tuple[str, ...] = ("excellent", "good", "fair", "poor", "bad")
    weights: tuple[float, ...]  # What each level counts, in the same order
    reading: Reading = Reading()  # How image and question are put before the model

    @model_validator(mode="after")
    def _one_weight_a_level(self) -> Options:
        if len(self.levels) != len(self.weights):
            raise ValueError("there is one weight for each level")
        return self

    def rating(self, logits: FloatArray) -> float:
        """softmax(logits) times the weights.

        `logits`: of the levels' first tokens, up to a common constant, shape (levels,).
        """
        shares = np.exp(logits - logits.max())
        return float(shares @ np.array(self.weights) / shares.sum())


class LevelLogits(Protocol):
    """Whatever knows the levels' logits of an image."""

    def prepare(self, image: Image.Image) -> Any:
        """What stands for the image; called by several threads at once."""

    def logits(self, images: Sequence[Any]) -> list[FloatArray | None]:
        """For each image, one logit a level up to a common constant; None where there is none."""


class LevelRating(SharedImageScorer):
    """The weighted mean of levels, the same under every prompt."""

    def __init__(self, model: LevelLogits, options: Options) -> None:
        self._model: LevelLogits = model
        self._options = options

    def score_texts(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]]
    ) -> list[list[Verdict]]:
        """For each image, its rating for each prompt of its own list; it is asked about once."""
        asked = [image for image, its in zip(images, prompts, strict=True) if its]
        found = iter(self._model.logits(asked) if asked else [])
        return [[self._rated(next(found))] * len(its) if its else [] for its in prompts]

    def _rated(self, logits: FloatArray | None) -> Verdict:
        if logits is None:
            return Verdict(math.nan, "the table has no levels of this image")
        if np.isnan(logits).any():
            return Verdict(math.nan, "the model gave NaN for the probability of a level")
        return Verdict(self._options.rating(logits))


class ModelLevels:
    """Logits of a vision-language model: of each level's first token where its answer begins."""

    def __init__(self, model: AnswerModel, options: Options) -> None:
        self._model: AnswerModel = model
        self._question = options.question
        self._candidates = [Candidate(level, first_only=True) for level in options.levels]

    def prepare(self, image: Image.Image) -> Any:
        """See `LevelLogits`."""
        return self._model.prepare(image)

    def logits(self, images: Sequence[Any]) -> list[FloatArray | None]:
        """See `LevelLogits`; these are log-probabilities over the whole vocabulary."""
        found = self._model.answer_logprobs(
            images, [[self._question]] * len(images), [[self._candidates]] * len(images)
        )
        return [np.array([values[0] for values in of_image[0]]) for of_image in found]


class TableLevels:
    """Logits that the authors' programs gave, by the pixels of an image."""

    def __init__(self, logits: Mapping[str, FloatArray]) -> None:
        self._logits = logits

    def prepare(self, image: Image.Image) -> str:
        """The hash of the image's pixels."""
        return pixel_hash(image)

    def logits(self, images: Sequence[str]) -> list[FloatArray | None]:
        """See `LevelLogits`."""
        return [self._logits.get(image) for image in images]


def load_level_table(path: Path, options: Options) -> TableLevels:
    """Read a CSV file with the column `image` and one of logits for each level.

    `image` is a path relative to the file's folder, or a pixel hash.
    """
    levels = list(options.levels)
    table = read_table(path, ("image", *levels))
    table = table.assign(question=options.question, logit=table[levels].agg(" ".join, axis=1))
    found = by_image(path, table, "question", "logit")
    return TableLevels(
        {
            image: np.array([finite_number(cell, path) for cell in cells.split(" ")])
            for (image, _), cells in found.items()
        }
    )


def load(row: ScorerRow, options: Options, runtime: Runtime) -> Loaded:
    """A VLM of any kind, or a table of logits (role `table`) where there is one."""
    table = table_of(row, runtime)
    if table is not None:
        source = load_level_table(table, options)
        record = {"device": "none", "levels": f"{table.name} sha256:{sha256_of(table)}"}
        return Loaded(LevelRating(source, options), record)
    model = load_answer_model(row, runtime, reading=options.reading)
    record = {**model.environment, "question": options.question}
    return Loaded(LevelRating(ModelLevels(model, options), options), record)


FAMILY = Family("rating by levels", Options, load)
