"""`scorers cost`: the hours and the money that built-in metrics take on benchmarks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from benchmarks.errors import SubmitterError
from benchmarks.registry import find, load_registry
from evaluator.commands.common import DataOption, JsonOption, console, now, table
from evaluator.commands.scorer_options import (
    AllowPickleOption,
    CheckpointOption,
    DeviceOption,
    DtypeOption,
    OfflineOption,
    RevisionOption,
    TrustRemoteCodeOption,
    runtime_of,
)
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
from evaluator.scorers.registry import Runtime, ScorerRow, find_row, load_rows

if TYPE_CHECKING:
    from evaluator.scoring.plan import Size

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
    device: DeviceOption = "cpu",
    dtype: DtypeOption = None,
    checkpoint: CheckpointOption = None,
    revision: RevisionOption = None,
    offline: OfflineOption = False,
    allow_pickle: AllowPickleOption = False,
    trust_remote_code: TrustRemoteCodeOption = False,
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
        runtime = runtime_of(
            measured,
            device,
            dtype,
            checkpoint,
            revision,
            None,
            offline,
            allow_pickle,
            trust_remote_code,
        )
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
    _print(lines, list(sizes), machine, gpu_rate)
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


def _print(
    lines: Sequence[tuple[str, ...]],
    benchmarks: Sequence[str],
    machine: Machine,
    gpu_rate: float | None,
) -> None:
    unit = "Hours" if gpu_rate is None else f"Money at {gpu_rate:g} an hour"
    out = console()
    out.print(table(("metric", *benchmarks), lines, f"{unit} on one {machine.gpu.title}"))
    out.print(Text(f"{_LETTERS} {_UNKNOWN}: nobody counted it."))


def _explain(found: Found) -> None:
    for basis, why in {one.basis: one.why for of in found.values() for one in of}.items():
        console().print(Text(f"{basis.capitalize()}: {why}."), soft_wrap=True)
