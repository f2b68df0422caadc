"""Dumbbells: a value then and a value now on one axis, told apart by shape and not by colour."""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard.pages.shown.marks import Axis, ticks
from leaderboard.pages.shown.markup import text
from leaderboard.publication.changes import Moved, Standing
from leaderboard.text import interval, number

_PAD = 0.05
_THEN, _NOW, _HEIGHT = 9, 21, 30
"""Where the two values are, and how high a mark is, in pixels from the top."""


def moved_axis(rows: Sequence[Moved], chance: float | None) -> Axis:
    """An axis that holds all values and intervals of both boards, and chance."""
    sides = [side for row in rows for side in (row.then, row.now)]
    found = [n for side in sides for n in (side.value, side.low, side.high) if n is not None]
    numbers = [*found, *(() if chance is None else (chance,))] or [0.0, 1.0]
    low, high = min(numbers), max(numbers)
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    pad = _PAD * (high - low)
    return Axis(low - pad, high + pad, ticks(low, high), chance)


def dumbbell(row: Moved, axis: Axis) -> str:
    """A ring for then, a dot for now, each on its interval, and a line from one to the other."""
    marks = []
    if axis.chance is not None:
        place = axis.at(axis.chance)
        marks.append(f'<line class="as-chance" x1="{place}%" x2="{place}%" y1="0" y2="{_HEIGHT}"/>')
    if row.then.value is not None and row.now.value is not None:
        marks.append(
            f'<line class="as-shift" x1="{axis.at(row.then.value)}%" y1="{_THEN}" '
            f'x2="{axis.at(row.now.value)}%" y2="{_NOW}"/>'
        )
    marks += [_side(row.then, axis, _THEN, "as-ring"), _side(row.now, axis, _NOW, "as-dot")]
    label = f"then {_said(row.then)}, now {_said(row.now)}"
    return (
        f'<svg class="as-mark as-dumbbell" role="img" aria-label="{text(label)}">'
        f"<title>{text(label)}</title>{''.join(marks)}</svg>"
    )


def _side(side: Standing, axis: Axis, height: int, kind: str) -> str:
    if side.value is None:
        return ""
    whisker = ""
    if side.low is not None and side.high is not None:
        whisker = (
            f'<line class="as-whisker" x1="{axis.at(side.low)}%" x2="{axis.at(side.high)}%" '
            f'y1="{height}" y2="{height}"/>'
        )
    return f'{whisker}<circle class="{kind}" cx="{axis.at(side.value)}%" cy="{height}" r="4"/>'


def _said(side: Standing) -> str:
    if side.value is None:
        return "no value"
    return f"{number(side.value)} {interval(side.low, side.high)}".strip()
