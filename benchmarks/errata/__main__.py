"""`python -m benchmarks.errata`: list the errata, or recompute one."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.command_line import DataOption, JsonOption, run
from benchmarks.errata.entries import KINDS, Erratum, errata, erratum
from benchmarks.errata.figures import RecomputedCell, recompute
from benchmarks.published import papers

_DIFFERS = "differs"

app = typer.Typer(
    help="Published figures that do not follow from their data.",
    pretty_exceptions_enable=False,
)


@app.command("errata")
def show_errata(
    identifier: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Erratum to recompute; none: list all.")
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the errata, or print what one printed beside what its data give.

    Example: python -m benchmarks.errata tifa-spearman-is-pearson --data DATA
    """
    if identifier is None:
        _list(as_json=as_json)
        return
    entry = erratum(identifier)
    cells = recompute(entry, data) if entry.recompute else ()
    if as_json:
        found = {"recomputed": [_for_programs(cell) for cell in cells]}
        typer.echo(json.dumps(entry.model_dump() | {"command": entry.command} | found, indent=1))
        return
    console = Console()
    console.print(f"[bold]{entry.title}[/]", highlight=False)
    console.print(f"{papers()[entry.paper].citation}; {entry.where}", markup=False)
    console.print(f"{entry.why} ({KINDS[entry.kind]})", markup=False)
    tick = "ok" if console.options.ascii_only else "✓"
    console.print(_recomputed(cells, tick=tick) if cells else _as_entered(entry))


def _list(*, as_json: bool) -> None:
    if as_json:
        listed = [entry.model_dump() | {"command": entry.command} for entry in errata()]
        typer.echo(json.dumps(listed, indent=1))
        return
    table = Table()
    table.add_column("id", no_wrap=True)  # it is what the command takes
    for name in ("where", "what", "recomputed"):
        table.add_column(name)
    for entry in errata():
        where = f"{entry.paper}, {entry.where}"
        table.add_row(entry.id, where, entry.title, "yes" if entry.recompute else "no")
    Console().print(table)


def _for_programs(cell: RecomputedCell) -> dict[str, object]:
    return asdict(cell) | {"confirmed": cell.confirmed, "explained": cell.explained}


def _as_entered(entry: Erratum) -> Table:
    table = Table("", "printed", "correct")
    for cell in entry.cells:
        table.add_row(cell.label, cell.printed, cell.correct or "not known")
    return table


def _recomputed(cells: tuple[RecomputedCell, ...], *, tick: str) -> Table:
    """Each figure of the data with a tick where it is the one entered as correct.

    Where the mistake behind the printed figure is known, what it gives has a tick where that is
    the printed figure.
    """
    table = Table("", "printed", "correct", "recomputed", "by the mistake")
    for cell in cells:
        mistake = ""
        if cell.mistake is not None:
            mistake = f"{cell.mistake:.6g} {tick if cell.explained else _DIFFERS}"
        recomputed = f"{cell.rounded} {tick if cell.confirmed else _DIFFERS}"
        table.add_row(cell.label, cell.printed, cell.correct, recomputed, mistake)
    table.caption = (
        f"{tick} after recomputed: it is the correct figure; after the mistake: it gives what was "
        "printed."
    )
    return table


def main() -> int:
    """Run the command line; returns the exit code (0, 1 their input, 2 usage, 3 ours)."""
    return run(app)


if __name__ == "__main__":
    sys.exit(main())
