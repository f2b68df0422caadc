"""LLMScore: an image is put into words, and a language model compares the words with the prompt."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from evaluator.scorers.answering import Reading, SharedImageScorer
from evaluator.scorers.checkpoints import resolve
from evaluator.scorers.models.judge_replies import answer_of, read_integer, wording
from evaluator.scorers.models.region_captions import (
    CaptionModel,
    Described,
    Describer,
    load_captions,
)
from evaluator.scorers.models.text_models import TextModel, load_text_model
from evaluator.scorers.models.vlm_loading import load_answer_model
from evaluator.scorers.questions.metric import filled
from evaluator.scorers.registry import Family, Frozen, Loaded, Runtime, ScorerRow
from evaluator.scoring.contract import Answer, Verdict

CAPTIONS = "captions"
"""Role of a file of captions, which takes the place of the model that describes images."""

CAPTION = "Say in one sentence what this picture shows."
REGIONS = (
    "List every object in this picture, one per line. For each, write what it is, its colour and "
    "other things that can be seen of it, how many there are, and where in the picture it is. "
    "Write only what can be seen."
)
PARAGRAPH = (
    "Someone who cannot see a picture wants to know what is in it. Write one paragraph for them "
    "from the notes below: which objects there are, how many, what they look like, and how they "
    "stand to each other. Numbers in brackets are the left, top, right and bottom edge of an "
    "object as fractions of the picture. Add nothing that the notes do not say.\n\n"
    "The picture as a whole: {caption}\n\nIts parts:\n{regions}"
)
COMPARISON = (
    "A picture was drawn from a text. Compare the text with a description of the picture.\n\n"
    "Text: {prompt}\n\nDescription: {description}\n\n"
    "Reply with one JSON object of this form and with nothing else:\n"
    '{"reasoning": "a few sentences", "overall": n, "errors": m}\n'
    "n is a whole number from 1 to 100 that says how well the picture matches the text in its "
    "objects, their number, their properties and their places; 100 is a full match.\n"
    "m is a whole number from 0 to 9 that counts mistakes: 1 for each wrong property, number or "
    "place, and 4 for each object of the text that is missing; 9 stands for 9 or more."
)
WORDING = wording(CAPTION, REGIONS, PARAGRAPH, COMPARISON)
"""Tells apart results that were asked for in other words."""

RANGES = {"overall": (1, 100), "errors": (0, 9)}


class CaptionJudgeOptions(Frozen):
    """What differs between rows."""

    number: Literal["overall", "errors"]  # Which of the judge's two numbers is the score
    max_new_tokens: int = Field(default=384, ge=16)  # Of each thing a model writes
    reading: Reading = Reading()
    """How picture and request are put before the model that describes images."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """An image in words."""

    text: str  # empty where there are none
    problem: str = ""  # why there are none


class ComparisonScorer(SharedImageScorer):
    """The judge's overall rating in 1..100, or its count of errors in 0..9, lower being better.

    Caption and regions of the image -> paragraph (judge) -> comparison with the prompt (judge).
    A reply that cannot be read gives no score, with the reason and the reply.
    """

    def __init__(
        self, describer: Describer, judge: TextModel, options: CaptionJudgeOptions
    ) -> None:
        self._model = describer
        self._judge = judge
        self._number: str = options.number
        self._max_new_tokens = options.max_new_tokens

    def score_texts(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]]
    ) -> list[list[Verdict]]:
        """For each image, one verdict per prompt of its own list; it is described once."""
        rows = [row for row, of_image in enumerate(prompts) if of_image]
        described = self._model.describe([images[row] for row in rows])
        paragraphs = dict(zip(rows, map(self._paragraph, described), strict=True))
        return [
            [self._verdict(paragraphs[row], prompt) for prompt in of_image]
            for row, of_image in enumerate(prompts)
        ]

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Never: what does not fit gets no score."""
        return [False for _ in prompts]

    def _paragraph(self, described: Described) -> Paragraph:
        if described.problem:
            return Paragraph("", described.problem)
        regions = "\n".join(f"- {each}" for each in described.regions)
        written = self._write(filled(PARAGRAPH, caption=described.caption, regions=regions))
        if written is None:
            return Paragraph("", "what is seen in the image is longer than the judge reads")
        if not written.strip():
            return Paragraph("", "the judge made no paragraph of what is seen in the image")
        return Paragraph(" ".join(written.split()))

    def _verdict(self, paragraph: Paragraph, prompt: str) -> Verdict:
        if paragraph.problem:
            return Verdict(math.nan, paragraph.problem)
        asked = filled(COMPARISON, prompt=prompt, description=paragraph.text)
        seen = Answer("description", "", "", paragraph.text, math.nan)
        reply = self._write(asked)
        if reply is None:
            return Verdict(math.nan, "prompt and description exceed what the judge reads", (seen,))
        found = read_integer(reply, self._number, *RANGES[self._number])
        said = answer_of(self._number, asked, reply, found)
        return Verdict(said.value, found.problem, (seen, said))

    def _write(self, asked: str) -> str | None:
        """The judge's reply; None where the request is too long for it."""
        if not self._judge.fits(asked, self._max_new_tokens):
            return None
        return self._judge.generate([asked], self._max_new_tokens)[0]


def load(row: ScorerRow, options: CaptionJudgeOptions, runtime: Runtime) -> Loaded:
    """A comparison of captions with prompts."""
    describer, told = _describer(row, options, runtime)
    source = resolve(row, runtime, "judge")
    judge = load_text_model(source, runtime, row.dtype)
    told |= {"checkpoint_judge": str(source), "wording": WORDING}
    return Loaded(ComparisonScorer(describer, judge, options), told)


def _describer(
    row: ScorerRow, options: CaptionJudgeOptions, runtime: Runtime
) -> tuple[Describer, dict[str, str]]:
    """The operator's file of captions, or the row's VLM."""
    path = runtime.folders.get(CAPTIONS)
    if path is not None:
        captions = load_captions(path)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        precision = runtime.dtype or row.dtype
        told = {"device": runtime.device, "dtype": precision}
        return captions, {**told, "captions": f"{path.name} sha256:{digest}"}
    model = load_answer_model(row, runtime, "model", options.reading)
    captioner = CaptionModel(model, CAPTION, REGIONS, options.max_new_tokens)
    return captioner, dict(model.environment)


FAMILY = Family("caption comparison by a language model", CaptionJudgeOptions, load)
