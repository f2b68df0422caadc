"""Marks drawn in SVG: the common axis of a board, dots with whiskers, rank ranges.

Positions are percentages, so that a mark fills whatever width its table cell has.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from leaderboard.pages.shown.markup import text
from leaderboard.ranking.cells import Cell
from leaderboard.text import interval, number

_MARGIN = 0.05


class Estimate(Protocol):
    """A value with its interval: a cell of a board of metrics, or a model's mean."""

    @property
    def value(self) -> float | None:
        """None where it is undefined."""

    @property
    def ci_low(self) -> float | None:
        """Lower end of the interval."""

    @property
    def ci_high(self) -> float | None:
        """Upper end."""


@dataclass(frozen=True)
class Axis:
    """A linear axis shared by all marks of one column.

    Attributes:
        low: value at the left edge.
        high: value at the right edge; greater than `low`.
        ticks: round values between them.
        chance: where a guessing metric would be; None where unknown.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    chance: float | None = None

    def at(self, value: float) -> float:
        """The place of a value in percent of the width; held inside the drawing."""
        share = (value - self.low) / (self.high - self.low)
        return round(100 * min(max(share, 0.0), 1.0), 2)


def axis_for(cells: Iterable[Estimate], chance: float | None) -> Axis:
    """An axis that holds every value, every interval and the chance level."""
    numbers = [n for c in cells for n in (c.value, c.ci_low, c.ci_high) if n is not None]
    if chance is not None:
        numbers.append(chance)
    low, high = (min(numbers), max(numbers)) if numbers else (0.0, 1.0)
    if math.isclose(low, high, abs_tol=1e-9):
        low, high = low - 0.5, high + 0.5
    pad = _MARGIN * (high - low)
    return Axis(low - pad, high + pad, ticks(low, high), chance)


def ticks(low: float, high: float, about: int = 5) -> tuple[float, ...]:
    """Round values (steps of 1, 2 or 5) between two numbers."""
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return tuple(round(k * step, 10) for k in range(first, last + 1))


def axis_header(axis: Axis) -> str:
    """The scale above a column of marks."""
    marks = []
    for tick in axis.ticks:
        place = axis.at(tick)
        marks.append(
            f'<line class="as-tick" x1="{place}%" x2="{place}%" y1="14" y2="18"/>'
            f'<text x="{place}%" y="11" text-anchor="middle">{_short(tick)}</text>'
        )
    if axis.chance is not None:
        place = axis.at(axis.chance)
        marks.append(f'<line class="as-chance" x1="{place}%" x2="{place}%" y1="12" y2="18"/>')
    return f'<svg class="as-axis" aria-hidden="true" focusable="false">{"".join(marks)}</svg>'


def whisker(cell: Estimate, axis: Axis, digits: int = 3) -> str:
    """A value as a dot on its 95 % interval; only the chance level where it is undefined."""
    marks = []
    if axis.chance is not None:
        place = axis.at(axis.chance)
        marks.append(f'<line class="as-chance" x1="{place}%" x2="{place}%" y1="0" y2="22"/>')
    if cell.value is None:
        label = "no value"
    else:
        label = (
            f"{number(cell.value, digits)} {interval(cell.ci_low, cell.ci_high, digits)}".strip()
        )
        if cell.ci_low is not None and cell.ci_high is not None:
            marks.append(
                f'<line class="as-whisker" x1="{axis.at(cell.ci_low)}%" '
                f'x2="{axis.at(cell.ci_high)}%" y1="11" y2="11"/>'
            )
        marks.append(f'<circle class="as-dot" cx="{axis.at(cell.value)}%" cy="11" r="4"/>')
    return f'<svg class="as-mark" role="img" aria-label="{text(label)}">{"".join(marks)}</svg>'


def rank_bar(low: int, rank: int, high: int, entries: int) -> str:
    """Where a rank range lies among all ranks of a board."""
    size = max(entries, high, 1)
    left, width = 100 * (low - 1) / size, 100 * (high - low + 1) / size
    point = 100 * (rank - 0.5) / size
    return (
        '<svg class="as-rankbar" aria-hidden="true" focusable="false">'
        '<rect class="as-rail" x="0" y="2" width="100%" height="4" rx="2"/>'
        f'<rect class="as-span" x="{left:.1f}%" y="2" width="{width:.1f}%" height="4" rx="2"/>'
        f'<circle class="as-point" cx="{point:.1f}%" cy="4" r="2.5"/></svg>'
    )


def rank_text(cell: Cell) -> str:
    """`1–3`, `4`, or a dash for an entry that is not ranked."""
    if cell.rank is None or cell.rank_low is None or cell.rank_high is None:
        return "–"
    if cell.rank_low == cell.rank_high:
        return str(cell.rank_low)
    return f"{cell.rank_low}–{cell.rank_high}"


def _short(value: float) -> str:
    return f"{value:g}".replace("-", "−")
