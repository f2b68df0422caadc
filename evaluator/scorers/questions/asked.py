"""The questions that are put to the images of one prompt, and on which others each depends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter

import numpy as np
import pandas as pd

from benchmarks.accumulation.question_scores import QuestionGraph
from evaluator.scorers.questions.question import Question


@dataclass(frozen=True)
class AskedQuestions:
    """Q questions of one prompt, those that people rejected left out.

    Attributes:
        prompt: the prompt.
        questions: length Q, in the order of the file.
        parents: for each question, positions of those that it depends on.
        reason: why there are none; empty where there are some.
        in_file: False where the question file does not know the prompt at all.
    """

    prompt: str
    questions: tuple[Question, ...]
    parents: tuple[tuple[int, ...], ...]
    reason: str = ""
    in_file: bool = True

    @classmethod
    def unknown(cls, prompt: str) -> AskedQuestions:
        """Of a prompt that the question file does not have."""
        return cls(prompt, (), (), "the question file does not have this prompt", in_file=False)

    @classmethod
    def of(cls, prompt: str, questions: Sequence[Question], reason: str = "") -> AskedQuestions:
        """Leave out the rejected questions; those that depend on them depend on their parents.

        Args:
            prompt: the prompt.
            questions: its questions, checked: see `evaluator.scorers.questions.check`.
            reason: why there are none.
        """
        named = {question.question_id: question for question in questions}
        kept = tuple(question for question in questions if question.review != "rejected")
        place = {question.question_id: row for row, question in enumerate(kept)}
        parents = tuple(
            tuple(place[name] for name in _standing(question, named)) for question in kept
        )
        if questions and not kept:
            reason = "all of them were rejected"
        return cls(prompt, kept, parents, reason)

    @cached_property
    def graph(self) -> QuestionGraph:
        """The dependencies as the accumulation of released answers takes them."""
        rows = range(len(self.questions))
        keys = pd.MultiIndex.from_product([[self.prompt], rows], names=["text_id", "question_id"])
        edges = [(row, above) for row in rows for above in self.parents[row]]
        child, parent = np.array(edges, np.intp).reshape(-1, 2).T
        return QuestionGraph(keys, child, parent)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Positions, each question after those that it depends on, else in the file's order."""
        sorter = TopologicalSorter(dict(enumerate(self.parents)))
        sorter.prepare()
        order: list[int] = []
        while sorter.is_active():
            ready = sorted(sorter.get_ready())
            order += ready
            sorter.done(*ready)
        return tuple(order)


def _standing(question: Question, named: dict[str, Question]) -> list[str]:
    """Ids of the parents, those of a rejected parent in its place."""
    found: dict[str, None] = {}
    for name in question.parents:
        parent = named[name]
        above = _standing(parent, named) if parent.review == "rejected" else [name]
        found.update(dict.fromkeys(above))
    return list(found)
