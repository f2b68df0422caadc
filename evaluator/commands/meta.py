"""`meta`: every measure of a scores file on a benchmark, without a store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from benchmarks.errors import SubmitterError
from benchmarks.registry import find, load_registry
from benchmarks.rows import Row
from benchmarks.scores import read_scores
from evaluator.commands.common import DataOption, JsonOption, console
from evaluator.commands.meta_table import report


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
    intervals: Annotated[
        bool | None,
        typer.Option(
            "--intervals/--no-intervals",
            help="Show 95 % intervals; by default where the width allows.",
            show_default=False,
        ),
    ] = None,
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
    every = target.evaluate(table, answers).rows
    _check_variants(every, variant or ())
    rows = [
        row
        for row in every
        if (not variant or row.variant in variant) and (skills or as_json or row.skill is None)
    ]
    if as_json:
        typer.echo(json.dumps([row.to_json() for row in rows], indent=1))
        return
    out = console()
    for name, repaired in table.repaired.items():
        out.print(Text(f"{name}: {len(repaired)} malformed cells were mended, as documented."))
    for hidden in dict.fromkeys(
        row.variant for row in every if not variant or row.variant in variant
    ):
        if hidden not in {row.variant for row in rows}:
            out.print(Text(f"Variant {hidden} is of skills only: --skills shows it."))
    for block in report(rows, out.width, intervals):
        out.print(block)


def _check_variants(rows: Sequence[Row], wanted: Sequence[str]) -> None:
    """Refuse a variant that no row has.

    Raises:
        SubmitterError: `unknown_variant`, listing the known ones.
    """
    known = dict.fromkeys(row.variant for row in rows if row.variant)
    unknown = [name for name in dict.fromkeys(wanted) if name not in known]
    if unknown:
        benchmark = rows[0].benchmark if rows else "The benchmark"
        raise SubmitterError(
            "unknown_variant",
            f"{benchmark} has no variant {', '.join(map(repr, unknown))}.",
            f"Known variants: {', '.join(known)}." if known else "Its measures have no variants.",
        )
