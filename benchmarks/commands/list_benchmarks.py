"""`list`: what can be measured here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table

from benchmarks.commands.common import AsJson, Data, known, known_sets, print_json
from benchmarks.commands.prompt_set_lines import set_line, sets_table
from benchmarks.errors import AssayError, SubmitterError
from benchmarks.schema import Benchmark

_COLUMNS = ("name", "answers", "images", "prompts", "title")
_WIDTHS = {"name": 18, "answers": 7, "images": 6, "prompts": 7}
_NOT_THERE = frozenset({"data_missing", "images_missing", "no_prompts"})
"""Codes of errors that only say that something was not supplied; all others are faults."""


def list_benchmarks(data: Data = None, as_json: AsJson = False) -> None:
    """List the benchmarks and what of each is at hand; `broken` is there, but cannot be used.

    Benchmarks test metrics. Prompt sets, listed below them, test text-to-image models.

    Example: python -m benchmarks list
    """
    if data is not None and not data.is_dir():
        raise SubmitterError(
            "no_folder",
            f"There is no folder {data}.",
            "Name the folder of data with --data or ASSAY_DATA, or leave it out.",
        )
    lines = [_line(benchmark, data) for _, benchmark in sorted(known().items())]
    sets = [set_line(one, data) for _, one in sorted(known_sets().items())]
    if as_json:
        print_json([*lines, *sets])
        return
    # One line each on a narrow screen: only a title may be cut.
    columns = [Column(key, no_wrap=True, min_width=_WIDTHS.get(key)) for key in _COLUMNS]
    table = Table(*columns, box=SIMPLE_HEAD, pad_edge=False)
    for line in lines:
        table.add_row(*(_shown(line, key) for key in _COLUMNS))
    console = Console()
    console.print(table)
    if sets:
        console.print(sets_table(sets))
    for line in (*lines, *sets):
        for text in dict.fromkeys(fault["text"] for fault in line["problems"].values()):
            console.print(f"{line['name']}: {text}", markup=False, highlight=False, soft_wrap=True)


def _line(benchmark: Benchmark, data: Path | None) -> dict[str, Any]:
    """What is there of a benchmark; whatever is wrong with it stays with it."""
    asked: dict[str, Callable[[], object]] = {
        "answers": lambda: benchmark.answers(data),
        "images": lambda: benchmark.has_questions(data) or None,
        "prompts": lambda: benchmark.prompts(data),
    }
    there: dict[str, bool] = {}
    problems: dict[str, dict[str, str]] = {}
    for what, ask in asked.items():
        try:
            there[what] = ask() is not None
        except AssayError as error:
            there[what] = False
            if error.code not in _NOT_THERE:
                problems[what] = {"code": error.code, "text": str(error)}
    return {
        "name": benchmark.name,
        "title": benchmark.card.title,
        "family": benchmark.card.family,
        "revision": benchmark.card.revision,
        "track": benchmark.track,
        **there,
        "problems": problems,
    }


def _shown(line: dict[str, Any], key: str) -> str:
    if key in line["problems"]:
        return "broken"
    value = line[key]
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
