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
    units_of,
    verdict,
)
from benchmarks.schema import Card
from evaluator.commands.compare_metrics import Permuted, column_words, permuted_words
from leaderboard.publication.measure_names import info, skill_title

_DASH = "–"


def pair_report(
    rows: Sequence[Compared],
    facts: Mapping[str, Any],
    card: Card,
    width: int,
    permuted: Sequence[Permuted] = (),
) -> Iterator[RenderableType]:
    """Two metrics: the first row in words, then all rows below each other."""
    first = rows[0]
    a, b = first.metric_a, first.metric_b
    yield Text(_where(first, card))
    yield Text(f"{verdict(first, a, b)}.", style="bold")
    said = (
        f"{a} {_value(first.value_a)}, {b} {_value(first.value_b)}",
        evidence_words(first),
        permuted_words(permuted[0], card.cluster) if permuted else "",
        dominance_words(first, a, b),
        paired_words(first),
        effect_words(first),
        _percentile(first),
    )
    for line in said:
        if line:
            yield Padding(Text(line), (0, 0, 0, 2), expand=False)
    if math.isfinite(first.p_value):
        alone = Text("One pair is tested: Holm's correction changes nothing.")
        yield Padding(alone, (0, 0, 0, 2), expand=False)
    yield Text("")
    if len(rows) > 1:
        heads = [
            ("by", "left"), (a, "right"), (b, "right"), ("difference [95 % interval]", "left"),
            ("p", "right"), ("p (BH)", "right"),
            (f"{units_of(first.unit)}: better, tied, worse", "right"), ("d_z", "right"),
        ]  # fmt: skip
        lines = [_cells(row, card) for row in rows]
        if permuted:
            place = heads.index(("p", "right")) + 1
            heads.insert(place, ("p (scores)", "right"))
            for cells, one in zip(lines, permuted, strict=True):
                cells.insert(place, _p(one.p_value))
        yield from table_or_lines(heads, lines, width)
        yield Text(about_table(rows, card))
        if permuted:
            yield Text(column_words([_label(row, card) for row in rows], permuted, card.cluster))
    yield Text(legend(facts))


def field_report(
    rows: Sequence[Compared],
    facts: Mapping[str, Any],
    card: Card,
    width: int,
    permuted: Sequence[Permuted] = (),
) -> Iterator[RenderableType]:
    """More than two metrics: each pair in the order of the values, and how many differ."""
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
    if permuted:
        yield from _both_tests(rows, permuted, card, width)
    most = max(row.n_differing for row in rows)
    yield Text(
        f"Sign flips of {plural(rows[0].unit, most)} at most. --metric-a and --metric-b show one "
        "pair in full; --json has every pair in full."
    )
    yield Text(legend(facts))


def _both_tests(
    rows: Sequence[Compared], permuted: Sequence[Permuted], card: Card, width: int
) -> Iterator[RenderableType]:
    pairs = [f"{row.metric_a}, {row.metric_b}" for row in rows]
    if any(math.isfinite(one.p_value) for one in permuted):
        heads = (("pair", "left"), ("p", "right"), ("p (scores)", "right"))
        lines = [
            [pair, _p(row.p_value), _p(one.p_value)]
            for pair, row, one in zip(pairs, rows, permuted, strict=True)
        ]
        yield from table_or_lines(heads, lines, width)
        labels = [f"({pair})" for pair in pairs]
        yield Text(f"p: sign flips. {column_words(labels, permuted, card.cluster)}")
        return
    for note in dict.fromkeys(one.note for one in permuted):
        yield Text(f"{permuted_words(Permuted(note=note), card.cluster)}.")


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
    if fits(plain_table(heads, lines), width):
        yield plain_table(heads, lines)
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
    units = ", ".join(map(str, row.tally)) if row.tally else _DASH
    alone = row.correction == "holm"
    return [
        _label(row, card),
        _value(row.value_a),
        _value(row.value_b),
        _difference(row),
        _p(row.p_value),
        _DASH if alone else _p(row.p_corrected) + ("*" if row.told_apart else ""),
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


Heads = Sequence[tuple[str, str]]
"""Name of each column, and on which side its cells stand: `left` or `right`."""
_UNBOUNDED = Console(width=100_000)


def table_or_lines(
    heads: Heads, lines: Sequence[Sequence[str]], width: int
) -> Iterator[RenderableType]:
    """A table where it fits; else a few lines for each row. No number is ever cut."""
    table = plain_table(heads, lines)
    if fits(table, width):
        yield table
        return
    names = [name for name, _ in heads]
    for line in lines:
        yield Text(line[0], style="bold")
        said = ", ".join(f"{n} {cell}" for n, cell in zip(names[1:], line[1:], strict=True))
        yield Padding(Text(said), (0, 0, 0, 2), expand=False)
    yield Text("")


def plain_table(heads: Heads, lines: Sequence[Sequence[str]]) -> Table:
    """Columns named and aligned by `heads`, without lines between rows."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name, justify in heads:
        table.add_column(Text(name), justify=justify, overflow="fold")  # type: ignore[arg-type]
    for line in lines:
        table.add_row(*map(Text, line))
    return table


def fits(table: Table, width: int) -> bool:
    """Whether the table needs no more than so many characters a line."""
    return Measurement.get(_UNBOUNDED, _UNBOUNDED.options, table).maximum <= width


def about_table(rows: Sequence[Compared], card: Card) -> str:
    """How the p-values of a table are corrected, and what its columns count."""
    first, *others = rows
    lines = [
        f"{plural(of, len(tests))}"
        for of, tests in (
            ("skill", [r for r in others if r.skill != first.skill and math.isfinite(r.p_value)]),
            ("measure", [r for r in others if r.skill == first.skill and math.isfinite(r.p_value)]),
        )
        if tests
    ]
    over = " and over ".join(lines)
    said = [
        f"p (BH): Benjamini-Hochberg over {over}, without the first line." if over else "",
        f"Better and worse are those of {first.metric_a}. For a measure that is not a mean of "
        f"values of {units_of(card.cluster)}, they count contributions to its value "
        "(influences), not scores.",
        *(f"{why[0].upper()}{why[1:]}." for why in dict.fromkeys(r.uncounted for r in rows) if why),
        _directions(rows, card),
    ]
    return " ".join(filter(None, said))


def _directions(rows: Sequence[Compared], card: Card) -> str:
    falling = dict.fromkeys(
        row.measure for row in rows if not info(card, row.measure).higher_is_better
    )
    return f"Lower is better: {', '.join(falling)}." if falling else ""


def legend(facts: Mapping[str, Any]) -> str:
    """How intervals were made, and what gives the same figures again."""
    return (
        f"[low, high]: 95 % BCa interval from {facts['n_resamples']:,} joint resamples. Seed "
        f"{facts['seed']}, plan {facts['plan']}, {facts['versions']}."
    )
