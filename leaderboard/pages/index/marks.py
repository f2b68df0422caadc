"""Pictures of the index page: an interval on the common axis, and a bar for every benchmark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from leaderboard.pages.shown.marks import Axis, ticks
from leaderboard.pages.shown.markup import text
from leaderboard.publication.identities import Identity
from leaderboard.publication.index import IndexBase
from leaderboard.publication.measure_names import info
from leaderboard.ranking.index import Interval
from leaderboard.text import MISSING, interval, number

SLOT = 20
"""Width of a benchmark in a strip, in pixels."""
_HEIGHT = 44
_PAD = 0.04
_FAINT = ' class="as-faint"'


@dataclass(frozen=True)
class Strips:
    """The bars of every metric on one scale, drawn once for all weights.

    Attributes:
        zero: where a guess is, in pixels from the top.
        one: where the ceilings are.
        slots: benchmark to metric to its bar, at the place of the benchmark.
    """

    zero: float
    one: float
    slots: Mapping[str, Mapping[Identity, str]]

    @classmethod
    def of(cls, base: IndexBase) -> Strips:
        """Draw the bars of all metrics."""
        numbers = [
            end for of in base.values.values() for value in of.values() for end in value
            if math.isfinite(end)
        ]  # fmt: skip
        height = _Height(min([0.0, *numbers]), max([1.0, *numbers]))
        everyone = [who for who, _ in base.entries.values()]
        slots = {
            name: {who: _slot(base, name, who, place * SLOT, height) for who in everyone}
            for place, name in enumerate(base.boards)
        }
        return cls(height.at(0.0), height.at(1.0), slots)

    def strip(self, who: Identity, weights: Mapping[str, float]) -> str:
        """The bars of one metric; benchmarks without a weight are faint.

        Args:
            who: the metric.
            weights: of all benchmarks, in their order.
        """
        width = SLOT * len(weights)
        slots = "".join(
            f'<g role="img"{"" if weight else _FAINT}>{self.slots[name][who]}</g>'
            for name, weight in weights.items()
        )
        return (
            f'<svg class="as-strip" width="{width}" height="{_HEIGHT}" role="group" '
            'aria-label="Rescaled headlines">'
            f'<path class="as-ceiling" d="M0 {self.one:g}H{width}"/>{slots}'
            f'<path class="as-zero" d="M0 {self.zero:g}H{width}"/></svg>'
        )


@lru_cache(maxsize=2)
def strips_of(base: IndexBase) -> Strips:
    """The bars of an index; those of real and of simulated boards are kept."""
    return Strips.of(base)


class _Height(NamedTuple):
    """The scale of all bars: the values at the bottom and at the top."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """Pixels from the top."""
        share = (value - self.low) / (self.high - self.low)
        return round(2 + (_HEIGHT - 4) * (1 - share), 1)


def strip_header(titles: Sequence[tuple[str, float]]) -> str:
    """The names above the bars, upright; titles with their weights."""
    names = "".join(
        f'<span class="as-slot{"" if weight else " as-faint"}" title="{text(title)}, weight '
        f'{weight:g}"><span>{text(title, limit=28)}</span></span>'
        for title, weight in titles
    )
    return f'<span class="as-slots">{names}</span>'


def index_axis(intervals: Iterable[Interval]) -> Axis:
    """An axis that holds chance, all values and all intervals; the dashes mark chance."""
    numbers = [end for one in intervals for end in one if math.isfinite(end)]
    low, high = min([0.0, *numbers]), max([0.0, *numbers])
    high = high if high > low else low + 1.0
    pad = _PAD * (high - low)
    return Axis(low - pad, high + pad, ticks(low, high), chance=0.0)


def index_whisker(value: Interval, axis: Axis) -> str:
    """The index as a dot on its 95 % interval."""
    place = axis.at(0.0)
    marks = [f'<line class="as-chance" x1="{place}%" x2="{place}%" y1="0" y2="22"/>']
    if math.isfinite(value.low) and math.isfinite(value.high):
        marks.append(
            f'<line class="as-whisker" x1="{axis.at(value.low)}%" x2="{axis.at(value.high)}%" '
            'y1="11" y2="11"/>'
        )
    marks.append(f'<circle class="as-dot" cx="{axis.at(value.value)}%" cy="11" r="4"/>')
    label = f"{number(value.value)} {interval(value.low, value.high)}".strip()
    return f'<svg class="as-mark" role="img" aria-label="{text(label)}">{"".join(marks)}</svg>'


def _slot(base: IndexBase, name: str, who: Identity, left: int, height: _Height) -> str:
    """What is drawn for one benchmark of one metric, with what it says on hover."""
    middle = left + SLOT // 2
    value = base.values[name].get(who)
    if value is None:
        mark = f'<text x="{middle}" y="{height.at(0.0) - 4:g}">{MISSING}</text>'
    else:
        top, bottom = sorted((height.at(value.value), height.at(0.0)))
        tall = max(bottom - top, 1.0)
        mark = f'<path class="as-bar" d="M{left + 4} {top:g}h{SLOT - 8}v{tall:.1f}H{left + 4}z"/>'
        if math.isfinite(value.low):
            low, high = height.at(value.low), height.at(value.high)
            mark += f'<path class="as-err" d="M{middle} {low:g}V{high:g}"/>'
    # Clear, and takes the pointer wherever in the slot it is.
    over = f'<path class="as-over" d="M{left} 0h{SLOT}v{_HEIGHT}H{left}z"/>'
    return f"<title>{text(_hover(base, name, who))}</title>{mark}{over}"


def _hover(base: IndexBase, name: str, who: Identity) -> str:
    board = base.boards[name]
    title = board.card.title
    cell = board.cells.get(who)
    if cell is None:
        why = board.unfit.get(who)
        return f"{title}: {f'does not count here: {why}' if why else 'not run there'}"
    value = base.values[name][who]
    span = f"{number(value.value)} {interval(value.low, value.high)}".strip()
    measure = info(board.card, cell.measure).title
    raw = f"{measure} {number(cell.value)} {interval(cell.ci_low, cell.ci_high)}".strip()
    return f"{title}: {span} ({raw})"
