"""`list`: what can be measured here."""

from __future__ import annotations

from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table

from benchmarks.commands.common import AsJson, Data, known, print_json
from benchmarks.errors import SubmitterError
from benchmarks.schema import Benchmark

_COLUMNS = ("name", "answers", "images", "prompts", "title")
_WIDTHS = {"name": 18, "answers": 7, "images": 6, "prompts": 7}


def list_benchmarks(data: Data = None, as_json: AsJson = False) -> None:
    """List the benchmarks and what of each is at hand.

    Example: python -m benchmarks list
    """
    lines = [
        {
            "name": name,
            "title": benchmark.card.title,
            "family": benchmark.card.family,
            "revision": benchmark.card.revision,
            "answers": benchmark.has_answers(data),
            "images": benchmark.has_questions(data),
            "prompts": _has_prompts(benchmark, data),
        }
        for name, benchmark in sorted(known().items())
    ]
    if as_json:
        print_json(lines)
        return
    # One line each on a narrow screen: only a title may be cut.
    columns = [Column(key, no_wrap=True, min_width=_WIDTHS.get(key)) for key in _COLUMNS]
    table = Table(*columns, box=SIMPLE_HEAD, pad_edge=False)
    for line in lines:
        table.add_row(*(_shown(line[key]) for key in _COLUMNS))
    Console().print(table)


def _has_prompts(benchmark: Benchmark, data: Path | None) -> bool:
    try:
        benchmark.prompts(data)
    except SubmitterError:
        return False
    return True


def _shown(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
