"""Shared parts of the readers: the questions of a release, and its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import ValidationError

from benchmarks.accumulation.command import read_columns
from benchmarks.errors import SubmitterError
from evaluator.scorers.questions.check import check_lines
from evaluator.scorers.questions.file import errors_of
from evaluator.scorers.questions.lines import Line, Problem
from evaluator.scorers.questions.question import Question


@dataclass(frozen=True, slots=True)
class Released:
    """The questions of a release.

    Attributes:
        lines: the questions and the lines they stand in there.
        problems: what the reader itself found odd; see `checked` for the rest.
    """

    lines: tuple[Line, ...]
    problems: tuple[Problem, ...] = ()


Reader = Callable[[Path], Released]


def checked(released: Released) -> Released:
    """Without the prompts that have an error, with every problem."""
    problems = [*released.problems, *check_lines(released.lines)]
    by_line = {line.number: line.record.prompt for line in released.lines}
    faulty = {by_line[problem.line] for problem in errors_of(problems) if problem.line in by_line}
    kept = tuple(line for line in released.lines if line.record.prompt not in faulty)
    return Released(kept, tuple(sorted(problems, key=lambda problem: problem.line)))


def with_prompts(released: Released, prompts: dict[str, str]) -> Released:
    """With the text of each prompt as given by its id; releases may have lost commas or spaces.

    Raises:
        SubmitterError: `unknown_prompts`, ids that are not among them.
    """
    missing = {line.record.prompt_id for line in released.lines} - prompts.keys()
    if missing:
        raise SubmitterError(
            "unknown_prompts",
            f"{len(missing)} prompts of the release are not among the given ones, the first is "
            f"{min(missing)!r}.",
            "Give the prompts of the benchmark that the questions belong to.",
        )
    lines = tuple(
        replace(
            line,
            record=line.record.model_copy(update={"prompt": prompts[line.record.prompt_id]}),
        )
        for line in released.lines
    )
    return Released(lines, released.problems)


def read_rows(path: Path, columns: tuple[str, ...]) -> list[tuple[int, dict[str, str]]]:
    """The rows of a CSV file with the number of each, from 2 (quoted line breaks count for one).

    Raises:
        SubmitterError: `file_missing`, `unreadable_file` or `missing_columns`.
    """
    table: pd.DataFrame = read_columns(path, columns)
    rows = table.itertuples(index=False, name=None)
    return [(n, dict(zip(table.columns, row, strict=True))) for n, row in enumerate(rows, start=2)]


def make_lines(
    path: Path, fields: Iterable[tuple[int, dict[str, Any]]]
) -> tuple[tuple[Line, ...], tuple[Problem, ...]]:
    """Questions made of their fields; what cannot be one becomes a problem."""
    lines: list[Line] = []
    problems: list[Problem] = []
    for number, values in fields:
        try:
            lines.append(Line(number, Question.model_validate({**values, "source": path.name})))
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"]))
            message = f"Prompt {values.get('prompt')!r}: {field}: {first['msg']}."
            problems.append(Problem("error", "bad_line", number, message))
    return tuple(lines), tuple(problems)
