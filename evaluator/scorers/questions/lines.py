"""Question files as lines: read with what is wrong with each, written whole or added to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from benchmarks.errors import SubmitterError
from benchmarks.json_parsing import parse_json
from benchmarks.sources.output import write_whole
from evaluator.scorers.questions.question import NoQuestions, Question, Record

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong, or odd, with a line.

    Attributes:
        severity: a file with an error cannot be used; a warning is to be looked at.
        code: stable, in snake_case.
        line: of the file, from 1.
        message: one sentence that names prompt and question.
    """

    severity: Severity
    code: str
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Line:
    """A record and where it stands, from 1."""

    number: int
    record: Record


def read_lines(path: Path) -> tuple[list[Line], list[Problem]]:
    """Read a question file.

    Returns:
        The lines that could be read, in order, and what is wrong with the others.

    Raises:
        SubmitterError: `questions_missing`, there is no such file.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SubmitterError(
            "questions_missing",
            f"The question file {path} cannot be read: {error.strerror or error}.",
            "Write one with `python -m evaluator questions write`, or import a released one.",
        ) from error
    lines: list[Line] = []
    problems: list[Problem] = []
    for number, text in enumerate(content.splitlines(), start=1):
        if not text.strip():
            continue
        try:
            lines.append(Line(number, parse_record(text)))
        except ValueError as error:
            problems.append(Problem("error", "bad_line", number, str(error)))
    return lines, problems


def parse_record(text: bytes) -> Record:
    """One line.

    Raises:
        ValueError: it is not JSON, or not a question; the text names the field.
    """
    found = parse_json(text)
    if not isinstance(found, dict):
        raise ValueError("It is not an object.")  # noqa: TRY004 (one kind of error for all faults)
    kind = NoQuestions if "no_questions" in found else Question
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the line"
        raise ValueError(f"{field}: {first['msg']}.") from error


def encoded(records: Iterable[Record]) -> bytes:
    """The lines of these records; fields that say nothing are left out."""
    return b"".join(
        record.model_dump_json(exclude_defaults=True).encode() + b"\n" for record in records
    )


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Write a question file, whole or not at all.

    Raises:
        SubmitterError: `cannot_write`.
    """
    content = encoded(records)
    write_whole(path, lambda place: place.write_bytes(content))


def append_records(path: Path, records: Sequence[Record]) -> None:
    """Add the lines of one prompt, all in one write.

    Raises:
        SubmitterError: `cannot_write`.
    """
    try:
        with path.open("ab", buffering=0) as file:
            file.write(encoded(records))
            os.fsync(file.fileno())
    except OSError as error:
        raise SubmitterError(
            "cannot_write", f"{path} cannot be written: {error.strerror or error}."
        ) from error


def mend_end(path: Path) -> bool:
    """Cut off a last line that a killed run left unfinished.

    The prompt it belongs to loses all its lines, for some of its questions may be missing.

    Returns:
        Whether anything was cut off.
    """
    content = path.read_bytes()
    if not content or content.endswith(b"\n"):
        return False
    kept = content[: content.rfind(b"\n") + 1].splitlines(keepends=True)
    last = parse_record(kept[-1]).prompt if kept else ""
    while kept and parse_record(kept[-1]).prompt == last:
        kept.pop()
    write_whole(path, lambda place: place.write_bytes(b"".join(kept)))
    return True
