"""A scatter of two metrics' values over clusters, as one SVG."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.arrays import IntArray
from leaderboard.pages.shown.marks import ticks
from leaderboard.views.comparison import ClusterValues

_SIZE, _LEFT, _PAD = 360, 48, 10
MOST_POINTS = 2000
"""More cannot be told apart in a picture of this size; those listed are always drawn."""


def scatter(two: ClusterValues, names: tuple[str, str], ringed: IntArray) -> str:
    """Every cluster as a point: the first metric across, the second up, on one scale.

    Args:
        two: the values of two metrics, at least one cluster.
        names: of the metrics, escaped.
        ringed: places of clusters that are marked.
    """
    low, high = float(two.values.min()), float(two.values.max())
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    side = _SIZE - _LEFT - _PAD

    def x(value: float) -> float:
        return _LEFT + side * (value - low) / (high - low)

    def y(value: float) -> float:
        return _PAD + side * (high - value) / (high - low)

    marks = [_axes(low, high, x, y, side)]
    step = max(1, len(two.clusters) // MOST_POINTS)
    marks += [f'<circle class="as-point" cx="{x(a):.1f}" cy="{y(b):.1f}" r="3"/>'
              for a, b in two.values[::step].tolist()]  # fmt: skip
    marks += [
        f'<circle class="as-ringed" cx="{x(a):.1f}" cy="{y(b):.1f}" r="5.5"/>'
        for a, b in two.values[np.asarray(ringed, np.intp)].tolist()
    ]
    first, second = names
    middle = _LEFT + side / 2
    label = f"{len(two.clusters):,} points; the largest disagreements are in the table"
    return (
        f'<svg class="as-scatter" viewBox="0 0 {_SIZE} {_SIZE - _PAD + 12}" role="img" '
        f'aria-label="{label}">{"".join(marks)}'
        f'<text x="{middle:.0f}" y="{_SIZE - 2}" text-anchor="middle">{first}</text>'
        f'<text transform="translate(11 {_PAD + side / 2:.0f}) rotate(-90)" '
        f'text-anchor="middle">{second}</text></svg>'
    )


def _axes(
    low: float, high: float, x: Callable[[float], float], y: Callable[[float], float], side: float
) -> str:
    """The frame, its ticks on both sides, and the line on which both metrics have one value."""
    top, right, floor = _PAD, _LEFT + side, _PAD + side
    marks = [
        f'<rect class="as-frame" x="{_LEFT}" y="{top}" width="{side}" height="{side}"/>',
        f'<line class="as-chance" x1="{_LEFT}" y1="{floor}" x2="{right}" y2="{top}"/>',
    ]
    for tick in ticks(low, high):
        shown = f"{tick:g}".replace("-", "−")
        marks.append(
            f'<text x="{x(tick):.1f}" y="{floor + 14:.0f}" text-anchor="middle">{shown}</text>'
            f'<text x="{_LEFT - 5}" y="{y(tick) + 4:.1f}" text-anchor="end">{shown}</text>'
        )
    return "".join(marks)
