"""Pairwise judge that writes: a model is shown two images of a prompt, and its reply is read.

Three forms. `sentence`: a line or sentence begins with one of a few phrases. `answer`: one of them
is all that stands in a tag. `shares`: for each axis, two numbers that add up to 1; the margin is the
mean of their differences. A reply that was cut or cannot be read has no margin, and the reason; it
is never a tie.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, Self

from PIL import Image
from pydantic import Field, FiniteFloat, model_validator

from evaluator.scorers.answering import Reading, WritingModel, WrittenReply
from evaluator.scorers.models.judge_replies import with_evidence, wording
from evaluator.scorers.models.reply_text import final_text, read_phrase, read_shares
from evaluator.scorers.models.vlm_loading import load_decoder
from evaluator.scorers.questions.metric import filled
from evaluator.scorers.registry import Family, Frozen, Loaded, Runtime, ScorerRow
from evaluator.scoring.contract import Verdict

IMAGES = ("Image 1", "Image 2")
TOLERANCE = 0.02  # By which shares may miss 1


class Options(Frozen):
    """What differs between rows."""

    method: Literal["compare"]
    instruction: str = Field(pattern=r"\{prompt\}")  # `{prompt}` stands for the prompt
    form: Literal["sentence", "answer", "shares"]
    choices: dict[str, FiniteFloat] = Field(default_factory=dict)  # of the first two: their margins
    tag: str = ""  # Of XML: what is read stands in it
    axes: tuple[str, ...] = ()  # of `shares`: the labels
    max_new_tokens: int = Field(ge=1, le=16_384)
    reading: Reading = Reading()  # How images and instruction are put before the model

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.form == "shares") != bool(self.axes) or bool(self.axes) == bool(self.choices):
            raise ValueError("the form 'shares' needs axes, the others need choices")
        if (self.form == "answer") != bool(self.tag):
            raise ValueError("a tag is for the form 'answer', which needs it")
        return self


class WrittenComparison:
    """Compares two images by what a model writes of both."""

    def __init__(self, model: WritingModel, options: Options) -> None:
        self._model: WritingModel = model
        self._options = options

    def compare(
        self,
        prompts: Sequence[str],
        images_a: Sequence[Image.Image],
        images_b: Sequence[Image.Image],
    ) -> list[Verdict]:
        """One margin per comparison, positive where `images_a` is better; NaN where none is read."""
        asked = [filled(self._options.instruction, prompt=prompt) for prompt in prompts]
        both = [self._model.prepare(a, b) for a, b in zip(images_a, images_b, strict=True)]
        replies = self._model.replies(both, [[one] for one in asked], self._options.max_new_tokens)
        return [
            with_evidence(instruction, reply.text, *margin(reply, self._options))
            for instruction, (reply,) in zip(asked, replies, strict=True)
        ]

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Whether the instruction with a prompt in it is longer than the model reads."""
        instruction = self._options.instruction
        return self._model.truncated([filled(instruction, prompt=prompt) for prompt in prompts])


def margin(reply: WrittenReply, options: Options) -> tuple[float, str]:
    """The margin that a reply states, and why there is none; it is then NaN."""
    text, problem = ("", "the reply was cut") if reply.cut else final_text(reply.text, options.tag)
    if problem:
        return math.nan, problem
    if options.choices:
        found = [read_phrase(text, options.choices, whole=options.form == "answer")]
    else:
        found = [read_shares(text, axis, IMAGES, TOLERANCE) for axis in options.axes]
    for one in found:
        if one.problem:
            return math.nan, one.problem
    if options.choices:
        return found[0].numbers[0], ""
    gaps = [first - second for first, second in (one.numbers for one in found)]
    return math.fsum(gaps) / len(gaps), ""


def load(row: ScorerRow, options: Options, runtime: Runtime) -> Loaded:
    """A VLM that reads two images and writes which is better."""
    model = load_decoder(row, runtime, options.reading)
    told_of = {**model.environment, "wording": wording(options.instruction)}
    return Loaded(WrittenComparison(model, options), told_of)


FAMILY = Family("pairwise judge that writes", Options, load)
