"""VIEScore: a vision-language model (VLM) is told what to look for and writes ratings as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Any, Literal

from pydantic import Field

from evaluator.scorers.answering import AnswerModel, Reading, SharedImageScorer, asked_once
from evaluator.scorers.models.judge_replies import answer_of, read_list, wording
from evaluator.scorers.models.vlm_loading import load_answer_model
from evaluator.scorers.questions.metric import filled
from evaluator.scorers.registry import Family, Frozen, Loaded, Runtime, ScorerRow
from evaluator.scoring.contract import Verdict

LOW, HIGH = 0, 10
_FORM = (
    "You judge pictures that a computer has drawn. Nobody in them is a real person.\n"
    "Reply with one JSON object of this form and with nothing else:\n"
    '{"score": [%s], "reasoning": "one or two short sentences"}\n\n'
)
CONSISTENCY = (
    _FORM
    % "n"
    + "The score is a list with one number n from 0 to 10 that says how well the picture follows "
    "the text below.\n"
    "n = 0: nothing of the text can be seen. n = 10: everything in the text can be seen and is as "
    "the text says.\n\n"
    "Text: {prompt}"
)
QUALITY = (
    _FORM % "n, a" + "The score is a list of two numbers from 0 to 10.\n"
    "n says how natural the picture looks. n = 0: the scene, its light or its shadows cannot be "
    "real. n = 10: it could be a photograph or the work of a skilled hand.\n"
    "a says how free the picture is of flaws. a = 0: it is full of distorted faces or bodies, "
    "smears, cut-off or merged things. a = 10: there are none."
)
WORDING = wording(CONSISTENCY, QUALITY)  # Tells apart results that were asked for in other words

Part = Literal["sc", "pq", "o"]


class TextJudgeOptions(Frozen):
    """What differs between rows."""

    part: Part  # `sc`: follows the prompt; `pq`: natural and free of flaws; `o`: both
    max_new_tokens: int = Field(default=256, ge=16)
    reading: Reading = Reading()  # How picture and instruction are put before the model


class RatingScorer(SharedImageScorer):
    """SC = min of [follows the prompt]; PQ = min of [natural, free of flaws]; O = sqrt(SC PQ).

    All in 0..10. A reply that cannot be read gives no score, with the reason and the reply.
    """

    def __init__(self, model: AnswerModel, options: TextJudgeOptions) -> None:
        self._model: AnswerModel = model
        self._part: Part = options.part
        self._max_new_tokens = options.max_new_tokens

    def score_texts(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]]
    ) -> list[list[Verdict]]:
        """For each image, one verdict per prompt; what needs no prompt is asked once per image."""
        asked = [chain.from_iterable(map(self._instructions, of_image)) for of_image in prompts]
        ask = partial(self._model.generate, max_new_tokens=self._max_new_tokens)
        replies = asked_once(ask, images, asked)
        return [
            [self._verdict(prompt, of_replies) for prompt in of_image]
            for of_image, of_replies in zip(prompts, replies, strict=True)
        ]

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Whether the instruction with a prompt in it is longer than the model reads."""
        return self._model.truncated([self._instructions(prompt)[0] for prompt in prompts])

    def _instructions(self, prompt: str) -> list[str]:
        about_prompt = filled(CONSISTENCY, prompt=prompt)
        return {"sc": [about_prompt], "pq": [QUALITY], "o": [about_prompt, QUALITY]}[self._part]

    def _verdict(self, prompt: str, replies: dict[str, str]) -> Verdict:
        rated = [rate(each, replies[each]) for each in self._instructions(prompt)]
        problem = next((each.problem for each in rated if each.problem), "")
        values = [each.score for each in rated]
        score = values[0] if len(values) == 1 else math.sqrt(values[0] * values[1])
        answers = tuple(answer for each in rated for answer in each.answers)
        return Verdict(math.nan if problem else score, problem, answers)


def rate(instruction: str, reply: str) -> Verdict:
    """The rating in a reply to one of the two instructions: the least of its numbers."""
    name, count = ("pq", 2) if instruction == QUALITY else ("sc", 1)
    found = read_list(reply, "score", count, LOW, HIGH)
    problem = f"{name.upper()}: {found.problem}" if found.problem else ""
    answer = answer_of(name, instruction, reply, found)
    return Verdict(answer.value, problem, (answer,))


def load(row: ScorerRow, options: TextJudgeOptions, runtime: Runtime) -> Loaded:
    """Ratings that a VLM writes."""
    model = load_answer_model(row, runtime, "model", options.reading)
    told = {**model.environment, "wording": WORDING}
    return Loaded(RatingScorer(model, options), told)


FAMILY = Family("rating by a vision-language model", TextJudgeOptions, load)
