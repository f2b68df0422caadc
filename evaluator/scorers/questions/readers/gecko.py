"""Questions of Gecko as text: the prompt with numbered parts, then a question for each number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.errors import SubmitterError
from evaluator.scorers.questions.lines import Problem
from evaluator.scorers.questions.readers.released import Released, make_lines
from evaluator.scorers.questions.writers.gecko_text import parse_coverage, parse_questions


def read_gecko(path: Path) -> Released:
    """Read blocks of text, with an empty line between two prompts.

    Each block is

        Prompt: A red colored dog.
        Coverage: A {1}[red colored] {2}[dog].
        {1} Q: What color is the dog? Choices: red, blue, black, white A: red
        {2} Q: What animal is it? Choices: dog, cat, cow, horse A: dog

    Raises:
        SubmitterError: `file_missing`, `unreadable_file`.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SubmitterError("file_missing", f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SubmitterError("unreadable_file", f"{path} is not UTF-8 text.") from error
    fields: list[tuple[int, dict[str, Any]]] = []
    problems: list[Problem] = []
    for start, block in _blocks(text):
        found, faults = _of_block(start, block)
        fields += found
        problems += faults
    lines, bad = make_lines(path, fields)
    return Released(lines, (*problems, *bad))


def _blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Each block with the number of its first line."""
    block: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        if line.strip():
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []


def _of_block(
    start: int, block: list[str]
) -> tuple[list[tuple[int, dict[str, Any]]], list[Problem]]:
    prompt = _headed("Prompt", block[0])
    coverage = _headed("Coverage", block[1]) if len(block) > 1 else None
    if prompt is None or coverage is None:
        message = "A block begins with the lines `Prompt:` and `Coverage:`."
        return [], [Problem("error", "bad_line", start, message)]
    parts = parse_coverage(coverage, prompt)
    parsed = parse_questions("\n".join(block[2:]), parts.parts)
    problems = [
        Problem("error", "bad_line", start, f"Prompt {prompt!r}: {fault}")
        for fault in (*parts.faults, *parsed.faults)
    ]
    return [
        (
            start + 2 + one.row,
            {
                "prompt": prompt,
                "question_id": one.number,
                "question": one.question,
                "choices": one.choices,
                "expected": one.expected,
                "element": parts.parts[one.number],
            },
        )
        for one in parsed.questions
    ], problems


def _headed(head: str, line: str) -> str | None:
    found = re.fullmatch(rf"{head}:\s*(.*\S)\s*", line)
    return found[1] if found else None
