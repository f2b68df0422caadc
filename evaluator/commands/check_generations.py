"""`check` of generations, in whatever form: every image that is missing or wrong, at once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from benchmarks.command_line import errors
from benchmarks.prompt_sets.registry import load_prompt_sets
from benchmarks.schema import Benchmark
from evaluator.commands.check_report import problem_lines, safe, verdict_line
from evaluator.commands.common import console
from evaluator.generation.check import GenerationsReport
from evaluator.generation.manifest import GenerationsManifest
from evaluator.submission.generations.opening import opened_source
from evaluator.submission.generations.taking import Taken, take
from evaluator.submission.generations.targets import AnyPrompts, PromptSets
from evaluator.submission.receiving.generations_desk import examination, listening
from leaderboard.desk import Advance, SaidOfImages, Tell


def check_generations(
    path: Path,
    registry: Mapping[str, Benchmark],
    data: Path | None,
    *,
    said: SaidOfImages | None = None,
    as_json: bool,
) -> bool:
    """Say what is missing or wrong; True where nothing is.

    Raises:
        SubmitterError: what was named cannot be read at all.
    """
    resolve = AnyPrompts(PromptSets(load_prompt_sets(), data), registry)
    with image_bar() as tell, opened_source(path) as source:
        taken = take(source, resolve, said=said, listener=listening(tell))
    if as_json:
        typer.echo(json.dumps(_record(taken), indent=1))
    else:
        _print(taken)
    return not taken.problems


@contextmanager
def image_bar() -> Iterator[Tell]:
    """A bar over all images while inside, on standard error, with the time that is left."""
    columns = (
        SpinnerColumn(),
        TextColumn("looking at images"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=errors(), transient=True) as bars:
        task = bars.add_task("images", total=None)

        def tell(now: Advance) -> None:
            bars.update(task, completed=now.done, total=now.total)

        yield tell


def _print(taken: Taken) -> None:
    out = console()
    if taken.manifest and taken.report:
        out.print(safe(_summary(taken.manifest, taken.report)))
    seen = examination(taken)
    for line in problem_lines(seen.kinds):
        out.print(line, soft_wrap=True)
    if seen.problems:
        out.print(verdict_line(seen))
    if not taken.problems:
        out.print(Text("Nothing is wrong.", style="green"))


def _summary(manifest: GenerationsManifest, report: GenerationsReport) -> str:
    reasons = ", ".join(f"{n} {reason}" for reason, n in report.withheld.items())
    withheld = f"{report.n_withheld} are withheld{f' ({reasons})' if reasons else ''}"
    return (
        f"{manifest.name} {manifest.version}: {report.usable} of {report.wanted} images are there "
        f"and right, {withheld}."
    )


def _record(taken: Taken) -> dict[str, object]:
    manifest, report = taken.manifest, taken.report
    return {
        "name": manifest.name if manifest else "",
        "version": manifest.version if manifest else "",
        "prompt_set": taken.images.prompt_set if taken.images else "",
        "wanted": report.wanted if report else 0,
        "usable": report.usable if report else 0,
        "withheld": dict(report.withheld) if report else {},
        "sizes": taken.images.sizes if taken.images else {},
        "n_bytes": taken.images.n_bytes if taken.images else 0,
        "content_sha256": taken.content_sha256,
        "model_card": manifest.model_card().model_dump(mode="json") if manifest else None,
        "counts": dict(taken.counts),
        "problems": [
            {"kind": p.code, "where": p.place, "message": p.message, "hint": p.hint}
            for p in taken.problems
        ],
    }
