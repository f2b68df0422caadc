"""Ratings that a model writes: it is told what to look at, and its reply is read for numbers.

The instruction is the one that the checkpoint was tuned with. A reply that was cut or cannot be
read gives no score, with the reason and the reply.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Self

from pydantic import Field, model_validator

from benchmarks.errors import PlatformError
from evaluator.scorers.answering import (
    Reading,
    SharedImageScorer,
    WritingModel,
    WrittenReply,
    asked_once,
)
from evaluator.scorers.models.judge_replies import with_evidence, wording
from evaluator.scorers.models.reply_text import final_text, read_labelled, read_only_number
from evaluator.scorers.models.vlm_loading import load_decoder
from evaluator.scorers.questions.metric import filled
from evaluator.scorers.registry import Family, Frozen, Loaded, Runtime, ScorerRow
from evaluator.scoring.contract import Verdict


class Options(Frozen):
    """What differs between rows."""

    instruction: str  # `{prompt}` stands for the prompt
    weights: dict[str, float] = Field(min_length=1)
    """Label of each number that counts, to what it counts in the score; an empty label: the reply
    holds one number and no label."""
    tag: str = ""  # Of XML: what is read stands in it
    low: float  # Bounds of each number
    high: float
    max_new_tokens: int = Field(ge=1, le=16_384)
    reading: Reading = Reading()  # How image and instruction are put before the model

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if "" in self.weights and len(self.weights) > 1:
            raise ValueError("a number without a label is the only one")
        if not self.low < self.high:
            raise ValueError("low is not below high")
        return self


class WrittenRating(SharedImageScorer):
    """The weighted sum of the numbers in a reply; each is within the row's bounds."""

    def __init__(self, model: WritingModel, options: Options) -> None:
        self._model: WritingModel = model
        self._options = options

    def score_texts(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]]
    ) -> list[list[Verdict]]:
        """For each image, one verdict per prompt of its own list; the same is asked once."""
        wanted = [list(map(self._instruction, its)) for its in prompts]
        ask = partial(self._model.replies, max_new_tokens=self._options.max_new_tokens)
        replies = asked_once(ask, images, wanted)
        return [
            [self._verdict(one, of_image[one]) for one in its]
            for its, of_image in zip(wanted, replies, strict=True)
        ]

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Whether the instruction with a prompt in it is longer than the model reads."""
        return self._model.truncated([self._instruction(prompt) for prompt in prompts])

    def _instruction(self, prompt: str) -> str:
        return filled(self._options.instruction, prompt=prompt)

    def _verdict(self, instruction: str, reply: WrittenReply) -> Verdict:
        score, problem = rated(reply, self._options)
        return with_evidence(instruction, reply.text, score, problem)


def rated(reply: WrittenReply, options: Options) -> tuple[float, str]:
    """The score of a reply, and why it has none; it is then NaN."""
    text, problem = ("", "the reply was cut") if reply.cut else final_text(reply.text, options.tag)
    if problem:
        return math.nan, problem
    bounds = options.low, options.high
    found = [
        read_labelled(text, label, *bounds) if label else read_only_number(text, *bounds)
        for label in options.weights
    ]
    for one in found:
        if one.problem:
            return math.nan, one.problem
    weights = options.weights.values()
    terms = [weight * one.numbers[0] for weight, one in zip(weights, found, strict=True)]
    return math.fsum(terms), ""


def load(row: ScorerRow, options: Options, runtime: Runtime) -> Loaded:
    """A VLM that writes its ratings."""
    if row.reads_prompt is not ("{prompt}" in options.instruction):
        raise PlatformError(
            "bad_scorer_row", f"{row.name}: reads_prompt is not what its instruction says."
        )
    model = load_decoder(row, runtime, options.reading)
    told_of = {**model.environment, "wording": wording(options.instruction)}
    return Loaded(WrittenRating(model, options), told_of)


FAMILY = Family("rating that a model writes", Options, load)
