"""`meta`: every measure of a scores file on a benchmark, without a store."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from benchmarks.registry import find, load_registry
from benchmarks.rows import Row
from benchmarks.scores import read_scores
from evaluator.commands.common import DataOption, JsonOption, console

METRIC_WIDTH, COLUMN_WIDTH = 20, 9
"""Characters a column takes, to tell whether a table fits the reader's screen."""


def meta(
    benchmark: Annotated[str, typer.Argument(help="Benchmark, for example ts2.")],
    scores: Annotated[Path, typer.Option("--scores", help="Scores file, CSV or Parquet.")],
    data: DataOption = None,
    metric: Annotated[
        str, typer.Option(help="Name for the metric of a file with a single column `score`.")
    ] = "score",
    lower_is_better: Annotated[
        list[str] | None, typer.Option(help="Metric for which lower is better; repeatable.")
    ] = None,
    variant: Annotated[
        list[str] | None, typer.Option(help="Show only this variant; repeatable.")
    ] = None,
    skills: Annotated[bool, typer.Option(help="Show skills too, not only the whole.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Compute the meta-metrics of a scores file.

    Example: python -m evaluator meta ts2 --scores scores.csv --data data
    """
    target = find(load_registry(), benchmark)
    answers = target.answers(data)
    table = read_scores(
        scores, target, answers, metric=metric, lower_is_better=tuple(lower_is_better or ())
    )
    rows = [
        row
        for row in target.evaluate(table, answers).rows
        if (not variant or row.variant in variant) and (skills or as_json or row.skill is None)
    ]
    if as_json:
        typer.echo(json.dumps([row.to_json() for row in rows], indent=1))
        return
    for name, repaired in table.repaired.items():
        console().print(f"{name}: {len(repaired)} malformed cells were mended, as documented.")
    for group in _tables(rows, console().width):
        console().print(group)


def _tables(rows: Sequence[Row], width: int) -> Iterator[Table]:
    """A table per variant and skill, cut by measure where it is too wide for the reader."""
    for variant, skill in dict.fromkeys((row.variant, row.skill) for row in rows):
        members = [r for r in rows if (r.variant, r.skill) == (variant, skill)]
        title = f"{members[0].benchmark} · variant {variant}" + (f" · {skill}" if skill else "")
        measures = list(dict.fromkeys(r.measure for r in members))
        columns = dict.fromkeys((r.measure, r.facet, r.split) for r in members)
        if METRIC_WIDTH + COLUMN_WIDTH * len(columns) <= width:
            yield _table(members, measures, title)
            continue
        for measure in measures:
            part = [r for r in members if r.measure == measure]
            yield _table(part, [measure], f"{title} · {measure}")


def _table(rows: Sequence[Row], measures: Sequence[str], title: str) -> Table:
    """Metrics down; measures, each by facet and split, across."""
    columns = sorted(
        dict.fromkeys((r.measure, r.facet, r.split) for r in rows),
        key=lambda column: measures.index(column[0]),
    )
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("metric", no_wrap=True)
    for column in columns:
        table.add_column("\n".join(part for part in column if part), justify="right")
    values = {(r.metric, r.measure, r.facet, r.split): r.value for r in rows}
    for metric in dict.fromkeys(r.metric for r in rows):
        cells = [_number(values.get((metric, *column), math.nan)) for column in columns]
        table.add_row(metric, *cells)
    return table


def _number(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "–"
