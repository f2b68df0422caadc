"""Judge of checkpoints: told of a prompt's test points, a model writes 1 or 0 for each (UniGenBench).

Test points are questions of the question file: their type is defined by the row, their text says what
they are in this prompt. The score is the share of ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

from pydantic import Field, model_validator

from evaluator.scorers.answering import Reading
from evaluator.scorers.models.judge_replies import bounded, wording
from evaluator.scorers.models.reply_text import final_text, read_flags
from evaluator.scorers.models.vlm_loading import load_decoder
from evaluator.scorers.questions.files import AskedQuestions, Question
from evaluator.scorers.questions.loading import loaded, open_questions
from evaluator.scorers.questions.metric import Query, QuestionMetric, Reply, filled
from evaluator.scorers.registry import Family, Frozen, Loaded, Runtime, ScorerRow
from evaluator.scoring.contract import Answer, Verdict

PLACES = ("prompt", "types", "definitions", "descriptions")


class Options(Frozen):
    """What differs between rows."""

    instruction: str
    """`{prompt}`; `{types}`, a list; `{definitions}` and `{descriptions}`, a line for each type."""
    definitions: dict[str, str] = Field(min_length=1)  # type of a test point to what it means
    tag: str = "score"  # Of XML: the list stands in it
    max_new_tokens: int = Field(ge=1, le=16_384)
    reading: Reading = Reading()  # How image and instruction are put before the model

    @model_validator(mode="after")
    def _has_its_places(self) -> Self:
        if missing := [one for one in PLACES if f"{{{one}}}" not in self.instruction]:
            raise ValueError(f"the instruction has no {', '.join(missing)}")
        return self


class CheckpointJudge(QuestionMetric):
    """The share of test points that a model scores 1; all are asked about in one instruction."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.max_new_tokens = options.max_new_tokens

    def queries(self, asked: AskedQuestions) -> list[Query]:
        """One instruction."""
        types = [question.type for question in asked.questions]
        return [
            Query(
                filled(
                    self._options.instruction,
                    prompt=asked.prompt,
                    types=repr(types),
                    definitions="\n".join(f"{t}: {self._options.definitions[t]}" for t in types),
                    descriptions="\n".join(f"{q.type}: {q.question}" for q in asked.questions),
                )
            )
        ]

    def unfit(self, question: Question) -> str:
        """Its type is one of those that the row defines."""
        known = question.type in self._options.definitions
        return "" if known else f"is of type {question.type!r}, which the metric does not define"

    def verdict(self, asked: AskedQuestions, replies: Sequence[Reply]) -> Verdict:
        """See the class."""
        (reply,) = replies
        text, problem = final_text(reply.text, self._options.tag)
        found = read_flags(text, len(asked.questions))
        problem = problem or found.problem
        score = math.nan if problem else math.fsum(found.numbers) / len(found.numbers)
        judged = Answer("judge", "", "", bounded(reply.text), score, not problem)
        points = () if problem else zip(asked.questions, found.numbers, strict=True)
        answers = (Answer(q.question_id, q.question, "1", f"{n:g}", n) for q, n in points)
        return Verdict(score, problem, (judged, *answers))


def load(row: ScorerRow, options: Options, runtime: Runtime) -> Loaded:
    """A VLM that writes, and the test points."""
    questions = open_questions(row, runtime, "unigenbench", imported=True)
    model = load_decoder(row, runtime, options.reading)
    said = wording(options.instruction, *options.definitions.values())
    return loaded(CheckpointJudge(options), model, questions, {"wording": said})


FAMILY = Family("judge of checkpoints", Options, load)
