"""A question file that metrics look prompts up in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.errors import SubmitterError
from evaluator.scorers.questions.asked import AskedQuestions
from evaluator.scorers.questions.check import check_lines
from evaluator.scorers.questions.lines import Line, Problem, encoded, read_lines
from evaluator.scorers.questions.question import NoQuestions, Question


class QuestionFile:
    """The questions of many prompts.

    Args:
        lines: without errors; of a prompt with several ids, the questions of the first are used.
        name: for the record.
    """

    def __init__(self, lines: Sequence[Line], name: str = "") -> None:
        self.name = name
        self.sha256 = hashlib.sha256(encoded(line.record for line in lines)).hexdigest()
        groups: dict[str, list[Line]] = {}
        for line in lines:
            groups.setdefault(line.record.prompt, []).append(line)
        self._asked = {prompt: _asked(prompt, group) for prompt, group in groups.items()}

    def __len__(self) -> int:
        return len(self._asked)

    def __contains__(self, prompt: str) -> bool:
        return prompt in self._asked

    def __iter__(self) -> Iterator[Question]:
        """All questions that are asked."""
        for asked in self._asked.values():
            yield from asked.questions

    def of(self, prompt: str) -> AskedQuestions:
        """The questions of a prompt, found by its exact text; none, with the reason, else."""
        found = self._asked.get(prompt)
        return AskedQuestions.unknown(prompt) if found is None else found


def load_questions(path: Path) -> QuestionFile:
    """Read a question file for scoring.

    Raises:
        SubmitterError: `questions_missing`; `bad_questions`, with the first error and how many
            there are.
    """
    lines, unreadable = read_lines(path)
    faults = errors_of([*unreadable, *check_lines(lines)])
    if faults:
        first = faults[0]
        raise SubmitterError(
            "bad_questions",
            f"{path}, line {first.line}: {first.message}"
            + (f" {len(faults) - 1} more errors." if len(faults) > 1 else ""),
            f"`python -m evaluator questions check {path}` lists all.",
        )
    return QuestionFile(lines, path.name)


def errors_of(problems: Sequence[Problem]) -> list[Problem]:
    """The problems that keep a file from being used, by line."""
    return sorted((p for p in problems if p.severity == "error"), key=lambda p: p.line)


def _asked(prompt: str, lines: Sequence[Line]) -> AskedQuestions:
    records = [line.record for line in lines]
    of_first = [record for record in records if record.prompt_id == records[0].prompt_id]
    questions = [record for record in of_first if isinstance(record, Question)]
    reasons = [record.no_questions for record in of_first if isinstance(record, NoQuestions)]
    return AskedQuestions.of(prompt, questions, "".join(reasons))
