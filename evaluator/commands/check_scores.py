"""`check` of a scores file: every kind of problem at once, and what a worker would do with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import typer
from rich.text import Text

from benchmarks.schema import Benchmark
from evaluator.commands.check_record import examined_record
from evaluator.commands.check_report import plan_lines, problem_lines, safe, verdict_line
from evaluator.commands.common import console
from evaluator.submission.generations.opening import says_generations
from evaluator.submission.scores_file import examine_scores_file
from leaderboard.desk import ScoresForm
from leaderboard.records import Kind

_TABLES = frozenset({".csv", ".npz"})
"""Suffixes that only scores files have."""


def kind_of(path: Path) -> Kind:
    """What a path holds, as far as that can be told: Parquet may be scores too, and says it."""
    if path.suffix.lower() in _TABLES:
        return Kind.SCORES
    return Kind.GENERATIONS if says_generations(path) else Kind.METRIC


def check_scores(
    path: Path,
    form: ScoresForm,
    registry: Mapping[str, Benchmark],
    data: Path | None,
    *,
    as_json: bool,
) -> bool:
    """Say what is wrong; True where nothing is.

    Args:
        path: of the file.
        form: what is said beside it.
        registry: all benchmarks.
        data: folder of data files.
        as_json: whether it is told to a program.
    """
    seen, _ = examine_scores_file(path, form, registry, data)
    if as_json:
        typer.echo(json.dumps(examined_record(seen), indent=1))
        return not seen.problems
    out = console()
    for line in problem_lines(seen.kinds):
        out.print(line, soft_wrap=True)
    for line in plan_lines(seen):
        out.print(line, soft_wrap=True)
    for note in seen.notes:
        out.print(safe(note), soft_wrap=True)
    out.print(verdict_line(seen) if seen.problems else Text("Nothing is wrong.", style="green"))
    return not seen.problems
