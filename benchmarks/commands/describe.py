"""Commands `list` and `describe`: the benchmarks, their cards and files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from pandas.api.types import is_numeric_dtype
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from benchmarks.command_line import CommandConsole, DataOption, JsonOption
from benchmarks.commands.common import (
    Name,
    drawing_facts,
    drawing_words,
    known,
    known_sets,
    named,
    print_json,
    set_line,
    sets_table,
)
from benchmarks.errors import AssayError, SubmitterError
from benchmarks.prompt_sets.prompt_set import PromptSet
from benchmarks.released.bundle import is_bundled
from benchmarks.schema import Benchmark
from benchmarks.sources.folder import DataFile, DataFolder
from benchmarks.sources.transfer import as_bytes, origin_of

_LIST_COLUMNS = ("name", "answers", "images", "prompts", "title")
_WIDTHS = {"name": 18, "answers": 7, "images": 6, "prompts": 7}
_LIST_NOT_THERE = frozenset({"data_missing", "images_missing", "no_prompts"})
"""Codes of errors that only say that something was not supplied; all others are faults."""


def list_benchmarks(data: DataOption = None, as_json: JsonOption = False) -> None:
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
    columns = [Column(key, no_wrap=True, min_width=_WIDTHS.get(key)) for key in _LIST_COLUMNS]
    table = Table(*columns, box=SIMPLE_HEAD, pad_edge=False)
    for line in lines:
        table.add_row(*(_cell(line, key) for key in _LIST_COLUMNS))
    console = CommandConsole()
    console.print(table)
    if sets:
        console.print(sets_table(sets))
    for line in (*lines, *sets):
        for text in dict.fromkeys(fault["text"] for fault in line["problems"].values()):
            console.print(f"{line['name']}: {text}", markup=False, highlight=False, soft_wrap=True)


def _line(benchmark: Benchmark, data: Path | None) -> dict[str, Any]:
    """Line of a benchmark in the list; its faults stay in its own line."""
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
            if error.code not in _LIST_NOT_THERE:
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


def _cell(line: dict[str, Any], key: str) -> str:
    if key in line["problems"]:
        return "broken"
    value = line[key]
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


_FILE_NOT_THERE = frozenset({"data_missing", "images_missing"})


def describe(
    name: Name,
    data: DataOption = None,
    with_facts: Annotated[
        bool, typer.Option("--facts", help="Also what the answers alone say, e.g. rater agreement.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the card of a benchmark or prompt set, its files and what is in them.

    Data need not be there. Of a prompt set, --facts prints what papers and people say of models on it.

    Example: python -m benchmarks describe demo_croc
    """
    benchmark = named(name)
    error: SubmitterError | None = None
    counts: dict[str, int] = {}
    facts: Mapping[str, pd.DataFrame] = {}
    try:
        answers = benchmark.answers(data)
        counts = answers.counts()
        facts = benchmark.facts(answers) if with_facts else {}
    except SubmitterError as raised:
        error = raised
    if with_facts and isinstance(benchmark, PromptSet):  # what is said of models needs no prompts
        facts = {**facts, **_of_models(benchmark, data)}
    files = _files(benchmark, data)
    if as_json:
        found = {title: json.loads(of.to_json(orient="records")) for title, of in facts.items()}
        print_json({**_for_programs(benchmark, files, counts, error), "facts": found})
    else:
        _for_people(benchmark, files, counts, error)
        for title, of in facts.items():
            _print_facts(title, of, CommandConsole())
    if error is not None and error.code not in _FILE_NOT_THERE:
        raise error


def _of_models(benchmark: PromptSet, data: Path | None) -> Mapping[str, pd.DataFrame]:
    """Tables of what papers and people say of models on a prompt set."""
    # These load the benchmarks whose ratings they sum up, which no other command needs at once.
    from benchmarks.model_boards import rating_benchmarks  # noqa: PLC0415
    from benchmarks.prompt_sets.reference import reference_frames  # noqa: PLC0415

    found = dict(reference_frames(benchmark.name))
    rated_by = rating_benchmarks().get(benchmark.rated_by)
    if rated_by is not None:
        try:
            of_people = rated_by.facts(rated_by.answers(data))
        except SubmitterError as error:
            if error.code not in _FILE_NOT_THERE:
                raise
        else:
            found |= {f"{rated_by.card.title}: {title}": of for title, of in of_people.items()}
    return found


def _files(benchmark: Benchmark, data: Path | None) -> list[dict[str, Any]]:
    """State of every declared file; `bytes` is what lies there, None where nothing does."""
    folder = benchmark.folder(data)
    return [_file(benchmark, folder, file) for file in benchmark.card.files]


def _file(benchmark: Benchmark, folder: DataFolder, file: DataFile) -> dict[str, Any]:
    there = folder.has(file.path)
    # The figures and ids in it ship with Assay; its prompts do not.
    bundled = benchmark.track == "metrics" and is_bundled(file.path)
    elsewhere = "bundled" if bundled else "missing"
    return {
        "path": file.path,
        "role": file.role,
        "state": "there" if there else elsewhere,
        "bytes": _size(folder.path(file.path)) if there else None,
        "declared_bytes": file.size or None,
        "optional": file.optional,
        "how": file.supplied or f"python -m benchmarks fetch {benchmark.name}",
        **origin_of(file),
    }


def _size(place: Path) -> int:
    if place.is_file():
        return place.stat().st_size
    return sum(
        (Path(base) / name).stat().st_size for base, _, names in os.walk(place) for name in names
    )


def _both_counts(benchmark: Benchmark, counts: dict[str, int]) -> dict[str, dict[str, int | None]]:
    expected = benchmark.card.counts
    return {
        name: {"found": counts.get(name), "expected": expected.get(name)}
        for name in dict.fromkeys((*expected, *counts))
        # What is expected of other files (a prompt set) is checked where those are read.
        if name in counts or not counts
    }


def _for_programs(
    benchmark: Benchmark,
    files: list[dict[str, Any]],
    counts: dict[str, int],
    error: SubmitterError | None,
) -> dict[str, Any]:
    return {
        **benchmark.card.model_dump(mode="json", exclude={"files", "counts"}),
        "track": benchmark.track,
        **({"drawing": drawing_facts(benchmark)} if isinstance(benchmark, PromptSet) else {}),
        "files": files,
        "counts": _both_counts(benchmark, counts),
        "problem": {"code": error.code, "text": str(error)} if error else None,
    }


def _for_people(
    benchmark: Benchmark,
    files: list[dict[str, Any]],
    counts: dict[str, int],
    error: SubmitterError | None,
) -> None:
    card, console = benchmark.card, CommandConsole()
    console.print(f"[bold]{card.title}[/] ({card.name}, revision {card.revision})")
    if card.simulated:
        console.print("Its labels are simulated: they do not come from people.")
    console.print(f"{card.summary}\n\n{card.description.strip()}\n", markup=False)
    headline = card.measures.get(card.headline.measure)
    ordered = headline.title if headline else card.headline.measure
    console.print(f"The board is ordered by {ordered}; resampled is the {card.cluster}.\n")
    if isinstance(benchmark, PromptSet):
        console.print(drawing_words(benchmark, counts.get("prompts")) + "\n", markup=False)
    if files:
        console.print(_table_of_files(files))
        for line in _how_to_get(files):
            console.print(f"To get: {line}", markup=False, highlight=False)
    if error is None or card.counts:
        console.print(_table_of_counts(_both_counts(benchmark, counts)))
    if error is not None:
        console.print(f"Not at hand: {error}\n", markup=False)
    console.print("Measures")
    for key, info in card.measures.items():
        console.print(f"  {key}: {info.meaning}", markup=False)
    if card.skills:
        console.print(f"Skills: {', '.join(card.skills.values())}", markup=False)
    for what, text in (("Licence", card.licence), ("Cite", card.citation), *card.links.items()):
        if text:
            console.print(f"{what}: {text}", markup=False)


def _table_of_files(files: list[dict[str, Any]]) -> Table:
    columns = [Column(name, no_wrap=True) for name in ("file", "needed for", "state", "size")]
    table = Table(*columns, box=SIMPLE_HEAD, pad_edge=False)
    for file in files:
        size = file["bytes"] if file["bytes"] is not None else file["declared_bytes"]
        needed = f"{file['role']}{' (optional)' if file['optional'] else ''}"
        table.add_row(file["path"], needed, file["state"], as_bytes(size) if size else "")
    return table


def _how_to_get(files: list[dict[str, Any]]) -> list[str]:
    """One line for each way in which missing files are got."""
    missing: dict[str, list[str]] = {}
    for file in files:
        if file["state"] != "there":
            missing.setdefault(file["how"], []).append(file["path"])
    return [
        f"{how} ({paths[0]}{f' and {len(paths) - 1} more' if len(paths) > 1 else ''})"
        for how, paths in missing.items()
    ]


def _print_facts(title: str, facts: pd.DataFrame, console: Console) -> None:
    """As few tables as fit, each with the columns that name a line; else a line per value.

    No number is ever cut, however narrow the console.
    """
    console.print(Text(title))
    names = _naming_columns(facts)
    parts: list[list[Hashable]] = []
    for column in facts.columns.drop(names):
        if parts and _card_fits(facts[[*names, *parts[-1], column]], console):
            parts[-1].append(column)
        else:
            parts.append([column])
    tables = [facts[[*names, *part]] for part in parts or [[]]]
    if all(_card_fits(table, console) for table in tables):
        for table in tables:
            console.print(_table_of_facts(table))
    else:
        console.print(_lines_of_facts(facts, len(names)))


def _naming_columns(facts: pd.DataFrame) -> list[Hashable]:
    """The columns before the first numeric one, at least one: they say what a line is about."""
    numeric = [is_numeric_dtype(dtype) for dtype in facts.dtypes]
    return list(facts.columns[: max(1, numeric.index(True) if True in numeric else 1)])


def _card_fits(facts: pd.DataFrame, console: Console) -> bool:
    unbounded = console.options.update(width=100_000)
    table = _table_of_facts(facts)
    return Measurement.get(console, unbounded, table).maximum <= console.width


def _table_of_facts(facts: pd.DataFrame) -> Table:
    table = Table(box=SIMPLE_HEAD)
    for column in facts.columns:
        table.add_column(Text(str(column)))
    for line in facts.itertuples(index=False):
        table.add_row(*(Text(_fact(value)) for value in line))
    return table


def _lines_of_facts(facts: pd.DataFrame, n_naming: int) -> Group:
    """For each line of the table what it is about, and below it a line per value."""
    lines: list[RenderableType] = []
    for record in facts.itertuples(index=False):
        cells = [_fact(value) for value in record]
        lines.append(Text(", ".join(cells[:n_naming])))
        for column, cell in zip(facts.columns[n_naming:], cells[n_naming:], strict=True):
            lines.append(Padding(Text(f"{column}: {cell}"), (0, 0, 0, 2), expand=False))
    return Group(*lines, "")


def _fact(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}" if value == 0 or abs(value) >= 0.001 else f"{value:.1e}"
    return "" if value is None else str(value)


def _table_of_counts(counts: dict[str, dict[str, int | None]]) -> Table:
    table = Table("it holds", "found", "expected")
    for name, both in counts.items():
        table.add_row(name, *("" if n is None else str(n) for n in both.values()))
    return table
