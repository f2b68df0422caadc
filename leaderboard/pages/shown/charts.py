"""The one theme of charts that hovering earns: colours, symbols and paper, for Plotly.

Plotly is imported when the first chart is drawn, never when the app starts. Text and lines take
their colours from the style sheet, so that a chart is readable in light, in dark and on paper.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leaderboard.pages.shown.markup import clean

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
    figure.update_layout(**_layout(x, y, log_x=log_x))
    return figure


def _trace(one: Series) -> dict[str, Any]:
    modes = ["markers", *(["lines"] if one.step else []), *(["text"] if one.labels else [])]
    return {
        "name": one.name,
        "x": list(one.x),
        "y": list(one.y),
        "mode": "+".join(modes),
        "text": list(one.labels) or None,
        "textposition": "top center",
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


def _layout(x: str, y: str, *, log_x: bool) -> dict[str, Any]:
    axis = {
        "gridcolor": "rgba(125,138,151,0.22)", "zerolinecolor": "rgba(125,138,151,0.55)",
        "linecolor": GREY, "tickcolor": GREY, "ticks": "outside", "automargin": True,
    }  # fmt: skip
    # Powers of ten with 2 and 5 between them: a log axis of one decade has ticks as well.
    across = {"type": "log", "dtick": "D2"} if log_x else {}
    return {
        "template": "none",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": _FONT, "size": 12.5, "color": GREY},
        "xaxis": {**axis, **across, "title": {"text": x}},
        "yaxis": {**axis, "title": {"text": y}},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "margin": {"l": 8, "r": 16, "t": 36, "b": 8},
        "height": 430,
        "hovermode": "closest",
        "hoverlabel": {"align": "left", "bgcolor": "#1b2530", "font": {"color": "#ffffff"}},
        "modebar": {"remove": ["lasso2d", "select2d", "autoScale2d"]},
    }
