"""Section of a metric's page: is it as valid on newer generators?"""

from __future__ import annotations

import math
from urllib.parse import quote

import numpy as np

from benchmarks.comparison import p_words
from leaderboard.publication.entries import Entry
from leaderboard.publication.metric_facts import metric_in_words
from leaderboard.publication.reader import View
from leaderboard.ranking.cells import chance_of
from leaderboard.rendering import render
from leaderboard.views.drift import (
    BoardDrift,
    drift_of,
    drift_sentence,
    headline_title,
    month,
    slope_text,
)
from leaderboard.web.components import Curve, CurveChart, Point, Scale, Tick

_MARGIN = 0.3
"""Years before the first and behind the last generator."""
_ROOM = 0.15
"""Share of the axis behind a point, up to the next one, that its name needs."""


def drift_html(view: View, entry: Entry) -> str:
    """The validity of a metric against the dates of generators, a chart and a table for each benchmark."""
    found = drift_of(view, entry)
    return render(
        "metric/drift.html",
        drift=found,
        sentence=drift_sentence(found, metric_in_words(entry)),
        boards=[(one, _chart(one) if one.dated else None) for one in found.boards],
        headline_title=headline_title,
        slope_text=slope_text,
        p_words=p_words,
        month=month,
        data=f"./v1/drift/{quote(entry.entry_id)}",
    )


def _chart(board: BoardDrift) -> CurveChart:
    dated, title = board.dated, headline_title(board.card)
    years = [one.year for one in dated]
    first, last = years[0], years[-1]
    behind = np.diff([*years, math.inf])
    points = [
        Point(
            name=one.title,
            y=one.cell.value or 0.0,
            x=one.year,
            low=one.cell.ci_low,
            high=one.cell.ci_high,
            labelled=bool(behind[place] >= _ROOM * (last - first)),
        )
        for place, one in enumerate(dated)
    ]
    curves = []
    if board.slope is not None:
        along = np.linspace(first, last, 25).tolist()
        middle, low, high = board.slope.line(along).tolist()
        curves.append(
            Curve(
                "slope",
                list(zip(along, middle, strict=True)),
                list(zip(low, high, strict=True)),
                "a",
            )
        )
    # The band of few generators may be far wider than all values: it is cut at the frame.
    ends = [end for one in points for end in (one.low, one.high, one.y) if end is not None]
    chance = chance_of(board.card, board.card.headline.measure)
    y = Scale.around(ends, chance)
    x = Scale(first - _MARGIN, last + _MARGIN)
    return CurveChart(
        title=f"{title} by generator on {board.card.title}",
        summary=f"{len(dated)} generators from {first:.1f} to {last:.1f}"
        + (f"; slope {slope_text(board.slope)} a year" if board.slope else ""),
        points=points,
        x=x,
        y=y,
        x_title="release of the generator",
        y_title=title,
        x_ticks=tuple(
            Tick(year, str(year)) for year in range(math.ceil(x.low), math.floor(x.high) + 1)
        ),
        y_ticks=tuple(Tick(tick, f"{tick:.3g}".replace("-", "−")) for tick in y.ticks()),
        curves=curves,
    )
