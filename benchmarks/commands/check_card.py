"""Command `check`: a card with its data, before there is a board."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from benchmarks.card_report import CardReport, report_of
from benchmarks.command_line import CommandConsole, DataOption, JsonOption, errors
from benchmarks.commands.common import Listing, named, print_blocks, print_json, table_or_lines
from benchmarks.errors import SubmitterError
from benchmarks.families.benchmark import CardBenchmark, ItemAnswers
from benchmarks.families.controls import REVERSED
from benchmarks.named_cards import card_at, load_named
from benchmarks.problems import problems_of
from benchmarks.registry import load_registry
from benchmarks.scores import read_scores
from benchmarks.sources.output import finite


def check(
    card: Annotated[
        str,
        typer.Argument(
            help="A card.toml, its folder, hub:OWNER/NAME@COMMIT, or a benchmark that has a card."
        ),
    ],
    *,
    data: DataOption = None,
    scores: Annotated[
        Path | None,
        typer.Option(help="Scores of two metrics or more: how many prompts tell them apart?"),
    ] = None,
    images: Annotated[
        bool,
        typer.Option(
            "--images", help="Also what the encoded images alone tell; reads all of them."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Read a card and its data: everything that is wrong with them, or what the board will rest on.

    Counts, labels, chance, what people reach, controls (pseudo-metrics that look at nothing that
    matters), golden figures, warnings, and the power of comparing two metrics. A golden figure that
    does not come out ends it with 1.

    Example: python -m benchmarks check genai_arena
    """
    try:
        benchmark = _benchmark(card)
        answers: ItemAnswers = benchmark.answers(data)
        table = read_scores(scores, benchmark, answers) if scores else None
        readers = benchmark.questions(data).images if images else None
    except SubmitterError as error:
        _tell(error, as_json=as_json)
        raise typer.Exit(SubmitterError.exit_code) from error
    report = report_of(benchmark, answers, table, readers)
    if as_json:
        print_json({"valid": report.right, "problems": [], **_for_programs(report)})
    else:
        console = CommandConsole()
        print_blocks(_for_people(report, console.width), console)
    if not report.right:
        raise typer.Exit(SubmitterError.exit_code)


def _benchmark(card: str) -> CardBenchmark:
    elsewhere = card.startswith("hub:") or Path(card).exists()
    found = load_named(card_at(card)) if elsewhere else named(card)
    if isinstance(found, CardBenchmark):
        if elsewhere:
            found.link(load_registry())
        return found
    raise SubmitterError(
        "no_card",
        f"{card} is no benchmark of a family: its protocol is code.",
        f"`python -m benchmarks describe {found.name}` tells what it is.",
    )


def _tell(error: SubmitterError, *, as_json: bool) -> None:
    """Every problem on a line of its own, as compilers print them."""
    problems = problems_of(error)
    if as_json:
        keys = ("code", "file", "line", "message", "hint")
        told = [{key: getattr(one, key) for key in keys} for one in problems]
        print_json({"valid": False, "problems": told})
        return
    console = errors()
    for one in problems:
        place = f"{one.place}: " if one.place else ""
        line = f"{place}{one.message} {one.hint}".rstrip()
        console.print(f"[bold red]error[/] \\[{one.code}]", end=": ", highlight=False)
        console.print(line, markup=False, highlight=False)


def _for_programs(report: CardReport) -> Any:
    return finite(
        {
            **asdict(report),
            "headline": report.headline.model_dump(),
            "counts": dict(report.counts),
            "labels": dict(report.labels),
        }
    )


def _for_people(report: CardReport, width: int) -> Iterator[RenderableType]:
    yield Text(f"{report.title} ({report.name}, revision {report.revision})", style="bold")
    yield Text(f"Family {report.family}; it measures {report.kind}.\n")
    lines = [(what, f"{n:,}") for what, n in report.counts.items()]
    lines += [(f"labels: {what}", f"{n:,}") for what, n in report.labels.items()]
    yield from table_or_lines(Listing("What the data hold", ("", "number"), lines), width)
    turned = {one.name: one.value for one in report.controls}
    known = [("chance", _figure(report.chance), "")]
    known += [("people", _figure(report.ceiling.value), "")] if report.ceiling else []
    known += [
        (name, _figure(value), _figure(turned[REVERSED + name]) if name != "constant" else "")
        for name, value in turned.items()
        if not name.startswith(REVERSED)
    ]
    title = f"{report.headline.measure} of what looks at no image, or at nothing that matters"
    yield from table_or_lines(Listing(title, ("", "value", "sign turned round"), known), width)
    if report.ceiling:
        yield Text(f"People: {report.ceiling.meaning}.\n")
    if report.half_credit:
        yield Text("Ties of a control count half.\n")
    if report.golden:
        golden = [
            (one.label, one.metric, one.measure, f"{one.expected:g} ± {one.tol:g}",
             _figure(one.found), one.status)
            for one in report.golden
        ]  # fmt: skip
        heads = ("golden figure", "metric", "measure", "expected", "found", "")
        yield from table_or_lines(Listing("Golden figures", heads, golden), width)
    yield from _power_blocks(report, width)
    for warning in report.warnings:
        yield Text(f"Warning [{warning.code}]: {warning.message}")


def _power_blocks(report: CardReport, width: int) -> Iterator[RenderableType]:
    power = report.power
    lines = [
        (one.what, _figure(one.difference), _share(one.probability), _number(one.more))
        for one in power.lines
    ]
    title = (
        f"With {power.n_clusters:,} prompts a difference of {power.detectable:.4f} is found in 80 %"
    )
    heads = ("difference", "value", "found with probability", "more prompts for 80 %")
    yield from table_or_lines(Listing(title, heads, lines), width)
    yield Text(f"Standard error {power.se:.4f}, from {power.basis}.")


def _figure(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "unknown"


def _share(value: float) -> str:
    return f"{value:.0%}" if math.isfinite(value) else "unknown"


def _number(value: float) -> str:
    return f"{value:,.0f}" if math.isfinite(value) else "no number"
