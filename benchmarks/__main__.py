"""`python -m benchmarks`: what is measured here."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.command_line import run
from benchmarks.registry import find, load_registry

_DataOption = Annotated[
    Path | None,
    typer.Option("--data", envvar="ASSAY_DATA", help="Folder of benchmark data files."),
]
_JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

app = typer.Typer(
    help="The benchmarks Assay knows.", no_args_is_help=True, pretty_exceptions_enable=False
)


@app.command("list")
def list_benchmarks(data: _DataOption = None, as_json: _JsonOption = False) -> None:
    """List the benchmarks and what of each is at hand.

    Example: python -m benchmarks list
    """
    registry = load_registry()
    lines = [
        {
            "name": name,
            "title": benchmark.card.title,
            "family": benchmark.card.family,
            "revision": benchmark.card.revision,
            "answers": benchmark.has_answers(data),
            "images": benchmark.has_questions(data),
        }
        for name, benchmark in sorted(registry.items())
    ]
    if as_json:
        typer.echo(json.dumps(lines, indent=1))
        return
    table = Table("name", "title", "family", "revision", "answers", "images")
    for line in lines:
        table.add_row(*(_shown(value) for value in line.values()))
    Console().print(table)


@app.command()
def describe(
    name: Annotated[str, typer.Argument(help="Benchmark, for example ts2.")],
    data: _DataOption = None,
) -> None:
    """Print a benchmark's card and counts.

    Example: python -m benchmarks describe demo_croc
    """
    benchmark = find(load_registry(), name)
    card, console = benchmark.card, Console()
    console.print(f"[bold]{card.title}[/] ({card.name}, revision {card.revision})")
    console.print(f"{card.summary}\n\n{card.description.strip()}\n", markup=False)
    answers = benchmark.answers(data)
    console.print(
        f"{len(answers.pair_ids)} pairs, {len(answers.clusters)} clusters ({card.cluster}s)"
    )
    for key, info in card.measures.items():
        console.print(f"  {key}: {info.meaning}", markup=False)
    if card.skills:
        console.print(f"skills: {', '.join(card.skills.values())}")


def _shown(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def main() -> int:
    """Run the command line; returns the exit code (0, 1 their input, 2 usage, 3 ours)."""
    return run(app)


if __name__ == "__main__":
    sys.exit(main())
