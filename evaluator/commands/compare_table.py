"""Comparisons as text: sentences for the one that was asked for, a table for the others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from benchmarks.comparison import (
    LEVEL,
    Compared,
    correction_words,
    dominance_words,
    effect_words,
    evidence_words,
    figures,
    p_words,
    paired_words,
    plural,
    verdict,
)
from benchmarks.schema import Card
from leaderboard.pages.measures import info, skill_title

_UNBOUNDED = Console(width=100_000)
_DASH = "–"


def pair_report(
    rows: Sequence[Compared], facts: Mapping[str, Any], card: Card, width: int
) -> Iterator[RenderableType]:
    """Two metrics: the first row in words, then all rows below each other.

    Args:
        rows: corrected by Benjamini and Hochberg over all of them.
        facts: of the resampling.
        card: the benchmark.
        width: characters of a line.

    Yields:
        Blocks to print one below the other.
    """
    first = rows[0]
    a, b = first.metric_a, first.metric_b
    yield Text(_where(first, card))
    yield Text(f"{verdict(first, a, b)}.", style="bold")
    said = (
        f"{a} {_value(first.value_a)}, {b} {_value(first.value_b)}",
        evidence_words(first),
        dominance_words(first, a, b),
        paired_words(first),
        effect_words(first),
        _percentile(first),
    )
    for line in said:
        if line:
            yield Padding(Text(line), (0, 0, 0, 2), expand=False)
    alone = Text("One pair is tested: Holm's correction changes nothing.")
    yield Padding(alone, (0, 0, 0, 2), expand=False)
    yield Text("")
    if len(rows) > 1:
        heads = (
            ("by", "left"), (a, "right"), (b, "right"), ("difference [95 % interval]", "left"),
            ("p", "right"), ("p (BH)", "right"), (f"{first.unit}s: better, tied, worse", "right"),
            ("d_z", "right"),
        )  # fmt: skip
        yield from _table_or_lines(heads, [_cells(row, card) for row in rows], width)
        yield Text(
            f"p (BH): Benjamini-Hochberg over the {first.n_tests} tests shown. Better and worse "
            f"are those of {a}. {_directions(rows, card)}".strip()
        )
    yield Text(_legend(facts))


def field_report(
    rows: Sequence[Compared], facts: Mapping[str, Any], card: Card, width: int
) -> Iterator[RenderableType]:
    """More than two metrics: each pair in the order of the values, and how many differ.

    Args:
        rows: every pair, corrected by Holm over all of them.
        facts: of the resampling.
        card: the benchmark.
        width: characters of a line.

    Yields:
        Blocks to print one below the other.
    """
    values = {row.metric_a: row.value_a for row in rows} | {r.metric_b: r.value_b for r in rows}
    sign = -1.0 if rows[0].higher_is_better else 1.0
    order = sorted(values, key=lambda m: (math.isnan(values[m]), sign * values[m]))
    yield Text(_where(rows[0], card))
    yield from _matrix(rows, order, values, width)
    apart = sum(row.told_apart for row in rows)
    yield Text(
        f"Upper right: p after Holm's correction over {plural('pair', rows[0].n_tests)}; "
        f"{apart} below {LEVEL}. Lower left: difference, column less row. Dash: not tested."
    )
    for row in rows:
        if row.untested:
            yield Text(f"{row.metric_a}, {row.metric_b}: {row.untested}.")
    most = max(row.n_differing for row in rows)
    yield Text(
        f"Sign flips of {plural(rows[0].unit, most)} at most. --metric-a and --metric-b show one "
        "pair in full; --json has every pair in full."
    )
    yield Text(_legend(facts))


def _matrix(
    rows: Sequence[Compared], order: Sequence[str], values: Mapping[str, float], width: int
) -> Iterator[RenderableType]:
    of_pair = {frozenset((row.metric_a, row.metric_b)): row for row in rows}
    heads = [("metric", "left"), ("value", "right")]
    heads += [(str(place), "right") for place in range(1, len(order) + 1)]
    lines = []
    for i, metric in enumerate(order):
        line = [f"{i + 1} {metric}", _value(values[metric])]
        for j, other in enumerate(order):
            row = of_pair.get(frozenset((metric, other)))
            if row is None or i == j:
                line.append("")
            elif i < j:
                line.append(_p(row.p_corrected) + ("*" if row.told_apart else ""))
            else:
                line.append(figures(values[other] - values[metric])[0])
        lines.append(line)
    if _fits(_table(heads, lines), width):
        yield _table(heads, lines)
        return
    ordered = sorted(rows, key=lambda r: (order.index(r.metric_a), order.index(r.metric_b)))
    for row in ordered:
        holm = correction_words(row, "pairs")
        yield Text(f"{verdict(row, row.metric_a, row.metric_b)}; {holm or row.untested}.")


def _where(row: Compared, card: Card) -> str:
    parts = (row.measure, row.facet, row.split, row.variant and f"variant {row.variant}")
    skill = skill_title(card, row.skill)
    return " · ".join((card.name, *(part for part in parts if part), skill))


def _label(row: Compared, card: Card) -> str:
    parts = (row.measure, row.facet, row.split, row.variant)
    label = " ".join(part for part in parts if part)
    return f"{label} · {skill_title(card, row.skill)}" if row.skill else label


def _cells(row: Compared, card: Card) -> list[str]:
    units = f"{row.n_better_a}, {row.n_tied}, {row.n_better_b}" if row.n_units else _DASH
    return [
        _label(row, card),
        _value(row.value_a),
        _value(row.value_b),
        _difference(row),
        _p(row.p_value),
        _p(row.p_corrected) + ("*" if row.told_apart else ""),
        units,
        f"{row.effect:.2f}".replace("-", "−") if math.isfinite(row.effect) else _DASH,
    ]


def _difference(row: Compared) -> str:
    if math.isnan(row.difference):
        return row.untested or _DASH
    value, low, high = figures(row.difference, row.ci_low, row.ci_high)
    return value if math.isnan(row.ci_low) else f"{value} [{low}, {high}]"


def _percentile(row: Compared) -> str:
    if math.isnan(row.percentile_low):
        return ""
    _, low, high = figures(row.difference, row.percentile_low, row.percentile_high)
    kind = "BCa" if row.ci_method == "bca" else "percentile, since BCa is undefined"
    return f"interval: {kind}; percentile ends of the difference [{low}, {high}]"


def _value(value: float) -> str:
    return _DASH if math.isnan(value) else f"{value:.4f}".replace("-", "−")


def _p(value: float) -> str:
    return p_words(value).removeprefix("p ").removeprefix("= ")


def _directions(rows: Sequence[Compared], card: Card) -> str:
    falling = dict.fromkeys(
        row.measure for row in rows if not info(card, row.measure).higher_is_better
    )
    return f"Lower is better: {', '.join(falling)}." if falling else ""


def _legend(facts: Mapping[str, Any]) -> str:
    return (
        f"[low, high]: 95 % BCa interval from {facts['n_resamples']:,} joint resamples. Seed "
        f"{facts['seed']}, plan {facts['plan']}, {facts['versions']}."
    )


Heads = Sequence[tuple[str, str]]


def _table_or_lines(
    heads: Heads, lines: Sequence[Sequence[str]], width: int
) -> Iterator[RenderableType]:
    """A table where it fits; else a few lines for each row. No number is ever cut."""
    table = _table(heads, lines)
    if _fits(table, width):
        yield table
        return
    names = [name for name, _ in heads]
    for line in lines:
        yield Text(line[0], style="bold")
        said = ", ".join(f"{n} {cell}" for n, cell in zip(names[1:], line[1:], strict=True))
        yield Padding(Text(said), (0, 0, 0, 2), expand=False)
    yield Text("")


def _table(heads: Heads, lines: Sequence[Sequence[str]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name, justify in heads:
        table.add_column(Text(name), justify=justify, overflow="fold")  # type: ignore[arg-type]
    for line in lines:
        table.add_row(*map(Text, line))
    return table


def _fits(table: Table, width: int) -> bool:
    return Measurement.get(_UNBOUNDED, _UNBOUNDED.options, table).maximum <= width
