"""Values that the macros of the templates draw: cells, columns, rows, tabs, cases and charts.

They hold data only. Positions are computed by a `Scale`, so that a macro has no arithmetic to get
wrong; every drawing has a fixed view box, so that its space is known before its data are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from leaderboard.views.badges import Tag

Sorted = Literal["", "ascending", "descending"]
Values = dict[str, Any]
"""What a template prints, by name."""
PairState = Literal["self", "better", "worse", "none", "missing"]


@dataclass(frozen=True)
class Scale:
    """Values to places along an axis."""

    low: float  # value at `start`
    high: float  # value at `end`
    start: float = 3.0  # place of the lowest value, in units of the view box
    end: float = 81.0  # place of the highest
    log: bool = False  # whether equal ratios have equal lengths; both ends are above zero then
    chance: float | None = None  # value that guessing reaches; None where there is none

    @classmethod
    def around(
        cls,
        ends: Iterable[float | None],
        chance: float | None = None,
        *,
        margin: float = 0.05,
        places: tuple[float, float] = (3.0, 81.0),
    ) -> Scale:
        """A scale that holds some values and the chance level, with room at both ends."""
        known = [one for one in (*ends, chance) if one is not None and math.isfinite(one)]
        low, high = min(known, default=0.0), max(known, default=1.0)
        room = margin * (high - low) if high > low else 0.5
        return cls(low - room, high + room, *places, chance=chance)

    def at(self, value: float) -> float:
        """The place of a value; one outside the scale is at its end."""
        low, high, here = (self._position(one) for one in (self.low, self.high, value))
        share = 0.5 if high == low else min(1.0, max(0.0, (here - low) / (high - low)))
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self, about: int = 5) -> tuple[float, ...]:
        """Round values on the scale: powers of ten on a logarithmic one."""
        if self.log:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            step = max(1, math.ceil((last - first) / about))
            return tuple(10.0**power for power in range(first, last + 1, step))
        span = self.high - self.low
        if span <= 0:
            return (self.low,)
        rough = span / about
        size = 10.0 ** math.floor(math.log10(rough))
        step_of = min((s for s in (1, 2, 5, 10) if s * size >= rough), default=10) * size
        first = math.ceil(self.low / step_of - 1e-9)
        last = math.floor(self.high / step_of + 1e-9)
        return tuple(round(n * step_of, 12) for n in range(first, last + 1))

    def _position(self, value: float) -> float:
        return math.log10(max(value, self.low)) if self.log else value


@dataclass(frozen=True)
class ValueCell:
    """One value of a board with what is known of its uncertainty."""

    value: float | None  # None where there is none; it is then sorted last
    low: float | None = None  # lower end of its 95% interval
    high: float | None = None  # upper end
    digits: int = 3  # after the point
    n: int | None = None  # items it was computed from
    scale: Scale | None = None  # of its column; None: no drawing
    rank: str = ""  # rank range beside it
    best: bool = False  # whether it is the best of its column
    trained: bool = False  # whether the metric was trained on the benchmark
    below: bool = False  # whether it is significantly below chance
    not_significant: bool = False  # whether it is not significantly above chance
    reason: str = ""  # why there is none, on hover
    href: str = ""  # where it leads


@dataclass(frozen=True)
class TextCell:
    """A cell of words: `sort` is its key where that is not the text itself."""

    text: str
    sort: str = ""
    right: bool = False
    title: str = ""


@dataclass(frozen=True)
class Column:
    """A column of a board."""

    key: str  # names it in the address
    title: str  # its heading
    note: str = ""  # a second line: the measure and the number of items
    sorted: Sorted = ""  # how the board is sorted by it
    right: bool = False  # whether its values stand at the right
    first: bool = False  # whether it is the column of names, which stays in view
    gap: bool = False  # whether a gap follows it
    hint: str = ""  # on hover
    sortable: bool = True  # whether its heading is a button


@dataclass(frozen=True)
class Link:
    """A link with its words. `go` names it where a script follows it without loading the page."""

    label: str
    href: str
    go: str = ""


@dataclass(frozen=True)
class Row:
    """A row of a board and what unfolds below it."""

    ident: str  # of the row on its page; letters, digits, `-` and `_`
    name: str  # of the metric or model
    sub: str = ""  # what tells it from others of the same name
    rank: str = ""  # its rank range
    order: int = 0  # its place in the order of the board; the sort key of the column of names
    cells: Sequence[ValueCell | TextCell] = ()  # one for each column but the first
    tags: Sequence[Tag] = ()  # beside the name
    facts: Sequence[Sequence[tuple[str, str]]] = ()  # lists of label and value, in the unfolded row
    links: Sequence[Link] = ()  # in the unfolded row
    open: bool = False  # whether it is unfolded
    href: str = ""  # of its own page


@dataclass(frozen=True)
class Tier:
    """A heading between rows: no two metrics of a tier differ significantly."""

    label: str
    text: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Tab:
    """A tab. `group` is said before the first of each group."""

    title: str
    href: str
    current: bool = False
    note: str = ""
    group: str = ""
    go: str = ""


@dataclass(frozen=True)
class Pick:
    """An answer to a common question: what was asked, who it is, and the figure."""

    question: str
    name: str
    figure: str
    href: str = ""


@dataclass(frozen=True)
class HeatCell:
    """A cell of a heat table."""

    value: float | None  # None where there is none
    share: float = 0.0  # its place in the scale of colours, from 0 to 1
    digits: int = 2  # after the point
    small: str = ""  # a second line, as the rank range
    hint: str = ""  # on hover
    best: bool = False  # whether it is the best of its column
    gap: bool = False  # whether a gap follows it
    unordered: str = ""  # why no order can be given; empty where one can
    href: str = ""  # where it leads


@dataclass(frozen=True)
class PairCell:
    """Row minus column. `state` says whether that is significant, and in whose favour."""

    state: PairState
    value: float | None = None
    digits: int = 3
    hint: str = ""
    href: str = ""


@dataclass(frozen=True)
class PairMatrix:
    """Differences of all pairs, by row and column in the order of `names`."""

    caption: str
    names: Sequence[str]
    cells: Sequence[Sequence[PairCell]]


@dataclass(frozen=True)
class Point:
    """A point of a scatter plot."""

    name: str  # on hover, and beside it where `labelled`
    y: float  # its value
    x: float | None = None  # its place along; None: not known, so it stands in the gutter
    low: float | None = None  # lower end of the interval of `y`
    high: float | None = None  # upper end
    # `front` is drawn as a diamond, `hollow` is not significant
    kind: Literal["plain", "front", "other", "hollow", "below"] = "plain"
    labelled: bool = False  # whether its name is written
    under: bool = False  # whether that stands below it, where another is beside


@dataclass(frozen=True)
class Tick:
    """A value that an axis names."""

    value: float
    label: str


@dataclass(frozen=True)
class ScatterChart:
    """Points over two axes, in a view box of 760 by 250."""

    title: str  # what is shown, for those who hear it
    summary: str  # a sentence that says what is to be seen
    points: Sequence[Point]  # in the order of the table
    x: Scale  # scale along, without its places
    y: Scale  # scale upward, likewise
    x_title: str  # what is along
    y_title: str  # what is upward
    x_ticks: Sequence[Tick] = ()  # on the axis along
    y_ticks: Sequence[Tick] = ()  # on the other
    gutter: str = ""  # what points without `x` lack; empty: there is no gutter
    empty: str = ""  # why there are no points

    @property
    def along(self) -> Scale:
        """The scale along, at its place."""
        return Scale(self.x.low, self.x.high, 52.0, 594.0 if self.gutter else 748.0, self.x.log)

    @property
    def upward(self) -> Scale:
        """The scale upward, at its place."""
        return Scale(self.y.low, self.y.high, 216.0, 20.0, self.y.log, self.y.chance)

    def place(self, point: Point) -> float:
        """Where a point stands along; those without are side by side in the gutter."""
        if point.x is not None:
            return self.along.at(point.x)
        unknown = [one for one in self.points if one.x is None]
        return round(614.0 + 144.0 * (unknown.index(point) + 1) / (len(unknown) + 1), 1)

    @property
    def front(self) -> str:
        """The Pareto front as a path of steps; empty where no point is on it."""
        known = sorted(
            ((self.place(one), self.upward.at(one.y)) for one in self.points
             if one.kind == "front" and one.x is not None),
        )  # fmt: skip
        if not known:
            return ""
        steps = "".join(f"H{x:g}V{y:g}" for x, y in known[1:])
        return f"M{known[0][0]:g} {known[0][1]:g}{steps}H{self.along.end:g}"


@dataclass(frozen=True)
class Curve:
    """A curve with a band around it."""

    name: str  # at its end, and on hover
    points: Sequence[tuple[float, float]]  # places along and values
    # lower and upper end of the band at every point; none: no band
    band: Sequence[tuple[float, float]] = ()
    emphasis: Literal["", "a", "b"] = ""


@dataclass(frozen=True)
class CurveChart(ScatterChart):
    """Curves with bands over two axes, in the same view box."""

    curves: Sequence[Curve] = ()

    def path(self, curve: Curve) -> str:
        """The curve as a path."""
        return self._path(curve.points)

    def area(self, curve: Curve) -> str:
        """The band as a closed path."""
        along = [x for x, _ in curve.points]
        ends = list(zip(along, curve.band, strict=True))
        return (
            self._path(
                [
                    *((x, low) for x, (low, _) in ends),
                    *((x, high) for x, (_, high) in reversed(ends)),
                ]
            )
            + "Z"
        )

    def _path(self, points: Sequence[tuple[float, float]]) -> str:
        steps = (f"{self.along.at(x):g} {self.upward.at(y):g}" for x, y in points)
        return "M" + "L".join(steps)


@dataclass(frozen=True)
class Line:
    """A line of a bump or a parallel chart: a value at each stop, None where there is none."""

    name: str
    values: Sequence[float | None]
    emphasis: Literal["", "a", "b", "l1", "l2", "l3", "l4"] = ""


LABEL_PX = 12  # Least distance of two labels
_STEPS = sorted(range(-4 * LABEL_PX, 4 * LABEL_PX + 1), key=abs)  # Where a label may give way to


@dataclass(frozen=True)
class LineChart:
    """Lines over stops: ranks (a bump chart) or values (parallel coordinates)."""

    title: str  # what is shown
    summary: str  # what is to be seen
    stops: Sequence[str]  # along
    lines: Sequence[Line]  # each with a value at every stop
    scale: Scale  # of the values, without its places; for ranks the best is at the top
    empty: str = ""  # why there are no lines
    levels: Sequence[float] = ()  # values that are marked, as those of chance and ceiling

    def labels(self, *, ranks: bool) -> Sequence[tuple[str, float]]:
        """Names beside the first stop and their places: of emphasised lines, and where room is left."""
        found: list[tuple[str, float]] = []
        for line in sorted(self.lines, key=lambda line: not line.emphasis):
            if not line.values or line.values[0] is None:
                continue
            at = self.upward(line.values[0], ranks=ranks)
            tries = [round(at + step, 1) for step in _STEPS] if line.emphasis else [at]
            free = [y for y in tries if all(abs(y - other) >= LABEL_PX for _, other in found)]
            found += [(line.name, y) for y in free[:1]]
        return found

    def along(self, stop: int) -> float:
        """Where a stop is."""
        return Scale(0, max(1, len(self.stops) - 1), 138.0, 620.0).at(stop)

    def upward(self, value: float, *, ranks: bool) -> float:
        """Where a value is; of ranks the lowest is at the top."""
        ends = (26.0, 224.0) if ranks else (224.0, 26.0)
        return Scale(self.scale.low, self.scale.high, *ends).at(value)

    def paths(self, line: Line, *, ranks: bool) -> str:
        """The line as a path, broken where a value is missing."""
        drawn = ""
        values = [*line.values]
        for stop, value in enumerate(values):
            if value is None:
                continue
            broken = stop == 0 or values[stop - 1] is None
            drawn += f"{'M' if broken else 'L'}{self.along(stop):g} "
            drawn += f"{self.upward(value, ranks=ranks):g}"
        return drawn
