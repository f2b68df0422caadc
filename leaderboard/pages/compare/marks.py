"""Marks of a comparison: differences about zero, and on how many units each metric is better."""

from __future__ import annotations

import math
from collections.abc import Iterable

from benchmarks.comparison import Compared, plural
from leaderboard.pages.shown.marks import Axis, ticks
from leaderboard.pages.shown.markup import text
from leaderboard.text import interval, number

_MARGIN = 0.06
_LEAST = 1e-6


def difference_axis(rows: Iterable[Compared]) -> Axis:
    """An axis that holds zero, every difference and every interval."""
    numbers = [n for row in rows for n in (row.difference, row.ci_low, row.ci_high)]
    known = [0.0, *(n for n in numbers if math.isfinite(n))]
    low, high = min(known), max(known)
    if high - low < _LEAST:
        low, high = low - 0.05, high + 0.05
    pad = _MARGIN * (high - low)
    return Axis(low - pad, high + pad, ticks(low, high), 0.0)


def difference_mark(row: Compared, axis: Axis) -> str:
    """A difference as a dot on its 95 % interval, beside the line of no difference.

    It is filled where the test tells the two apart, else it is a ring.
    """
    zero = axis.at(0.0)
    marks = [f'<line class="as-zero" x1="{zero}%" x2="{zero}%" y1="0" y2="22"/>']
    label = "no difference to show"
    if math.isfinite(row.difference):
        low, high = row.ci_low, row.ci_high
        label = f"{number(row.difference)} {interval(low, high)}".strip()
        if math.isfinite(low) and math.isfinite(high):
            marks.append(
                f'<line class="as-whisker" x1="{axis.at(low)}%" x2="{axis.at(high)}%" '
                'y1="11" y2="11"/>'
            )
        sure = "as-dot" if row.told_apart else "as-dot as-open"
        marks.append(f'<circle class="{sure}" cx="{axis.at(row.difference)}%" cy="11" r="4"/>')
    return f'<svg class="as-mark" role="img" aria-label="{text(label)}">{"".join(marks)}</svg>'


def tally_bar(row: Compared, a: str, b: str) -> str:
    """On how many units a is better, both are equal, or b is better, as one bar.

    Args:
        row: the comparison; nothing is drawn where its units are not known or not counted.
        a: the plain name of the one metric.
        b: the plain name of the other.
    """
    if not row.tally:
        return ""
    better, tied, worse = row.tally
    said = f"{a} is better on {plural(row.unit, better)}, {b} on {worse:,}, tied on {tied:,}"
    counts = (("a", better), ("tie", tied), ("b", worse))
    parts: list[str] = []
    begin = 0.0
    for kind, n in counts:
        width = 100.0 * n / row.n_units
        if n:
            parts.append(
                f'<rect class="as-tally-{kind}" x="{begin:.2f}%" width="{width:.2f}%" height="10"/>'
            )
        begin += width
    return (
        f'<svg class="as-tally" role="img" aria-label="{text(said)}"><title>{text(said)}</title>'
        f"{''.join(parts)}</svg>"
    )
