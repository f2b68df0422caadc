"""Checklist: fixed short questions about an image, each answered in one word that counts.

VisionReward (Xu et al. 2024) and the faithfulness of EvalAlign (Tan et al. 2024). What is asked is
the same under every prompt; where a row has `alignment`, a question with the prompt adds to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from PIL import Image
from pydantic import Field, FiniteFloat, model_validator

from evaluator.scorers.answering import AnswerModel, Reading, SharedImageScorer
from evaluator.scorers.families import vlm_likelihood
from evaluator.scorers.models.judge_replies import bounded, wording
from evaluator.scorers.models.reply_text import read_first
from evaluator.scorers.models.vlm_loading import load_answer_model
from evaluator.scorers.questions.table import load_table_answers, table_of
from evaluator.scorers.registry import Family, Frozen, Loaded, Runtime, ScorerRow
from evaluator.scoring.contract import Answer, Verdict

ALIGNMENT = "alignment"  # Role of the model that is asked with the prompt


class Check(Frozen):
    """One question."""

    question: str
    weight: FiniteFloat = 0.0  # of its answer in the score; 0: it only opens others
    needs: int | None = None  # index of the check without whose first answer this one counts 0


class Options(Frozen):
    """What differs between rows."""

    checks: tuple[Check, ...] = Field(min_length=1)
    answers: dict[str, FiniteFloat] = Field(min_length=2)
    """Each answer to what it counts; the first is that which opens other checks."""
    absent: str = ""  # The answer that takes its check out; empty: there is none
    mean: bool = False  # Whether the weighted sum is divided by the weights that took part
    alignment: vlm_likelihood.Options | None = None  # Asked with the prompt
    alignment_weight: FiniteFloat = 0.0
    max_new_tokens: int = Field(default=16, ge=1, le=512)
    reading: Reading = Reading()  # How image and question are put before the judge

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for place, check in enumerate(self.checks):
            if check.needs is not None and not 0 <= check.needs < place:
                raise ValueError("a check needs one that stands before it")
        if (self.alignment is None) != (self.alignment_weight == 0):
            raise ValueError("alignment and its weight go together")
        if len({check.question for check in self.checks}) < len(self.checks):
            raise ValueError("a question is asked twice")
        return self

    @property
    def known_answers(self) -> tuple[str, ...]:
        """All answers; the first opens checks that need it."""
        return (*self.answers, *filter(None, (self.absent,)))


class Checklist(SharedImageScorer):
    """What the answers to the checks count together, and the alignment where it is asked."""

    def __init__(
        self,
        judge: AnswerModel,
        options: Options,
        alignment: vlm_likelihood.VLMLikelihood | None = None,
    ) -> None:
        self._judge: AnswerModel = judge
        self._options = options
        self._alignment = alignment

    def prepare(self, image: Image.Image) -> tuple[Any, Any]:
        """What the judge takes, and what the question with the prompt takes."""
        aligned = None if self._alignment is None else self._alignment.prepare(image)
        return self._judge.prepare(image), aligned

    def score_texts(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]]
    ) -> list[list[Verdict]]:
        """For each image, one verdict per prompt of its own list; checks are answered once."""
        rows = [row for row, its in enumerate(prompts) if its]
        questions = [check.question for check in self._options.checks]
        judged, matched = ([images[row][part] for row in rows] for part in (0, 1))
        replies = self._judge.generate(
            judged, [questions] * len(rows), self._options.max_new_tokens
        )
        aligned = self._aligned(matched, [prompts[row] for row in rows])
        found: list[list[Verdict]] = [[] for _ in prompts]
        for row, its, of_image in zip(rows, replies, aligned, strict=True):
            checked = checked_off(its, self._options)
            found[row] = [_sum(checked, one, self._options.alignment_weight) for one in of_image]
        return found

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Whether the question with a prompt is longer than its model reads."""
        if self._alignment is None:
            return [False] * len(prompts)
        return self._alignment.truncated(prompts)

    def _aligned(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]]
    ) -> list[list[Verdict]]:
        if self._alignment is None:
            return [[Verdict(0.0)] * len(its) for its in prompts]
        found = self._alignment.score_texts(images, prompts)
        return [[_aligned_answer(Verdict.of(value)) for value in its] for its in found]


def checked_off(replies: Sequence[str], options: Options) -> Verdict:
    """What the answers to the checks count; NaN where one that takes part cannot be read."""
    said = [read_first(reply, options.known_answers) for reply in replies]
    opening = options.known_answers[0]
    part = [check.needs is None or said[check.needs].word == opening for check in options.checks]
    terms: list[tuple[float, float]] = []
    answers: list[Answer] = []
    problems: list[str] = []
    for check, reply, one, takes_part in zip(options.checks, replies, said, part, strict=True):
        counts = takes_part and one.word in options.answers
        term = check.weight * options.answers[one.word] if counts else math.nan
        if counts:
            terms.append((check.weight, term))
        if takes_part and one.problem:
            problems.append(f"{check.question!r}: {one.problem}")
        place = f"{len(answers) + 1}"
        answers.append(Answer(place, check.question, "", bounded(reply), term, counts))
    weights = math.fsum(weight for weight, _ in terms) if options.mean else 1.0
    if not problems and not weights:
        problems.append("no check applies to the image")
    score = math.nan if problems else math.fsum(term for _, term in terms) / weights
    return Verdict(score, "; ".join(problems[:1]), tuple(answers))


def _aligned_answer(verdict: Verdict) -> Verdict:
    answer = Answer("alignment", "", "", "", verdict.score, not verdict.problem)
    return Verdict(verdict.score, verdict.problem, (answer,))


def _sum(checked: Verdict, aligned: Verdict, weight: float) -> Verdict:
    return Verdict(
        checked.score + weight * aligned.score,
        checked.problem or aligned.problem,
        (*checked.answers, *aligned.answers),
    )


def load(row: ScorerRow, options: Options, runtime: Runtime) -> Loaded:
    """A judge of any kind or a table of its answers, and the model of the alignment."""
    told = {"wording": wording(*(check.question for check in options.checks))}
    table = table_of(row, runtime)
    judge: AnswerModel
    if table is not None:
        judge = load_table_answers(table)
    else:
        judge = load_answer_model(row, runtime, reading=options.reading)
    if options.alignment is None:
        return Loaded(Checklist(judge, options), {**judge.environment, **told})
    model = load_answer_model(row, runtime, ALIGNMENT, options.alignment.reading)
    told |= {f"judge_{name}": value for name, value in judge.environment.items()}
    alignment = vlm_likelihood.VLMLikelihood(model, options.alignment)
    return Loaded(Checklist(judge, options, alignment), {**model.environment, **told})


FAMILY = Family("checklist", Options, load)
