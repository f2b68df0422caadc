"""The one theme of charts that hovering earns: colours, symbols and paper, for Plotly.

Plotly is imported when the first chart is drawn, never when the app starts. Text and lines take
their colours from the style sheet, so that a chart is readable in light, in dark and on paper.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leaderboard.text import clean

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

OKABE_ITO = {
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "orange": "#E69F00",
    "sky": "#56B4E9",
}
"""Told apart by people who do not see red from green (Okabe and Ito 2008); black and yellow are
left out, which vanish on a dark or a white ground."""
GREY = "#7d8a97"
_LONGEST = 40
_MOST_TICKS = 13
_FONT = "system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, sans-serif"


@dataclass(frozen=True)
class Series:
    """Points that are drawn alike.

    Attributes:
        name: in the legend.
        x: places across.
        y: values.
        below: how far each interval reaches below its value; NaN where there is none.
        above: likewise above it.
        hover: what each point says, as `said` made it.
        colour: one of `OKABE_ITO`, or `GREY`.
        symbol: of Plotly; each series has its own, so that nothing is told by colour alone.
        labels: beside the points; none if empty.
        step: whether the points are joined by a stair: nothing better up to the next.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    below: Sequence[float]
    above: Sequence[float]
    hover: Sequence[str]
    colour: str
    symbol: str
    labels: Sequence[str] = ()
    step: bool = False


def said(value: object, *, limit: int = _LONGEST) -> str:
    """A submitted text as Plotly may draw it: it reads tags, links and line breaks in text."""
    shown = clean(value).replace("$", "\uff04")  # A dollar sign begins a formula.
    shown = shown if len(shown) <= limit else f"{shown[: limit - 1].rstrip()}…"
    return html.escape(shown, quote=False)


def scatter(series: Sequence[Series], *, x: str, y: str, log_x: bool = False) -> Figure:
    """A chart of points with intervals.

    Args:
        series: drawn in their order.
        x: title of the axis across.
        y: title of the axis of values.
        log_x: whether the axis across is logarithmic; all its places are positive then.
    """
    from plotly import graph_objects  # noqa: PLC0415 (it takes a while to import)

    figure = graph_objects.Figure()
    for one in series:
        figure.add_trace(graph_objects.Scatter(**_trace(one)))
    layout = _layout(x, y)
    if log_x:
        layout["xaxis"] |= {"type": "log", **_ticks([place for one in series for place in one.x])}
    figure.update_layout(**layout)
    return figure


def decade_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times the powers of ten, from the last below `low` to the first above `high`.

    Args:
        low: the smallest place, positive.
        high: the greatest place.
    """
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    every = [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]
    first = max(tick for tick in every if tick <= low)
    last = min((tick for tick in every if tick >= high), default=every[-1])
    return [tick for tick in every if first <= tick <= last]


def _ticks(places: Sequence[float]) -> dict[str, Any]:
    """Plotly's own labels of such ticks are bare digits: 2 for 2, 20 and 200."""
    if not places:
        return {}
    at = decade_ticks(min(places), max(places))
    # Of very many only the powers of ten, or the labels would run into each other.
    shown = at if len(at) <= _MOST_TICKS else [tick for tick in at if f"{tick:e}"[0] == "1"]
    return {"tickmode": "array", "tickvals": shown, "ticktext": [f"{tick:,g}" for tick in shown]}


def _trace(one: Series) -> dict[str, Any]:
    modes = ["markers", *(["lines"] if one.step else []), *(["text"] if one.labels else [])]
    return {
        "name": one.name,
        "x": list(one.x),
        "y": list(one.y),
        "mode": "+".join(modes),
        "text": list(one.labels) or None,
        # On the left a label is clear of the stair, but the first would leave the chart there.
        "textposition": ["top right", *["top left"] * (len(one.x) - 1)],
        "textfont": {"size": 12},
        "customdata": list(one.hover),
        "hovertemplate": "%{customdata}<extra></extra>",
        "line": {"color": one.colour, "width": 1.5, "dash": "dot", "shape": "hv"},
        "marker": {
            "color": one.colour, "symbol": one.symbol, "size": 11,
            "line": {"width": 1.5, "color": one.colour},
        },
        "error_y": {
            "type": "data", "symmetric": False, "array": list(one.above),
            "arrayminus": list(one.below), "color": one.colour, "thickness": 1.2, "width": 3,
        },
        "cliponaxis": False,
    }  # fmt: skip


def _layout(x: str, y: str) -> dict[str, Any]:
    axis = {
        "gridcolor": "rgba(125,138,151,0.22)", "zerolinecolor": "rgba(125,138,151,0.55)",
        "linecolor": GREY, "tickcolor": GREY, "ticks": "outside", "automargin": True,
    }  # fmt: skip
    titled = {"font": {"size": 12.5}}
    return {
        "template": "none",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": _FONT, "size": 12.5, "color": GREY},
        "xaxis": {**axis, "title": {"text": x, **titled}},
        "yaxis": {**axis, "title": {"text": y, **titled}},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "margin": {"l": 8, "r": 16, "t": 36, "b": 8},
        "height": 430,
        "hovermode": "closest",
        "hoverlabel": {"align": "left", "bgcolor": "#1b2530", "font": {"color": "#ffffff"}},
        "modebar": {"remove": ["lasso2d", "select2d", "autoScale2d"]},
    }
