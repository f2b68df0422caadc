"""Runs measurements of speed and memory and holds them to their limits.

    python -m benchmarks_perf [NAME ...] [SIZE=VALUE ...] [--json FILE] [--list]

Without a name all are run, which takes about half an hour. Both sides of a ratio run in turns in
one process on one thread, a ratio is the median of those of the rounds, and seconds are those of
the processor unless a figure says otherwise. `--list` shows the names, with the sizes that each
takes and their defaults. Exits with 1 where a limit is missed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks_perf.measuring import ABOUT, Outcome, measure, parse_sizes, sizes_of, written

VERDICTS = {None: "", True: "[green]holds", False: "[red]MISSED"}


def table_of(outcome: Outcome) -> Table:
    """The figures of one measurement."""
    title = f"[bold]{outcome.name}[/]: {escape(outcome.about)} ({outcome.took_s:.0f} s)"
    table = Table(title=title, title_justify="left", title_style="", box=None, pad_edge=False)
    for column in ("", "value", "limit", "", "details"):
        table.add_column(column, justify="right" if column == "value" else "left")
    for figure in outcome.figures:
        value = f"{written(figure.value)} {figure.unit}".strip()
        cells = (escape(figure.name), value, figure.limit, VERDICTS[figure.holds])
        table.add_row(*cells, f"[dim]{escape(figure.details)}")
    if outcome.left_out:
        table.add_row(f"[yellow]left out: {escape(outcome.left_out)}")
    if outcome.failed:
        table.add_row(f"[red]FAILED: {escape(outcome.failed)}")
    return table


def as_json(outcomes: Sequence[Outcome]) -> str:
    """All figures, with the machine that they are of."""
    machine = {
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
    }
    found = [
        {
            **dataclasses.asdict(outcome),
            "passed": outcome.passed,
            "figures": [
                {**dataclasses.asdict(figure), "holds": figure.holds} for figure in outcome.figures
            ],
        }
        for outcome in outcomes
    ]
    return json.dumps({"machine": machine, "measurements": found}, indent=1)


def list_all(console: Console) -> None:
    """Print every measurement with its sizes."""
    for name, about in ABOUT.items():
        sizes = " ".join(
            f"{key}={'PATH' if value is None else value}" for key, value in sizes_of(name).items()
        )
        console.print(f"[bold]{name}[/]: {escape(about)}\n    [dim]{escape(sizes)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is named; 0 where every limit holds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks_perf", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("words", nargs="*", metavar="NAME or SIZE=VALUE")
    parser.add_argument("--json", type=Path, help="file for all figures, or - for the output")
    parser.add_argument("--list", action="store_true", help="show names and sizes, run nothing")
    given = parser.parse_args(arguments)
    width = None if sys.stdout.isatty() else 150
    console = Console(stderr=str(given.json) == "-", width=width)
    if given.list:
        list_all(console)
        return 0
    names = [word for word in given.words if "=" not in word] or list(ABOUT)
    if unknown := [name for name in names if name not in ABOUT]:
        parser.error(f"no measurement is called {unknown[0]}; --list shows them")
    sizes = [word for word in given.words if "=" in word]
    known = {key for name in names for key in sizes_of(name)} if sizes else set()
    if wrong := [word for word in sizes if word.partition("=")[0] not in known]:
        parser.error(f"none of them takes {wrong[0].partition('=')[0]}; --list shows sizes")
    outcomes = []
    for name in names:
        outcomes.append(measure(name, parse_sizes(name, sizes)))
        console.print(table_of(outcomes[-1]), "")
    if given.json:
        text = as_json(outcomes)
        print(text) if str(given.json) == "-" else given.json.write_text(text, encoding="utf-8")
    missed = [one.name for one in outcomes if not one.passed]
    console.print(f"missed or failed: {', '.join(missed)}" if missed else "every limit holds")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
