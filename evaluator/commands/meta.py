"""`meta`: every measure of a scores file on a benchmark, without a store."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from benchmarks.command_line import DataOption, JsonOption, fits
from benchmarks.errors import SubmitterError
from benchmarks.registry import find, load_registry
from benchmarks.rows import Row
from benchmarks.scores import read_scores
from evaluator.commands.common import Head, LowerIsBetterOption, aligned_table, console


def meta(
    benchmark: Annotated[str, typer.Argument(help="Benchmark, for example ts2.")],
    scores: Annotated[Path, typer.Option("--scores", help="Scores file, CSV or Parquet.")],
    data: DataOption = None,
    metric: Annotated[
        str, typer.Option(help="Name for the metric of a file with a single column `score`.")
    ] = "score",
    lower_is_better: LowerIsBetterOption = None,
    variant: Annotated[
        list[str] | None, typer.Option(help="Show only this variant; repeatable.")
    ] = None,
    skills: Annotated[bool, typer.Option(help="Show skills too, not only the whole.")] = False,
    intervals: Annotated[
        bool | None,
        typer.Option(
            "--intervals/--no-intervals",
            help="Show 95 % intervals; by default where the width allows.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compute the meta-metrics of a scores file.

    Example: python -m evaluator meta ts2 --scores scores.csv --data data
    """
    target = find(load_registry(), benchmark)
    answers = target.answers(data)
    table = read_scores(
        scores, target, answers, metric=metric, lower_is_better=tuple(lower_is_better or ())
    )
    every = target.evaluate(table, answers).rows
    _check_variants(every, variant or ())
    rows = [
        row
        for row in every
        if (not variant or row.variant in variant) and (skills or as_json or row.skill is None)
    ]
    if as_json:
        typer.echo(json.dumps([row.to_json() for row in rows], indent=1))
        return
    out = console()
    for name, repaired in table.repaired.items():
        out.print(Text(f"{name}: {len(repaired)} malformed cells were mended, as documented."))
    for hidden in dict.fromkeys(
        row.variant for row in every if not variant or row.variant in variant
    ):
        if hidden not in {row.variant for row in rows}:
            out.print(Text(f"Variant {hidden} is of skills only: --skills shows it."))
    for block in report(rows, out.width, intervals):
        out.print(block)


def _check_variants(rows: Sequence[Row], wanted: Sequence[str]) -> None:
    """Refuse a variant that no row has."""
    known = dict.fromkeys(row.variant for row in rows if row.variant)
    unknown = [name for name in dict.fromkeys(wanted) if name not in known]
    if unknown:
        benchmark = rows[0].benchmark if rows else "The benchmark"
        raise SubmitterError(
            "unknown_variant",
            f"{benchmark} has no variant {', '.join(map(repr, unknown))}.",
            f"Known variants: {', '.join(known)}." if known else "Its measures have no variants.",
        )


UNDEFINED = "–"
NO_REASON = "undefined; the protocol gives no reason"

Column = tuple[str, str | None, str | None]
"""Measure, facet, split: what stands across; metrics stand down."""


def report(
    rows: Sequence[Row], width: int, intervals: bool | None = None
) -> Iterator[RenderableType]:
    """Every value, with what a reader must know about it; no number is ever cut.

    Variants and skills have tables of their own. A table too wide is cut by measure, then facet,
    then split; where not even one column fits, each value gets a line.
    """
    if not rows:
        return
    left_out = False
    for variant, skill in dict.fromkeys((r.variant, r.skill) for r in rows):
        group = _in_order([r for r in rows if (r.variant, r.skill) == (variant, skill)])
        shown = _room_for_intervals(group, width) if intervals is None else intervals
        parts = list(_cut(group, width, shown))
        if all(_fits(part, width, shown) for part in parts):
            left_out |= not shown and any(map(_interval, group))
            for part in parts:
                yield from _printed(part, _table(part, shown))
        else:
            yield from _printed(group, _lines(group))
    yield Text(_legend(rows, left_out and intervals is None))


def _printed(part: Sequence[Row], values: RenderableType) -> Iterator[RenderableType]:
    """Title, values, notes."""
    first, columns = part[0], _columns(part)
    common = [of[0] for of in zip(*columns, strict=True) if len(set(of)) == 1]
    names = (first.benchmark, first.variant and f"variant {first.variant}", first.skill, *common)
    notes = list(_notes(part))
    yield Text(" · ".join(name for name in names if name))
    yield values
    for where, note in notes:
        yield Padding(Text(f"{where}: {note}"), (0, 0, 0, 1), expand=False)
    if notes or not isinstance(values, Table):  # a table ends with an empty line
        yield Text("")


def _legend(rows: Sequence[Row], left_out: bool) -> str:
    said = ["n: items (pairs, elements or comparisons) behind a value."]
    if any(map(_interval, rows)):
        said.append(
            "Room is lacking for some 95 % intervals; --intervals shows them."
            if left_out
            else "[low, high]: 95 % interval."
        )
    if any(row.n_missing for row in rows):
        said.append("missing: pairs without a score.")
    return " ".join(said)


# Which columns stand together ---------------------------------------------------------------


def _in_order(rows: Sequence[Row]) -> list[Row]:
    """By measure, then facet, then split, each in the order of its first appearance."""
    measures, facets, splits = (
        list(dict.fromkeys(of)) for of in zip(*map(_column, rows), strict=True)
    )
    return sorted(
        rows,
        key=lambda r: (measures.index(r.measure), facets.index(r.facet), splits.index(r.split)),
    )


def _column(row: Row) -> Column:
    return row.measure, row.facet, row.split


def _columns(rows: Iterable[Row]) -> list[Column]:
    return list(dict.fromkeys(map(_column, rows)))


def _units(rows: Sequence[Row], depth: int) -> list[list[Row]]:
    """Rows of one measure each (depth 1), or of one measure and facet (2), or one column (3)."""
    units: dict[tuple[str | None, ...], list[Row]] = {}
    for row in rows:
        units.setdefault(_column(row)[:depth], []).append(row)
    return list(units.values())


def _room_for_intervals(rows: Sequence[Row], width: int) -> bool:
    return all(_fits(unit, width, intervals=True) for unit in _units(rows, 1))


def _fits(rows: Sequence[Row], width: int, intervals: bool) -> bool:
    return fits(_table(rows, intervals), width)


def _cut(rows: list[Row], width: int, intervals: bool, depth: int = 1) -> Iterator[list[Row]]:
    """As few parts as fit, none cut deeper than it must be; a lone column may still not fit."""
    pending: list[Row] = []
    for unit in _units(rows, depth):
        if pending and _fits(pending + unit, width, intervals):
            pending = pending + unit
            continue
        if pending:
            yield pending
        pending = unit
        if depth < 3 and not _fits(unit, width, intervals):
            yield from _cut(unit, width, intervals, depth + 1)
            pending = []
    if pending:
        yield pending


# What stands in them ------------------------------------------------------------------------


def _table(rows: Sequence[Row], intervals: bool) -> Table:
    """Metrics down; measures, each by facet and split, across."""
    columns, metrics = _columns(rows), list(dict.fromkeys(r.metric for r in rows))
    found = {(r.metric, _column(r)): r for r in rows}
    heads: list[Head] = [("metric", "left")]
    body = [metrics]
    for column in columns:
        of_column = [found.get((metric, column)) for metric in metrics]
        header = "\n".join((*_label(column, columns), *_items(of_column)))
        heads.append((header, "left" if intervals else "right"))
        body.append(_cells(of_column, intervals))
    uneven = len({(_column(r), r.n_items) for r in rows}) > len(columns)
    counts = {
        "n": [_span(r.n_items for r in rows if r.metric == m) for m in metrics if uneven],
        "missing": [_span(r.n_missing for r in rows if r.metric == m) for m in metrics],
    }
    for name, cells in counts.items():
        if set(cells) - {"0"}:
            heads.append((name, "right"))
            body.append(cells)
    return aligned_table(heads, zip(*body, strict=True))


def _label(column: Column, columns: Sequence[Column]) -> tuple[str, ...]:
    """What tells a column from the others of its table; else the measure."""
    varying = [len(set(of)) > 1 for of in zip(*columns, strict=True)]
    parts = tuple(part for part, varies in zip(column, varying, strict=True) if part and varies)
    return parts or (column[0],)


def _items(rows: Iterable[Row | None]) -> tuple[str, ...]:
    """`n` of a column for its header; where metrics differ, that of the most complete."""
    distinct = {row.n_items for row in rows if row is not None}
    if not any(distinct):
        return ()
    return (f"n {max(distinct)}",) if len(distinct) == 1 else (f"n ≤ {max(distinct)}",)


def _span(counts: Iterable[int]) -> str:
    """The count of a metric, or the least and the largest over the columns of its table."""
    distinct = sorted(set(counts))
    return f"{distinct[0]}–{distinct[-1]}" if len(distinct) > 1 else str(distinct[0])


def _cells(rows: Sequence[Row | None], intervals: bool) -> list[str]:
    """Values below one another, with their intervals; blank where a metric has no such row."""
    values = ["" if row is None else _number(row.value) for row in rows]
    if not intervals:
        return values
    width = max(map(len, values))
    ends = ["" if row is None else _interval(row) for row in rows]
    return [f"{value:>{width}} {end}".rstrip() for value, end in zip(values, ends, strict=True)]


def _interval(row: Row) -> str:
    if math.isnan(row.ci_low) or math.isnan(row.ci_high):
        return ""
    return f"[{_number(row.ci_low)}, {_number(row.ci_high)}]"


def _number(value: float) -> str:
    return UNDEFINED if math.isnan(value) else f"{value:.4f}"


def _lines(rows: Sequence[Row]) -> Group:
    """One line per value, below the name of its metric."""
    columns = _columns(rows)
    lines: list[RenderableType] = []
    for metric in dict.fromkeys(r.metric for r in rows):
        lines.append(Text(metric))
        for row in (r for r in rows if r.metric == metric):
            value = f"{_number(row.value)} {_interval(row)}".rstrip()
            counted = {"n": row.n_items, "clusters": row.n_clusters, "missing": row.n_missing}
            counts = [f"{name} {count}" for name, count in counted.items() if count]
            label = " · ".join(_label(_column(row), columns))
            line = Text(f"{label}: {', '.join((value, *counts))}")
            lines.append(Padding(line, (0, 0, 0, 2), expand=False))
    return Group(*lines)


def _notes(rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """Where a note applies, and the note: each distinct one once, and one for every dash."""
    columns = _columns(rows)
    of_metric: dict[str, list[Column]] = {}
    noted: dict[str, dict[str, list[Column]]] = {}
    for row in rows:
        of_metric.setdefault(row.metric, []).append(_column(row))
        if note := row.note or (NO_REASON if math.isnan(row.value) else ""):
            noted.setdefault(note, {}).setdefault(row.metric, []).append(_column(row))
    for note, metrics in noted.items():
        places: dict[str, list[str]] = {}
        for metric, at in metrics.items():
            part = ", ".join(" ".join(_label(column, columns)) for column in at)
            places.setdefault("" if at == of_metric[metric] else f" ({part})", []).append(metric)
        yield "; ".join(_who(names, of_metric) + part for part, names in places.items()), note


def _who(names: Sequence[str], all_metrics: Iterable[str]) -> str:
    everyone = list(all_metrics)
    return "every metric" if len(everyone) > 1 and len(names) == len(everyone) else ", ".join(names)
