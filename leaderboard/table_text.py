"""Tables as text for papers and pages: Markdown and LaTeX, an estimate and its interval in one cell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from leaderboard.tables import Column, Table, Type, Value
from leaderboard.text import clean

_ESTIMATES = ("value", "mean", "difference", "gain", "tau", "alpha")
"""Columns that `ci_low` and `ci_high` belong to, where a table has them."""
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$",
    "#": r"\#", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
}  # fmt: skip
_ARGUMENTS = ("[", "*")
"""What a command before it takes as its own, `\\\\` of the row above among them."""
_MARKUP = frozenset("\\`*_{}[]()#+!|<>~")


@dataclass(frozen=True)
class _Cell:
    """A column of the text, made of one column of the table or of three."""

    column: Column
    low: Column | None = None
    high: Column | None = None

    @property
    def right(self) -> bool:
        """Whether it stands at the right, as numbers do."""
        return self.column.type in (Type.NUMBER, Type.COUNT)

    def text(self, table: Table, row: Mapping[str, Value]) -> str:
        """What stands in it, without markup."""
        said = _cell_text(table.value(row, self.column))
        if self.low is None or self.high is None or not said:
            return said
        ends = [_cell_text(table.value(row, end)) for end in (self.low, self.high)]
        return f"{said} [{ends[0]}, {ends[1]}]" if all(ends) else said


def to_markdown(table: Table) -> str:
    """A table of GitHub's Markdown, with a line below that says of what it is."""
    cells = _cells(table)
    rows = [
        [one.column.name for one in cells],
        ["---:" if one.right else "---" for one in cells],
        *([_markdown(one.text(table, row)) for one in cells] for row in table.rows),
    ]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([*lines, "", _markdown(_source(table)), ""])


def to_latex(table: Table) -> str:
    """A `tabular` with the rules of booktabs, its caption below; no text of others is a command."""
    cells = _cells(table)
    head = " & ".join(rf"\textbf{{{_latex(one.column.name)}}}" for one in cells)
    rows = [
        " & ".join(_latex(one.text(table, row)) for one in cells) + r" \\" for row in table.rows
    ]
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\begin{{tabular}}{{{''.join('r' if one.right else 'l' for one in cells)}}}",
        r"\toprule",
        rf"{head} \\",
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{{_latex(_source(table))}}}",
        r"\end{table}",
    ]
    return "\n".join([*lines, ""])


def _cells(table: Table) -> list[_Cell]:
    """Columns that have something in them; ends of an interval stand beside their estimate."""
    filled = [
        column
        for column in table.columns
        if not table.rows or any(_cell_text(table.value(row, column)) for row in table.rows)
    ]
    named = {column.name: column for column in filled}
    ends: dict[str, tuple[Column, Column]] = {}
    for name, low in named.items():
        prefix = name.removesuffix("_low")
        if prefix == name or f"{prefix}_high" not in named:
            continue
        of = next((one for one in _ESTIMATES if one in named), "") if prefix == "ci" else prefix
        if of in named:
            ends[of] = low, named[f"{prefix}_high"]
    inside = {end.name for pair in ends.values() for end in pair}
    return [
        _Cell(column, *ends.get(column.name, (None, None)))
        for column in filled
        if column.name not in inside
    ]


def _cell_text(value: Value) -> str:
    """A value in so many digits as are read; nothing where there is none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        small = value != 0.0 and abs(value) < 0.001
        return f"{value:.2e}" if small or abs(value) >= 10_000 else f"{value:.3f}"
    return " ".join(clean(value).split()) if isinstance(value, str) else str(value)


def _source(table: Table) -> str:
    """Where the table is from, and of when."""
    return ". ".join(["Assay", table.name, *_facts(table.about)]) + "."


def _facts(about: Mapping[str, Any]) -> Iterator[str]:
    for name, value in about.items():
        told = isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""
        if told and name != "page":  # its address is that of a site, which is not known here
            yield f"{name.replace('_', ' ')}: {_cell_text(value)}"


def _latex(text: str) -> str:
    said = "".join(_SPECIAL.get(char, char) for char in text)
    return f"{{}}{said}" if said.startswith(_ARGUMENTS) else said


def _markdown(text: str) -> str:
    return "".join(f"\\{char}" if char in _MARKUP else char for char in text)
