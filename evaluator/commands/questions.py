"""`questions`: write, import, check, look at and review the questions that metrics ask."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.tree import Tree

from benchmarks.command_line import errors
from benchmarks.errors import SubmitterError
from benchmarks.sources.output import check_output
from evaluator.commands.common import JsonOption, console
from evaluator.commands.questions_write import write
from evaluator.scorers.questions.files import (
    AskedQuestions,
    NoQuestions,
    Problem,
    Question,
    Review,
    check_lines,
    errors_of,
    of_prompt,
    read_lines,
    reviewed,
    write_records,
)
from evaluator.scorers.questions.readers import READERS, checked, with_prompts
from evaluator.scorers.questions.writing import prompts_by_id

app = typer.Typer(help="Questions that metrics ask: write, import, check, show, review.")
app.command()(write)

FileArgument = Annotated[Path, typer.Argument(help="Question file, one JSON object per line.")]
PromptArgument = Annotated[str, typer.Argument(help="The prompt's text, or its id.")]


class Format(StrEnum):
    """Formats that can be imported."""

    TIFA = "tifa"
    DSG = "dsg"
    TS2 = "ts2"
    EVALMUSE = "evalmuse"
    GECKO = "gecko"


class Said(StrEnum):
    """What a person says of a question."""

    ACCEPT = "accept"
    REJECT = "reject"
    CLEAR = "clear"


_REVIEWS: dict[Said, Review] = {
    Said.ACCEPT: "accepted",
    Said.REJECT: "rejected",
    Said.CLEAR: "",
}


@app.command("import")
def import_(
    form: Annotated[Format, typer.Argument(help="What kind of file it is.", metavar="FORMAT")],
    source: Annotated[Path, typer.Argument(help="Released question file.")],
    *,
    out: Annotated[Path, typer.Option(help="Question file to write.")],
    prompts: Annotated[
        Path | None,
        typer.Option(help="CSV of prompts by id, where the release changed their texts."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace --out if it exists.")] = False,
) -> None:
    """Make a question file of a released one; prompts with an error are left out, and said.

    Example: python -m evaluator questions import ts2 T2S_DSG_Q_dependency.csv --prompts
    metadata.csv --out ts2_dsg.jsonl
    """
    check_output(out, force=force, inputs=filter(None, (source, prompts)))
    released = READERS[form](source)
    if prompts is not None:
        released = with_prompts(released, prompts_by_id(prompts))
    found = checked(released)
    write_records(out, (line.record for line in found.lines))
    _list(found.problems, source)
    there = {line.record.prompt for line in released.lines}
    kept = {line.record.prompt for line in found.lines}
    left = f", {len(there - kept)} prompts left out" if there - kept else ""
    _say(f"{out}: {len(found.lines)} questions about {len(kept)} prompts{left}.")


@app.command()
def check(file: FileArgument, as_json: JsonOption = False) -> None:
    """List every problem of a question file, with its line; ends with 1 where it has errors.

    Example: python -m evaluator questions check dsg.jsonl
    """
    lines, unreadable = read_lines(file)
    problems = sorted([*unreadable, *check_lines(lines)], key=lambda problem: problem.line)
    faults = errors_of(problems)
    if as_json:
        typer.echo(json.dumps([asdict(problem) for problem in problems], ensure_ascii=False))
    else:
        _list(problems, file)
        reviews = Counter(r.review for line in lines if isinstance(r := line.record, Question))
        console().print(
            f"{len({line.record.prompt for line in lines})} prompts, {reviews.total()} questions: "
            f"{reviews['accepted']} accepted, {reviews['rejected']} rejected; "
            f"{len(faults)} errors, {len(problems) - len(faults)} warnings.",
            markup=False,
            highlight=False,
        )
    if faults:
        raise SubmitterError(
            "bad_questions", f"{file} has {len(faults)} errors.", "Mend the lines that are named."
        )


@app.command()
def show(file: FileArgument, prompt: PromptArgument) -> None:
    """Show the questions of a prompt, each below one that it depends on.

    Example: python -m evaluator questions show dsg.jsonl "a white cat"
    """
    lines = of_prompt(read_lines(file)[0], prompt)
    faults = errors_of(check_lines(lines))
    if faults:
        raise SubmitterError("bad_questions", f"{file}, line {faults[0].line}: {faults[0].message}")
    records = [line.record for line in lines]
    tree = Tree(_plain(records[0].prompt), guide_style="dim")
    for record in records:
        if isinstance(record, NoQuestions):
            tree.add(_plain(f"no questions: {record.no_questions}"))
    questions = [record for record in records if isinstance(record, Question)]
    # Rejected ones are shown too, where they stand.
    shown = [question.model_copy(update={"review": ""}) for question in questions]
    asked = AskedQuestions.of(records[0].prompt, shown)
    branches: dict[int, Tree] = {}
    for row in asked.order:
        above = branches[asked.parents[row][0]] if asked.parents[row] else tree
        branches[row] = above.add(_plain(_described(questions[row])))
    console().print(tree)


@app.command()
def review(
    file: FileArgument,
    prompt: PromptArgument,
    said: Annotated[Said, typer.Argument(help="What you say of it.")],
    question_id: Annotated[
        str | None, typer.Option("--question", help="Its id; without it, all of the prompt.")
    ] = None,
) -> None:
    """Accept or reject questions; rejected ones are not asked.

    Example: python -m evaluator questions review dsg.jsonl "a white cat" reject --question 3
    """
    lines, problems = read_lines(file)
    if problems:
        raise SubmitterError(
            "bad_questions", f"{file}, line {problems[0].line}: {problems[0].message}"
        )
    records, count = reviewed(lines, prompt, question_id, _REVIEWS[said])
    write_records(file, records)
    _say(f"{count} questions of {prompt!r}: {_REVIEWS[said] or 'not reviewed'}.")


def _list(problems: tuple[Problem, ...] | list[Problem], file: Path) -> None:
    for problem in problems:
        console().print(
            f"{file}:{problem.line}: {problem.severity} [{problem.code}] {problem.message}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


def _described(question: Question) -> str:
    choices = f" ({', '.join(question.choices)})" if question.choices else ""
    more = question.parents[1:]
    notes = [
        f"also needs {', '.join(more)}" if more else "",
        question.review,
        f"entailment {question.entailment:.3f}" if question.entailment is not None else "",
    ]
    tail = "; ".join(filter(None, notes))
    text = f"{question.question_id}. {question.question}{choices} -> {question.expected}"
    return f"{text} [{tail}]" if tail else text


def _plain(text: str) -> str:
    return text.replace("[", r"\[")


def _say(text: str) -> None:
    errors().print(text, markup=False, highlight=False)
