"""Question files: their lines, what is wrong with them, and the questions of a prompt."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import Field, StringConstraints, ValidationError

from benchmarks.accumulation.question_scores import QuestionGraph
from benchmarks.errors import SubmitterError
from benchmarks.parsing import parse_json
from benchmarks.sources.output import append_lines, write_whole
from evaluator.scorers.registry import Frozen, ScorerRow

Text = Annotated[str, StringConstraints(pattern=r"\S")]  # Any text but an empty one
Review = Literal["", "accepted", "rejected"]


class Provenance(Frozen):
    """Where a question comes from that was written here."""

    writer: str  # `tifa`, `dsg`, `gecko`, ...
    model: str = ""  # The language model, by Hub id or folder; empty where a rule wrote it
    revision: str = ""  # Its commit
    wording: str = ""  # Version of our instructions, see `evaluator.scorers.questions.instructions`
    written_at: datetime | None = None


class Question(Frozen):
    """A question about images of one prompt."""

    prompt: Text  # Exactly as scorers are given it: it is what questions are found by
    question_id: Text  # Unique among the questions of the prompt
    question: Text
    expected: Text  # The answer that counts
    choices: tuple[Text, ...] = ()  # Empty: any answer
    parents: tuple[Text, ...] = ()
    """Ids of the questions of the same prompt without which this one makes no sense."""
    element: str = ""  # The part of the prompt it is about, as benchmarks name it
    type: str = ""  # Of the element: `object`, `color`, ...
    prompt_id: str = ""
    """In the benchmark or the release; for people, and to give a prompt its exact text."""
    source: str = ""  # The release it comes from; empty where `provenance` says it
    entailment: float | None = Field(default=None, ge=0, le=1)
    """How likely the prompt entails the question with its answer, by a language model."""
    hypothesis: str = ""  # What `entailment` is of
    review: Review = ""  # What a person said of it; a rejected question is not asked
    provenance: Provenance | None = None


class NoQuestions(Frozen):
    """A prompt that was gone through and has none, so that it is not taken for a forgotten one."""

    prompt: Text
    no_questions: Text  # Why, in a few words
    prompt_id: str = ""
    provenance: Provenance | None = None


Record = Question | NoQuestions


Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong, or odd, with a line."""

    severity: Severity  # a file with an error cannot be used; a warning is to be looked at
    code: str  # stable, in snake_case
    line: int  # of the file, from 1
    message: str  # one sentence that names prompt and question


@dataclass(frozen=True, slots=True)
class Line:
    """A record and where it stands, from 1."""

    number: int
    record: Record


def check_questions(row: ScorerRow, given: Path | None) -> None:
    """Refuse a question file that a metric lacks, or that cannot be used or has no use.

    Raises:
        SubmitterError: `questions_missing`, `no_questions`, or what `load_questions` raises.
    """
    if given is None and row.asks_questions:
        raise SubmitterError(
            "questions_missing",
            f"{row.name} asks questions, which are written before images are scored.",
            "Write them (python -m evaluator questions write --help), look them over, and name "
            "the file with --questions.",
        )
    if given is not None and not row.asks_questions:
        raise SubmitterError("no_questions", f"{row.name} asks no questions.", "Leave them out.")
    if given is not None:
        load_questions(given)


def read_lines(path: Path) -> tuple[list[Line], list[Problem]]:
    """Read a question file."""
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
    """One line."""
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
    """Write a question file, whole or not at all."""
    content = encoded(records)
    write_whole(path, lambda place: place.write_bytes(content))


def append_records(path: Path, records: Sequence[Record]) -> None:
    """Add the lines of one prompt; they are on disk when this returns."""
    append_lines(path, encoded(records))


def mend_end(path: Path) -> bool:
    """Cut off a last line that a killed run left unfinished.

    The prompt it belongs to loses all its lines, for some of its questions may be missing.
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


def check_lines(lines: Sequence[Line]) -> list[Problem]:
    """All problems of the questions, in the order of the file.

    Errors: a question id twice in a prompt, a parent that is no question of its prompt, questions
    that depend on each other (or on themselves), a prompt with and without questions. Warnings: a
    parent that stands after its child, an expected answer that is not among the choices, a single
    choice, the same question twice, one prompt under two ids.
    """
    by_prompt: dict[str, list[Line]] = {}
    for line in lines:
        by_prompt.setdefault(line.record.prompt, []).append(line)
    problems = [problem for group in by_prompt.values() for problem in _of_prompt(group)]
    return sorted(problems, key=lambda problem: problem.line)


def _of_prompt(lines: Sequence[Line]) -> Iterator[Problem]:
    yield from _emptiness(lines)
    by_id: dict[str, list[tuple[int, Question]]] = {}
    for line in lines:
        if isinstance(line.record, Question):
            by_id.setdefault(line.record.prompt_id, []).append((line.number, line.record))
    for asked in by_id.values():
        yield from _ids(asked)
        yield from _parents(asked)
        yield from _cycles(asked)
        yield from _repeats(asked)
        for number, question in asked:
            yield from _choices(number, question)


def _emptiness(lines: Sequence[Line]) -> Iterator[Problem]:
    without = [line for line in lines if isinstance(line.record, NoQuestions)]
    if without and len(lines) > 1:
        prompt = without[0].record.prompt
        yield Problem(
            "error",
            "questions_and_none",
            without[0].number,
            f"Prompt {prompt!r} is said to have no questions, but has other lines.",
        )
    ids = list(dict.fromkeys(line.record.prompt_id for line in lines))
    if len(ids) > 1:
        yield Problem(
            "warning",
            "prompt_twice",
            next(line.number for line in lines if line.record.prompt_id != ids[0]),
            f"Prompt {lines[0].record.prompt!r} has the ids {', '.join(map(repr, ids))}; the "
            "questions of the first are asked.",
        )


def _ids(asked: Sequence[tuple[int, Question]]) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for number, question in asked:
        first = seen.setdefault(question.question_id, number)
        if first != number:
            said = f"{named(question)} has the id of line {first}."
            yield Problem("error", "duplicate_question", number, said)


def _parents(asked: Sequence[tuple[int, Question]]) -> Iterator[Problem]:
    place = {question.question_id: number for number, question in asked}
    for number, question in asked:
        for parent in question.parents:
            said = f"{named(question)} depends on question {parent!r}"
            if parent not in place:
                yield Problem("error", "unknown_parent", number, f"{said}, which is not there.")
            elif place[parent] > number:
                yield Problem("warning", "forward_edge", number, f"{said}, which stands after it.")


def _cycles(asked: Sequence[tuple[int, Question]]) -> Iterator[Problem]:
    numbers = {question.question_id: number for number, question in asked}
    try:
        TopologicalSorter({q.question_id: q.parents for _, q in asked}).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        line = min(numbers[name] for name in circle)
        prompt = asked[0][1].prompt
        yield Problem(
            "error",
            "cyclic_questions",
            line,
            f"Questions of prompt {prompt!r} depend on each other: {' > '.join(circle)}.",
        )


def _choices(number: int, question: Question) -> Iterator[Problem]:
    if len(question.choices) == 1:
        yield Problem(
            "warning", "single_choice", number, f"{named(question)} leaves nothing to choose."
        )
    if question.choices and question.expected not in question.choices:
        yield Problem(
            "warning",
            "expected_not_a_choice",
            number,
            f"{named(question)} expects {question.expected!r}, which is none of its choices "
            f"{', '.join(question.choices)}.",
        )


def _repeats(asked: Sequence[tuple[int, Question]]) -> Iterator[Problem]:
    seen: set[tuple[str, str]] = set()
    for number, question in asked:
        content = question.question, question.expected
        if content in seen:
            said = f"{named(question)} is asked before; it counts again."
            yield Problem("warning", "repeated_question", number, said)
        seen.add(content)


def named(question: Question) -> str:
    """How messages name a question."""
    return f"Question {question.question_id!r} of prompt {question.prompt!r}"


@dataclass(frozen=True)
class AskedQuestions:
    """Q questions of one prompt, those that people rejected left out."""

    prompt: str  # the prompt
    questions: tuple[Question, ...]  # length Q, in the order of the file
    parents: tuple[tuple[int, ...], ...]  # for each question, positions of those that it depends on
    reason: str = ""  # why there are none; empty where there are some
    in_file: bool = True  # False where the question file does not know the prompt at all

    @classmethod
    def unknown(cls, prompt: str) -> AskedQuestions:
        """Of a prompt that the question file does not have."""
        return cls(prompt, (), (), "the question file does not have this prompt", in_file=False)

    @classmethod
    def of(cls, prompt: str, questions: Sequence[Question], reason: str = "") -> AskedQuestions:
        """Leave out the rejected questions; those that depend on them depend on their parents."""
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


class QuestionFile:
    """The questions of many prompts."""

    def __init__(self, lines: Sequence[Line], name: str = "") -> None:
        self.name = name
        self.sha256 = hashlib.sha256(encoded(line.record for line in lines)).hexdigest()
        groups: dict[str, list[Line]] = {}
        for line in lines:
            groups.setdefault(line.record.prompt, []).append(line)
        self._asked = {prompt: _questions_of(prompt, group) for prompt, group in groups.items()}

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
    """Read a question file for scoring."""
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


def read_text(path: Path) -> str:
    """A text file."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SubmitterError("file_missing", f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SubmitterError("unreadable_file", f"{path} is not UTF-8 text.") from error


def errors_of(problems: Sequence[Problem]) -> list[Problem]:
    """The problems that keep a file from being used, by line."""
    return sorted((p for p in problems if p.severity == "error"), key=lambda p: p.line)


def _questions_of(prompt: str, lines: Sequence[Line]) -> AskedQuestions:
    records = [line.record for line in lines]
    of_first = [record for record in records if record.prompt_id == records[0].prompt_id]
    questions = [record for record in of_first if isinstance(record, Question)]
    reasons = [record.no_questions for record in of_first if isinstance(record, NoQuestions)]
    return AskedQuestions.of(prompt, questions, "".join(reasons))


def of_prompt(lines: Sequence[Line], prompt: str) -> list[Line]:
    """The lines of a prompt, by its text or its id."""
    found = [line for line in lines if prompt in {line.record.prompt, line.record.prompt_id}]
    if not found:
        close = get_close_matches(prompt, [line.record.prompt for line in lines], n=1)
        hint = f"Did you mean {close[0]!r}?" if close else "A prompt is named by its text or id."
        raise SubmitterError("unknown_prompt", f"The file has no prompt {prompt!r}.", hint)
    return found


def reviewed(
    lines: Sequence[Line], prompt: str, question_id: str | None, review: Review
) -> tuple[list[Record], int]:
    """All records, with a question of a prompt marked, or all questions of the prompt."""
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
