"""Check of a question file: every problem, with its line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter

from evaluator.scorers.questions.lines import Line, Problem
from evaluator.scorers.questions.question import NoQuestions, Question


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
            yield Problem(
                "error",
                "duplicate_question",
                number,
                f"{named(question)} has the id of line {first}.",
            )


def _parents(asked: Sequence[tuple[int, Question]]) -> Iterator[Problem]:
    place = {question.question_id: number for number, question in asked}
    for number, question in asked:
        for parent in question.parents:
            if parent not in place:
                yield Problem(
                    "error",
                    "unknown_parent",
                    number,
                    f"{named(question)} depends on question {parent!r}, which is not there.",
                )
            elif place[parent] > number:
                yield Problem(
                    "warning",
                    "forward_edge",
                    number,
                    f"{named(question)} depends on question {parent!r}, which stands after it.",
                )


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
    def content(question: Question) -> tuple[str, str]:
        return question.question, question.expected

    twice = Counter(content(question) for _, question in asked)
    seen: set[tuple[str, str]] = set()
    for number, question in asked:
        if twice[content(question)] > 1 and content(question) in seen:
            yield Problem(
                "warning",
                "repeated_question",
                number,
                f"{named(question)} is asked before; it counts again.",
            )
        seen.add(content(question))


def named(question: Question) -> str:
    """How messages name a question."""
    return f"Question {question.question_id!r} of prompt {question.prompt!r}"
