"""`questions`: the question side of a benchmark, for a host that scores and holds no answers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from benchmarks.command_line import errors
from benchmarks.commands.common import AsJson, Data, Name, named, print_json
from benchmarks.question_folder import QuestionFolder, Tell, export_questions, key_path
from benchmarks.sources.disk import as_bytes

_LINES = 10
"""Lines of progress in a log."""


def questions(
    name: Name,
    *,
    data: Data = None,
    out: Annotated[Path, typer.Option("--out", help="Holds the exported folders and their keys.")],
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace an export of another revision, and draw a new key."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write images, prompts and pairs under opaque ids, without answers, for a scoring host.

    OUT/NAME goes to the scoring host. OUT/NAME.key.parquet says what the ids stand for: it stays
    with the judge.

    Example: python -m benchmarks questions ts2 --data data --out questions
    """
    benchmark, console = named(name), errors()
    with _shown(console) as tell:
        folder = export_questions(benchmark, data, out, tell, force=force)
    about, key = QuestionFolder(out).about(benchmark.name), key_path(out, benchmark.name)
    if as_json:
        whole = about.model_dump(include={"name", "revision", "tag", "counts"})
        print_json({**whole, "folder": str(folder), "key": str(key)})
        return
    size = as_bytes(about.counts["bytes"])
    for line in (
        f"{about.counts['pairs']} pairs, {about.counts['images']} images, {size} in {folder}",
        f"The scoring host needs {folder} alone; {key} stays with the judge.",
    ):
        console.print(line, markup=False, highlight=False)


@contextmanager
def _shown(console: Console) -> Iterator[Tell]:
    """A bar where someone looks, a few lines elsewhere."""
    if not (console.is_terminal and sys.stderr.isatty()):
        yield lambda done, total: _line(console, done, total)
        return
    columns = (TextColumn("images"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _line(console: Console, done: int, total: int) -> None:
    if done * _LINES // total > (done - 1) * _LINES // total:
        console.print(f"image {done} of {total}", markup=False, highlight=False)
