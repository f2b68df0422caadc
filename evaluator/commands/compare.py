"""`compare`: metric against metric, with the numbers of the boards, without a store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.comparison import corrected
from benchmarks.registry import find, load_registry
from evaluator.commands.common import DataOption, JsonOption, console
from evaluator.commands.compare_choice import Asked, choose
from evaluator.commands.compare_files import contenders, measured_field
from evaluator.commands.compare_table import field_report, pair_report
from leaderboard.comparing import Match, compare_cells


def compare(
    benchmark: Annotated[str, typer.Argument(help="Benchmark, for example ts2.")],
    more: Annotated[
        list[Path] | None, typer.Argument(help="Further scores files.", metavar="[FILE]...")
    ] = None,
    scores: Annotated[
        list[Path] | None,
        typer.Option(
            "--scores", help="Scores files, CSV or Parquet: two, or one of several columns."
        ),
    ] = None,
    data: DataOption = None,
    metric_a: Annotated[
        str | None, typer.Option(help="The metric of the first file that is compared.")
    ] = None,
    metric_b: Annotated[
        str | None, typer.Option(help="The metric of the second file, or of the only one.")
    ] = None,
    measure: Annotated[
        str | None, typer.Option(help="Measure to compare by; without it, the headline.")
    ] = None,
    variant: Annotated[str | None, typer.Option(help="Variant of the measure.")] = None,
    split: Annotated[str | None, typer.Option(help="Split of the benchmark.")] = None,
    facet: Annotated[str | None, typer.Option(help="Facet of the measure.")] = None,
    skill: Annotated[
        list[str] | None, typer.Option(help="Skill; repeatable for the mean of several.")
    ] = None,
    skills: Annotated[bool, typer.Option("--skills", help="Show every skill too.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Show every variant, split and facet too.")
    ] = False,
    lower_is_better: Annotated[
        list[str] | None, typer.Option(help="Metric for which lower is better; repeatable.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two metrics, or each two of several, by the test of the boards.

    The scores files that boards publish give the p-values that boards show.

    Example: python -m evaluator compare ts2 --scores a.csv b.csv --data data
    """
    paths = [*(scores or ()), *(more or ())]
    if not paths:
        raise typer.BadParameter("scores files are needed", param_hint="--scores")
    if len(paths) > 2 and (metric_a or metric_b):
        raise typer.BadParameter("--metric-a and --metric-b choose from one file or two")
    if len(paths) == 1 and bool(metric_a) != bool(metric_b):
        raise typer.BadParameter("of one file, give both --metric-a and --metric-b, or neither")
    target = find(load_registry(), benchmark)
    answers = target.answers(data)
    found = contenders(paths, (metric_a, metric_b), target, answers, tuple(lower_is_better or ()))
    field = measured_field(found, target, answers)
    asked = Asked(measure, variant, split, facet, tuple(skill or ()), skills, everything)
    chosen = choose(field.slices, asked, target.card)
    names = field.names
    if len(found) > 2:
        places = [(a, b) for a in range(len(found)) for b in range(a + 1, len(found))]
        matches = [Match(chosen.first, a, b) for a, b in places]
        rows = corrected(compare_cells(matches, target.card, names), "holm")
    else:
        matches = [Match(one, 0, 1) for one in (chosen.first, *chosen.others)]
        rows = corrected(compare_cells(matches, target.card, names), "benjamini_hochberg")
    if as_json:
        typer.echo(json.dumps([field.facts | row.to_json() for row in rows], indent=1))
        return
    out = console()
    report = field_report if len(found) > 2 else pair_report
    for block in report(rows, field.facts, target.card, out.width):
        out.print(block)
