"""Review of questions by people, put into the file."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from benchmarks.errors import SubmitterError
from evaluator.scorers.questions.lines import Line
from evaluator.scorers.questions.question import Question, Record, Review


def of_prompt(lines: Sequence[Line], prompt: str) -> list[Line]:
    """The lines of a prompt, by its text or its id.

    Raises:
        SubmitterError: `unknown_prompt`, with the one most like it.
    """
    found = [line for line in lines if prompt in {line.record.prompt, line.record.prompt_id}]
    if not found:
        close = get_close_matches(prompt, [line.record.prompt for line in lines], n=1)
        hint = f"Did you mean {close[0]!r}?" if close else "A prompt is named by its text or id."
        raise SubmitterError("unknown_prompt", f"The file has no prompt {prompt!r}.", hint)
    return found


def reviewed(
    lines: Sequence[Line], prompt: str, question_id: str | None, review: Review
) -> tuple[list[Record], int]:
    """All records, with a question of a prompt marked, or all questions of the prompt.

    Args:
        lines: of the file.
        prompt: text or id.
        question_id: None: all.
        review: what a person said; empty takes it back.

    Returns:
        The records in their order, and how many were marked.

    Raises:
        SubmitterError: `unknown_prompt`, `unknown_question`.
    """
    numbers = {
        line.number
        for line in of_prompt(lines, prompt)
        if isinstance(line.record, Question) and question_id in {None, line.record.question_id}
    }
    if not numbers:
        raise SubmitterError(
            "unknown_question", f"Prompt {prompt!r} has no question {question_id or ''!r}."
        )
    marked: list[Record] = [
        line.record.model_copy(update={"review": review}) if line.number in numbers else line.record
        for line in lines
    ]
    return marked, len(numbers)
