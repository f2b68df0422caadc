"""`compare`: metric against metric, with the numbers of the boards, without a store."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.comparison import Compared, corrected
from benchmarks.registry import find, load_registry
from benchmarks.schema import Card
from benchmarks.statistics.resampling import seed_of
from evaluator.commands.common import DataOption, JsonOption, console
from evaluator.commands.compare_choice import Asked, Chosen, choose
from evaluator.commands.compare_files import contenders, measured_field
from evaluator.commands.compare_permuted import permuted
from evaluator.commands.compare_table import field_report, pair_report

_PERMUTE_HELP = (
    "Test rows that are one correlation over a pool of images (SRCC, KRCC, Pearson) by PERM-BOTH "
    "too: both metrics are standardised and swapped at random, cluster by cluster, which tests that "
    "they are exchangeable on every cluster. Boards flip the signs of the two metrics' "
    "contributions instead: that works for every measure, needs its long work per metric and not "
    "per pair, and keeps its level for scores of few steps, where PERM-BOTH rejects too seldom by "
    "SRCC. Otherwise the two agree, and over few clusters both reject too often where the errors "
    "of two metrics differ in kind (see tools/calibration/REPORT.md). KRCC of "
    "metrics with ties takes seconds per pair."
)


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
    permute_scores: Annotated[bool, typer.Option("--permute-scores", help=_PERMUTE_HELP)] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare two metrics, or each two of several, by the test of the boards.

    The scores files that boards publish give the p-values of the boards, before the board's
    correction over all its pairs.

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
    rows = _rows(chosen, target.card, field.names)
    seed = seed_of(target.card.name, target.card.revision)
    second = permuted(rows, field, seed) if permute_scores else ()
    if as_json:
        records = [field.facts | row.to_json() for row in rows]
        if second:
            records = [a | b.to_json() for a, b in zip(records, second, strict=True)]
        typer.echo(json.dumps(records, indent=1))
        return
    out = console()
    report = field_report if len(found) > 2 else pair_report
    for block in report(rows, field.facts, target.card, out.width, second):
        out.print(block)


def _rows(chosen: Chosen, card: Card, names: Mapping[str, str]) -> tuple[Compared, ...]:
    """Each two of several metrics on one slice, or two of them on all that were chosen."""
    # It brings scipy.stats, which takes seconds to import and no other command needs.
    from leaderboard.ranking.comparing import Match, compare_cells  # noqa: PLC0415

    if len(names) > 2:
        matches = [Match(chosen.first, a, b) for a, b in combinations(range(len(names)), 2)]
        return corrected(compare_cells(matches, card, names), "holm")
    matches = [Match(one, 0, 1) for one in (chosen.first, *chosen.others)]
    return each_corrected(compare_cells(matches, card, names))


def each_corrected(rows: Sequence[Compared]) -> tuple[Compared, ...]:
    """The first row alone, skills over skills and measures over measures, as the page has them.

    So what is said of the first does not depend on how many others are shown.

    Args:
        rows: of one pair; those of another skill than the first are its skills, and what is left
            are its measures.
    """
    first, *others = rows
    of_skills = [row.skill != first.skill for row in others]
    parts = {
        chosen: iter(
            corrected(
                [row for row, by in zip(others, of_skills, strict=True) if by == chosen],
                "benjamini_hochberg",
            )
        )
        for chosen in (True, False)
    }
    return (*corrected([first], "holm"), *(next(parts[by]) for by in of_skills))
