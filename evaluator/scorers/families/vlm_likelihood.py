"""Likelihood of yes: a vision-language model is asked one question with the whole prompt.

VQAScore (Lin et al. 2024), CROCScore (Leiter et al. 2025) and visual entailment as Gecko uses it
(Wiles et al. 2024) differ in the question, in the answers that count and in how their
probabilities become one number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import field_validator, model_validator

from evaluator.scorers import answering
from evaluator.scorers.answering import AnswerModel, Candidate, Reading, SharedImageScorer
from evaluator.scorers.models.vlm_loading import load_answer_model
from evaluator.scorers.registry import Family, Frozen, Loaded, Runtime, ScorerRow
from evaluator.scoring.contract import Verdict

PLACE = "{}"
Reduce = Literal["geo_mean_with_eos", "p_first", "p_yes_norm", "p_diff"]


class Options(Frozen):
    """What differs between rows."""

    question: str  # With `{}` where the prompt goes
    answer: str  # That counts for a match, as the model would write it
    against: str = ""  # That counts for a mismatch, where the number needs one
    reduce: Reduce
    """How the answers' probabilities become one number; see `evaluator.scorers.answering`."""
    reading: Reading = Reading()  # How image and question are put before the model

    @field_validator("question")
    @classmethod
    def _has_a_place(cls, question: str) -> str:
        if question.count(PLACE) != 1:
            raise ValueError("a question has one {} where the prompt goes")
        return question

    @model_validator(mode="after")
    def _has_both_answers(self) -> Options:
        if (self.reduce in {"p_yes_norm", "p_diff"}) != bool(self.against):
            raise ValueError("`against` goes with p_yes_norm and p_diff, and only with them")
        return self

    @property
    def candidates(self) -> list[Candidate]:
        """The answers whose probability is wanted."""
        whole = self.reduce == "geo_mean_with_eos"
        texts = filter(None, (self.answer, self.against))
        return [Candidate(text, with_end=whole, first_only=not whole) for text in texts]

    def question_about(self, prompt: str) -> str:
        """The question about a prompt; braces in the prompt mean nothing."""
        return self.question.replace(PLACE, prompt)

    def reduced(self, logprobs: Sequence[NDArray[np.float64]]) -> float:
        """The score from the log-probabilities of `candidates`."""
        formula: Any = getattr(answering, self.reduce)
        return float(formula(*logprobs))


class VLMLikelihood(SharedImageScorer):
    """Scores pairs by the probability of an answer."""

    def __init__(self, model: AnswerModel, options: Options) -> None:
        self._model: AnswerModel = model
        self._options = options

    def score_texts(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]]
    ) -> list[list[float | Verdict]]:
        """For each image, one score per prompt; the work on the image is done once."""
        asked = [[self._options.question_about(prompt) for prompt in its] for its in prompts]
        candidates = [[self._options.candidates] * len(its) for its in prompts]
        found = self._model.answer_logprobs(images, asked, candidates)
        return [[self._scored(logprobs) for logprobs in its] for its in found]

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Whether the question about a prompt is longer than the model reads."""
        return self._model.truncated([self._options.question_about(prompt) for prompt in prompts])

    def _scored(self, logprobs: Sequence[NDArray[np.float64]]) -> float | Verdict:
        if any(np.isnan(values).any() for values in logprobs):
            return Verdict(math.nan, "The model gave NaN for the probability of an answer.")
        return self._options.reduced(logprobs)


def load(row: ScorerRow, options: Options, runtime: Runtime) -> Loaded:
    """Load the VLM; its kind is taken from the checkpoint, so any folder may be named."""
    model = load_answer_model(row, runtime, reading=options.reading)
    environment = {**model.environment, "question": options.question}
    return Loaded(VLMLikelihood(model, options), environment)


FAMILY = Family("VLM likelihood", Options, load)
