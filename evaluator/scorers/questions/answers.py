"""Answers of a model, parsed into yes or no, or into one of the choices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, Protocol

import pandas as pd

from benchmarks.accumulation.question_scores import contains_yes, equals_yes
from benchmarks.arrays import BoolArray, FloatArray
from evaluator.scorers.questions.question import Question

Parse = Literal["word", "substring", "exact", "choice"]
"""When an answer to a yes/no question is correct. `word`: the first of the words yes and no in it
is the expected one. `substring`: it has the letters `yes` in it, whatever is expected
(T2IScoreScore; so `No, its eyes are shut` is correct). `exact`: it is `yes`, whatever is expected
(DSG, released evaluation). `choice`: yes and no are choices like any others: the nearest one is
the expected one (TIFA, released evaluation)."""
_YES_OR_NO = re.compile(r"\b(yes|no)\b", re.IGNORECASE)
YES_NO = frozenset({"yes", "no"})


class Similarity(Protocol):
    """How near texts are to each other."""

    def cosines(self, text: str, others: Sequence[str]) -> FloatArray:
        """Shape (len(others),), in -1..1."""


def expects_yes_or_no(question: Question) -> bool:
    """Whether the answer is read as yes or no: so it is expected, or these are the choices."""
    choices = {choice.strip().lower() for choice in question.choices}
    return choices == YES_NO or (not choices and said(question.expected) in YES_NO)


def yes_no_correct(answers: Sequence[str], expected: Sequence[str], parse: Parse) -> BoolArray:
    """Whether each answer to a yes/no question is correct.

    Args:
        answers: n answers in a model's own words.
        expected: n times `yes` or `no`.
        parse: see `Parse`.

    Returns:
        Shape (n,).
    """
    given = pd.Series(list(answers), dtype=str)
    if parse == "exact":
        return equals_yes(given)
    if parse == "substring":
        return contains_yes(given)
    wanted = pd.Series([said(answer) for answer in expected], dtype=str)
    meant = pd.Series([said(answer) for answer in answers], dtype=str)
    correct: BoolArray = (meant == wanted).to_numpy(bool)
    return correct


def said(answer: str) -> str:
    """The first of the words `yes` and `no` in a text, in lower case; empty where there is none."""
    found = _YES_OR_NO.search(answer)
    return found[0].lower() if found else ""


def literal_choice(answer: str, choices: Sequence[str]) -> str | None:
    """The choice that an answer is, apart from case, spaces and a full stop at its end."""
    bare = _bare(answer)
    return next((choice for choice in choices if _bare(choice) == bare), None)


def nearest_choice(answer: str, choices: Sequence[str], similarity: Similarity) -> str:
    """The choice whose embedding is nearest to an answer's; the first of equally near ones.

    (TIFA, Hu et al. 2023.)
    """
    return choices[int(similarity.cosines(answer, choices).argmax())]


def opposite(answer: str) -> str | None:
    """`no` for yes and `yes` for no; None for any other answer."""
    return {"yes": "no", "no": "yes"}.get(answer.strip().lower())


def same_answer(one: str, other: str) -> bool:
    """Whether two answers are the same, apart from case, spaces and a full stop at the end."""
    return _bare(one) == _bare(other)


def _bare(answer: str) -> str:
    return re.sub(r"\s", "", answer.lower()).rstrip(".")
