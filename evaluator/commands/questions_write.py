"""`questions write`: questions by a language model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from benchmarks.command_line import errors
from evaluator.commands.common import DataOption, now
from evaluator.scorers.questions.files import Provenance
from evaluator.scorers.questions.instructions import WORDING
from evaluator.scorers.questions.readers import elements_of
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
    prompts_of_benchmark,
    prompts_of_file,
    write_questions,
)
from evaluator.scorers.registry import Runtime
from evaluator.scoring import progress as scoring_progress


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
    with _bar("writing questions") as listener:
        summary = write_questions(
            wanted, made, out, provenance=provenance, clock=now, listener=listener
        )
    _report(out, summary)


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
    from evaluator.scorers.questions.loading import (  # noqa: PLC0415 (imports torch)
        open_entailment,
        open_text_model,
    )

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


@contextmanager
def _bar(what: str) -> Iterator[Callable[[scoring_progress.Progress], None]]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=errors()) as bar:
        task = bar.add_task(what)
        yield lambda progress: bar.update(task, completed=progress.done, total=progress.total)


def _report(out: Path, summary: Summary) -> None:
    for prompt, faults in {**summary.faults, **summary.failed}.items():
        for fault in faults:
            _say(f"{prompt!r}: {fault}")
    _say(
        f"{out}: {summary.n_questions} questions about {summary.written} prompts written, "
        f"{summary.kept} prompts were there, {len(summary.failed)} got none."
    )


def _say(text: str) -> None:
    errors().print(text, markup=False, highlight=False)
