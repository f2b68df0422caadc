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

from benchmarks.command_line import DataOption, ForceOption, JsonOption, errors
from benchmarks.errors import SubmitterError
from benchmarks.sources.output import check_output
from evaluator.commands.common import console, now
from evaluator.commands.progress import progress_bar
from evaluator.scorers.questions.files import (
    AskedQuestions,
    NoQuestions,
    Problem,
    Provenance,
    Question,
    Review,
    check_lines,
    errors_of,
    of_prompt,
    read_lines,
    reviewed,
    write_records,
)
from evaluator.scorers.questions.instructions import WORDING
from evaluator.scorers.questions.readers import READERS, checked, elements_of, with_prompts
from evaluator.scorers.questions.writers import (
    Helpers,
    PhrasesBy,
    WriterName,
    make_writer,
    needs_model,
)
from evaluator.scorers.questions.writing import (
    Prompt,
    Summary,
    prompts_by_id,
    prompts_of_benchmark,
    prompts_of_file,
    write_questions,
)
from evaluator.scorers.registry import Runtime

app = typer.Typer(help="Questions that metrics ask: write, import, check, show, review.")

FileArgument = Annotated[Path, typer.Argument(help="Question file, one JSON object per line.")]
PromptArgument = Annotated[str, typer.Argument(help="The prompt's text, or its id.")]


class Format(StrEnum):
    """Formats that can be imported."""

    TIFA = "tifa"
    DSG = "dsg"
    DPG = "dpg"
    TS2 = "ts2"
    EVALMUSE = "evalmuse"
    GECKO = "gecko"
    GENEVAL2 = "geneval2"
    UNIGENBENCH = "unigenbench"
    EVALALIGN = "evalalign"


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


@app.command()
def write(
    out: Annotated[Path, typer.Argument(help="Question file to write, or to go on with.")],
    *,
    writer: Annotated[WriterName, typer.Option(help="Whose questions.")],
    prompts: Annotated[
        Path | None, typer.Option(help="Prompts: a CSV file, or text with one a line.")
    ] = None,
    benchmark: Annotated[str | None, typer.Option(help="Or the prompts of a benchmark.")] = None,
    data: DataOption = None,
    model: Annotated[str | None, typer.Option(help="Language model: Hub id or folder.")] = None,
    revision: Annotated[str, typer.Option(help="Its commit.")] = "",
    verifier: Annotated[
        str | None, typer.Option(help="Language model that confirms TIFA questions.")
    ] = None,
    nli: Annotated[
        str | None, typer.Option(help="T5 of entailment, for the filter of Gecko.")
    ] = None,
    elements: Annotated[
        Path | None, typer.Option(help="EvalMuse file with the elements of the prompts.")
    ] = None,
    phrases: Annotated[
        PhrasesBy, typer.Option(help="Who finds the phrases of BVQA and VQ2.")
    ] = "model",
    device: Annotated[str, typer.Option(help="As torch names it.")] = "cpu",
    offline: Annotated[bool, typer.Option("--offline", help="Never ask the Hub.")] = False,
) -> None:
    """Write questions with a language model; a run that was stopped goes on where it was.

    Example: python -m evaluator questions write dsg.jsonl --writer dsg --benchmark tifa160
    --model Qwen/Qwen2.5-7B-Instruct --device cuda
    """
    wanted = _prompts(prompts, benchmark, data)
    runtime = Runtime(device=device, offline=offline)
    helpers, provenance = _helpers(
        writer,
        runtime,
        model=model,
        revision=revision,
        verifier=verifier,
        nli=nli,
        elements=elements,
        phrases=phrases,
    )
    made = make_writer(writer, helpers)
    with progress_bar("writing questions") as listener:
        summary = write_questions(
            wanted, made, out, provenance=provenance, clock=now, listener=listener
        )
    _report(out, summary)


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
    force: ForceOption = False,
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


def _prompts(path: Path | None, benchmark: str | None, data: Path | None) -> list[Prompt]:
    if (path is None) == (benchmark is None):
        raise typer.BadParameter("Name either --prompts or --benchmark.")
    if path is not None:
        return prompts_of_file(path)
    return prompts_of_benchmark(benchmark or "", data)


def _helpers(
    writer: WriterName,
    runtime: Runtime,
    *,
    model: str | None,
    revision: str,
    verifier: str | None,
    nli: str | None,
    elements: Path | None,
    phrases: PhrasesBy,
) -> tuple[Helpers, Provenance]:
    """The models that are named, and what is kept of them with each question."""
    from evaluator.scorers.questions.loading import open_entailment, open_text_model  # noqa: PLC0415 (imports torch)

    written_by = None
    provenance = Provenance(writer=writer, wording=WORDING)
    if model is not None and needs_model(writer, phrases):
        written_by, source = open_text_model(model, runtime, revision)
        provenance = provenance.model_copy(
            update={"model": source.name, "revision": source.revision}
        )
    helpers = Helpers(
        written_by,
        open_text_model(verifier, runtime)[0] if verifier else None,
        open_entailment(nli, runtime) if nli else None,
        elements_of(elements) if elements else {},
        phrases,
    )
    return helpers, provenance


def _report(out: Path, summary: Summary) -> None:
    for prompt, faults in {**summary.faults, **summary.failed}.items():
        for fault in faults:
            _say(f"{prompt!r}: {fault}")
    _say(
        f"{out}: {summary.n_questions} questions about {summary.written} prompts written, "
        f"{summary.kept} prompts were there, {len(summary.failed)} got none."
    )
