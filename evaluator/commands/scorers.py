"""`scorers`: the built-in metrics: list, describe, run one, check one, verify one, reckon its cost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from benchmarks.command_line import DataOption, JsonOption, fits
from benchmarks.errors import SubmitterError
from benchmarks.registry import find, load_registry
from benchmarks.released.verification import VerificationStatus, verification_status
from evaluator.commands.check_report import control_blocks
from evaluator.commands.common import console, now, table
from evaluator.commands.scorer_options import (
    NameArgument,
    RuntimeOf,
    range_of,
    with_runtime_options,
)
from evaluator.commands.scorers_run import run
from evaluator.commands.scorers_verify import verify
from evaluator.controls import controls, crossed, skills_of
from evaluator.scorers.checkpoints import cached, commit_of
from evaluator.scorers.cost import (
    Estimate,
    Machine,
    estimates,
    find_gpu,
    gpus,
    read_rates,
    to_json,
    write_rates,
)
from evaluator.scorers.family_code import code_digest
from evaluator.scorers.in_process import ModelSource
from evaluator.scorers.registry import (
    Checkpoint,
    Runtime,
    ScorerRow,
    family_of,
    find_row,
    load_rows,
)
from evaluator.scoring.comparing import Comparisons
from evaluator.trust import precision_band, sampled, tried
from leaderboard.trust import TITLES, Check, TrustReport

if TYPE_CHECKING:
    from evaluator.scoring.asking import Size


def scorers_app() -> typer.Typer:
    """The group of commands."""
    app = typer.Typer(
        help="The built-in metrics: list, describe, run, check, verify, cost.", no_args_is_help=True
    )
    app.command("list")(list_)
    app.command()(describe)
    for command in (run, check, verify):
        app.command()(with_runtime_options(command))
    app.command()(with_runtime_options(cost, without=("questions",)))
    return app


def list_(
    family: Annotated[str, typer.Option(help="Only this family.")] = "",
    as_json: JsonOption = False,
) -> None:
    """List the built-in metrics.

    Example: python -m evaluator scorers list --family dual_encoder
    """
    rows = list(load_rows().values())
    families = sorted({row.family for row in rows})
    if family and family not in families:
        raise SubmitterError(
            "unknown_family",
            f"There is no family {family!r}.",
            f"Families: {', '.join(families)}.",
        )
    wanted = [row for row in rows if family in {"", row.family}]
    if as_json:
        typer.echo(json.dumps([row_json(row) for row in wanted], ensure_ascii=False))
        return
    console().print(rows_table(wanted))


def describe(name: NameArgument, as_json: JsonOption = False) -> None:
    """Say what a metric computes, from what, and where its checkpoint is.

    Example: python -m evaluator scorers describe siglip-so400m
    """
    row = find_row(name, load_rows())
    family = family_of(row)
    options = family.check(row).model_dump(mode="json")
    if as_json:
        more = {"options": options, "checkpoints": checkpoints_json(row)}
        typer.echo(json.dumps({**row_json(row), **more}, ensure_ascii=False))
        return
    console().print(description(row, options, family.title))


FAILED = 1


def check(
    name: NameArgument,
    benchmark: Annotated[str, typer.Option(help="Benchmark whose pairs are asked.")],
    data: DataOption = None,
    *,
    runtime_of: RuntimeOf,
    images: Annotated[int, typer.Option(min=2, help="Images that are asked about.")] = 12,
    as_json: JsonOption = False,
) -> None:
    """Ask the same pairs again: repeated, reordered, in other batches, alone, changed by one step.

    In another precision than float32, or on a GPU, the scores are also compared with those in
    float32 on the CPU. Exits with 1 where the metric might not rank.

    Example: python -m evaluator scorers check pickscore --benchmark demo_croc
    """
    row = find_row(name, load_rows())
    target = find(load_registry(), benchmark)
    runtime = runtime_of(row)
    seed = hashlib.sha256(f"{row.name} {target.name}".encode()).digest()
    questions = target.questions(data)
    compares = row.method == "compare"
    asked = Comparisons.of(questions, seed).questions if compares else questions
    few = sampled(asked, seed, n_images=images)
    crossing = crossed(questions, seed, skills_of(target, data))
    exact = replace(runtime, device="cpu", dtype="float32")
    with ModelSource(row, runtime).open() as client:
        trial = tried(client, few, target.name)
        direction = 1 if row.higher_is_better else -1
        found = controls(
            client, crossing, direction=direction, rounding=trial.rounding, compares=compares
        )
    report = trial.with_controls(found.prompt, found.content).report
    if (runtime.device, runtime.dtype or row.dtype) != ("cpu", "float32"):
        band = precision_band(trial.scores, ModelSource(row, exact), few)
        report = report.model_copy(update={"precision": band})
    _print_trust(report, as_json=as_json)
    if report.failed:
        raise typer.Exit(FAILED)


def _print_trust(report: TrustReport, *, as_json: bool) -> None:
    if as_json:
        typer.echo(report.model_dump_json(indent=1))
        return
    heads = ("asked again", "verdict", "mean change", "largest", "of the spread")
    shown = console()
    shown.print(table(heads, [_row(one, report) for one in report.checks]))
    shown.print(
        Text(
            f"{report.n_pairs} pairs of {report.n_images} images; scores spread by "
            f"{report.spread:.3g}, and {100 * report.limit:g} % of that is put down to rounding."
        )
    )
    band = report.precision
    if band and band.mean is not None and band.largest is not None:
        shown.print(
            Text(
                f"From float32 on the CPU the scores are off by {band.mean:.2g} on average and "
                f"{band.largest:.2g} at most."
            )
        )
    shown.print(*control_blocks(report))
    verdict = f"Would not rank: {report.why_not}." if report.why_not else "Passed every check."
    shown.print(Text(verdict, style="bold red" if report.failed else "green"))


def _row(one: Check, report: TrustReport) -> tuple[str, str, str, str, str]:
    share = f"{100 * one.largest / report.spread:.2g} %" if report.spread else "–"
    return TITLES[one.name], one.verdict, f"{one.mean:.3g}", f"{one.largest:.3g}", share


_PICKLES = (".pt", ".pth", ".bin", ".ckpt")


def needs(row: ScorerRow) -> list[str]:
    """What has to be given or allowed to run a row, besides its checkpoints."""
    found = []
    if any(checkpoint.file.endswith(_PICKLES) for checkpoint in row.checkpoints.values()):
        found.append("--allow-pickle")
    if row.asks_questions:
        found.append("--questions")
    return found


def rows_table(rows: Sequence[ScorerRow]) -> RenderableType:
    """The rows, one a line."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("metric", "title", "family", "reads", "range", "needs", "verified"):
        table.add_column(name, overflow="fold", no_wrap=name == "metric")
    for row in rows:
        needed, verified = " ".join(needs(row)), verification_of(row).state.value
        cells = (row.name, row.title, row.family, row.reads, range_of(row), needed, verified)
        table.add_row(*map(Text, cells))
    return table


def row_json(row: ScorerRow) -> dict[str, Any]:
    """A row for programs."""
    verification = verification_of(row).model_dump(mode="json")
    return {**row.model_dump(mode="json"), "needs": needs(row), "verification": verification}


def verification_of(row: ScorerRow) -> VerificationStatus:
    """Whether a row, as it is now, agreed with its authors' scores."""
    return verification_status(row.name, row.digest, code_digest(row.family), row.revisions)


def checkpoints_json(row: ScorerRow) -> dict[str, dict[str, Any]]:
    """By role: where each checkpoint is; the commit that the next run takes; None: the newest."""
    found = {}
    for role, checkpoint in row.checkpoints.items():
        place = cached(row, role)
        found[role] = {
            **checkpoint.model_dump(mode="json"),
            "revision": commit_of(row, role) or None,
            "place": str(place) if place else None,
        }
    return found


def description(row: ScorerRow, options: Mapping[str, Any], family: str) -> RenderableType:
    """Everything there is to know of a row."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _facts(row, options, family):
        table.add_row(name, Text(value))
    return table


def _facts(row: ScorerRow, options: Mapping[str, Any], family: str) -> Iterator[tuple[str, str]]:
    yield "metric", f"{row.name}: {row.title}"
    yield "", row.summary
    yield "formula", row.formula
    yield "source", row.source
    yield "family", f"{family} ({row.family})"
    for role, checkpoint in row.checkpoints.items():
        yield f"checkpoint {role}", _checkpoint(row, role, checkpoint)
    yield "options", ", ".join(f"{name}={value!r}" for name, value in options.items()) or "none"
    yield "precision", row.dtype
    yield "range", range_of(row)
    yield "reads", row.reads
    yield "scores", ", ".join(row.granularity)
    yield "cost", _cost(row)
    yield "needs", ", ".join(needs(row)) or "nothing else"
    yield "verified", verification_of(row).text
    yield "trained on", ", ".join(row.trained_on) or "no benchmark that is known"
    for note in row.notes:
        yield "note", note


def _checkpoint(row: ScorerRow, role: str, checkpoint: Checkpoint) -> str:
    if checkpoint.id.startswith("./"):
        return f"a file of yours: --checkpoint {role}=FILE"
    commit = commit_of(row, role) or "newest commit, then kept to"
    place: Path | None = cached(row, role)
    return "\n".join(
        (
            " ".join(filter(None, (checkpoint.id, checkpoint.file))) + f" ({commit})",
            f"licence: {checkpoint.licence or 'not verified'}",
            f"in the cache: {place}" if place else "not in the cache",
        )
    )


def _cost(row: ScorerRow) -> str:
    size = "not counted" if row.parameters is None else f"{row.parameters / 1e6:,.0f} M parameters"
    if row.flops_per_pair is None:
        return size
    return f"{size}, {row.flops_per_pair / 1e9:,.0f} GFLOPs per pair"


Found = Mapping[str, tuple[Estimate, ...]]
"""Benchmark to all that can be said of a metric on it."""

_UNKNOWN = "–"
_LETTERS = "m: measured on a machine here. e: estimated. p: published by its authors."
DEFAULT_RATES = Path(".assay/rates.json")


def cost(
    metric: Annotated[
        list[str] | None, typer.Option(help="Only this metric; repeatable. Without: all.")
    ] = None,
    benchmark: Annotated[
        list[str] | None, typer.Option(help="Only this benchmark; repeatable. Without: all.")
    ] = None,
    gpu: Annotated[str, typer.Option(help=f"One of {', '.join(gpus())}.")] = "a100",
    gpu_rate: Annotated[
        float | None, typer.Option(min=0.0, help="Price of an hour; the table is in money then.")
    ] = None,
    cores: Annotated[int, typer.Option(min=1, help="That read the images.")] = 8,
    rates: Annotated[Path, typer.Option(help="File of measured rates.")] = DEFAULT_RATES,
    measure: Annotated[
        str, typer.Option(metavar="METRIC", help="Measure this metric here first, and keep it.")
    ] = "",
    images: Annotated[int, typer.Option(min=2, help="Pictures to measure with.")] = 16,
    *,
    runtime_of: RuntimeOf,
    data: DataOption = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the table as documents have it.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Say how long the built-in metrics take on the benchmarks, and what that costs.

    Each figure is a range and says what it rests on: measured here (with --measure), estimated
    from counted work and the data sheet of a GPU, or published by authors for their own program.

    Example: python -m evaluator scorers cost --metric pickscore --gpu l4 --gpu-rate 0.80
    """
    rows = load_rows()
    if measure:
        measured = find_row(measure, rows)
        runtime = runtime_of(measured)
        _measure(measured, runtime, rates, images)
        metric = metric or [measure]
    wanted = [find_row(name, rows) for name in metric] if metric else list(rows.values())
    sizes = _sizes(benchmark or (), data)
    machine = Machine(find_gpu(gpu), cores, read_rates(rates))
    found = {
        row.name: {name: estimates(row, size, machine, rows) for name, size in sizes.items()}
        for row in wanted
    }
    if as_json:
        told = [
            to_json(rows[name], each, what, gpu_rate)
            for name, of in found.items()
            for each, what in of.items()
        ]
        typer.echo(json.dumps({"gpu": machine.gpu.model_dump(), "costs": told}))
        return
    lines = list(_lines(found, sizes, gpu_rate))
    if markdown:
        typer.echo(_as_markdown(lines, list(sizes)))
        return
    _print_costs(lines, list(sizes), machine, gpu_rate)
    if len(wanted) == 1:
        _explain(found[wanted[0].name])


def _measure(row: ScorerRow, runtime: Runtime, rates: Path, images: int) -> None:
    # Only where it is wanted: it brings the libraries of models along.
    from evaluator.scorers.cost_measuring import measured  # noqa: PLC0415

    known = read_rates(rates)
    write_rates(rates, known.with_(measured(row, runtime, now(), images=images)))


def _sizes(names: Sequence[str], data: Path | None) -> dict[str, Size]:
    """Of the benchmarks that were asked for, or of all whose size is known and that are not bundled."""
    from evaluator.submission.costs import size_of  # noqa: PLC0415 (loads NumPy)

    registry = load_registry()
    if names:
        found = {name: size_of(find(registry, name), data) for name in names}
        for name, size in found.items():
            if size is None:
                raise SubmitterError(
                    "size_unknown",
                    f"Neither data here nor the card of {name} say how much it asks.",
                    "Name the folder of its data with --data.",
                )
    else:
        found = {
            name: size_of(one, data) for name, one in registry.items() if not one.card.simulated
        }
    return {name: size for name, size in sorted(found.items()) if size is not None}


def _lines(
    found: Mapping[str, Found], benchmarks: Iterable[str], gpu_rate: float | None
) -> Iterator[tuple[str, ...]]:
    """Metrics and their cells; those that cost the same in one line, what nobody counted last."""
    merged: dict[tuple[str, ...], list[str]] = {}
    for name, of in found.items():
        cells = tuple(_cell(of[each], gpu_rate) for each in benchmarks)
        merged.setdefault(cells, []).append(name)
    for cells, names in sorted(merged.items(), key=lambda each: set(each[0]) == {_UNKNOWN}):
        yield ", ".join(names), *cells


def _cell(of: tuple[Estimate, ...], gpu_rate: float | None) -> str:
    """The best that can be said, with the letter of its basis."""
    if not of:
        return _UNKNOWN
    best = of[0]
    low, high = best.hours if gpu_rate is None else best.price(gpu_rate)
    return f"{_short(low)}–{_short(high)} {best.basis.value[0]}"


def _short(value: float) -> str:
    """Two significant digits, and nothing that nobody would notice."""
    if value < 0.01:
        return "<0.01"
    return f"{value:.2g}" if value < 100 else f"{round(value, -1):.0f}"


def _as_markdown(lines: Sequence[tuple[str, ...]], benchmarks: Sequence[str]) -> str:
    heads = ("metric", *benchmarks)
    table = [heads, ("---",) * len(heads), *lines]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in table)


def _print_costs(
    lines: Sequence[tuple[str, ...]],
    benchmarks: Sequence[str],
    machine: Machine,
    gpu_rate: float | None,
) -> None:
    unit = "Hours" if gpu_rate is None else f"Money at {gpu_rate:g} an hour"
    out = console()
    title = f"{unit} on one {machine.gpu.title}"
    whole = table(("metric", *benchmarks), lines, title)
    out.print(whole if fits(whole, out.width) else _by_benchmark(lines, benchmarks, title))
    out.print(Text(f"{_LETTERS} {_UNKNOWN}: nobody counted it."))


def _by_benchmark(lines: Sequence[tuple[str, ...]], benchmarks: Sequence[str], title: str) -> Table:
    """A benchmark a line, where there are too many for one line."""
    cells = [
        (names if first else "", benchmark, cell)
        for names, *costs in lines
        for first, benchmark, cell in zip(
            chain((True,), repeat(False)), benchmarks, costs, strict=False
        )
    ]
    return table(("metric", "benchmark", "cost"), cells, title)


def _explain(found: Found) -> None:
    for basis, why in {one.basis: one.why for of in found.values() for one in of}.items():
        console().print(Text(f"{basis.capitalize()}: {why}."), soft_wrap=True)
