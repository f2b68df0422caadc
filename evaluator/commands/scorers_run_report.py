"""Report of `scorers run` at its end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from evaluator.commands.common import console
from evaluator.scoring.column import Cost, ScoreColumn

_MOST_EXAMPLES = 3
_MIB = 1024 * 1024


def report(out: Path, record: dict[str, Any], column: ScoreColumn, *, as_json: bool) -> None:
    """Print the record for programs, or its essence for people."""
    if as_json:
        typer.echo(json.dumps(record, indent=1))
        return
    shown = console()
    shown.print(Text(column.verdict.sentence))
    if column.findings:
        shown.print(_findings(column))
    shown.print(_cost(column.cost, record["seconds"]))
    shown.print(Text(f"Files in {out.parent}: {', '.join(record['files'])}"))
    shown.print(Text(_next_step(out, record), style="dim"))


def _findings(column: ScoreColumn) -> Table:
    """Each code with how often it was found, and a few of the places."""
    table = Table("finding", "of", "number", "for example")
    by_code: dict[tuple[str, str, bool], list[tuple[str, str]]] = {}
    for finding in column.findings:
        key = (finding.code, finding.item, finding.scored)
        by_code.setdefault(key, []).append((finding.item_id, finding.message))
    for (code, item, scored), found in by_code.items():
        named = ", ".join(item_id for item_id, _ in found[:_MOST_EXAMPLES])
        table.add_row(
            Text(code, style="" if scored else "bold red"),
            f"{item}s" + ("" if scored else ", not scored"),
            str(len(found)),
            Text(f"{named}: {found[0][1]}"),
        )
    return table


def _cost(cost: Cost, seconds: float) -> Table:
    table = Table("cost", "", show_header=False)
    rows = [
        ("pairs", f"{cost.pairs:,}, {cost.resumed_pairs:,} of them kept from an earlier start"),
        ("calls of the scorer", f"{cost.calls:,}"),
        ("images asked about", f"{cost.images:,}"),
        ("images decoded / encoded", f"{cost.images_decoded:,} / {cost.images_encoded:,}"),
        ("texts encoded", f"{cost.texts_encoded:,}"),
        ("seconds in the scorer", f"{cost.seconds:,.1f} ({cost.pairs_per_s:,.1f} pairs/s)"),
        ("seconds of this start", f"{seconds:,.1f}"),
        ("peak memory", f"{cost.peak_memory_bytes / _MIB:,.0f} MiB"),
    ]
    for name, value in rows:
        table.add_row(name, value)
    return table


def _next_step(out: Path, record: dict[str, Any]) -> str:
    if record["limit"] is not None:
        return "Only a part of the benchmark: leave --limit out for a file that `meta` takes."
    lower = "" if record["scorer"]["higher_is_better"] else " --lower-is-better "
    lower += record["scorer"]["name"] if lower else ""
    return f"Measure it: python -m evaluator meta {record['benchmark']} --scores {out}{lower}"
