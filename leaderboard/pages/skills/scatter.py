"""Accuracy against cost as a chart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from leaderboard.pages.shown.charts import GREY, OKABE_ITO, Series, said, scatter
from leaderboard.text import interval, number
from leaderboard.views.skill_choice import (
    COSTS,
    DECLARED,
    FLOPS,
    MEMORY,
    SECONDS,
    Point,
    gigaflops_text,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST_LABELS = 6


def cost_chart(found: Sequence[Point], front: Sequence[Point], cost: str) -> Figure | None:
    """The chart; None where no metric's cost is known."""
    if not found:
        return None
    others = [point for point in found if point.whole and point not in front]
    passed_over = [point for point in others if not point.placed.recommended]
    others = [point for point in others if point.placed.recommended]
    lacking = [point for point in found if not point.whole]
    series = [
        _series("Others", others, OKABE_ITO["blue"], "circle"),
        _series("Not recommended: at chance, or a template", passed_over, GREY, "circle-open"),
        _series("Lacks a benchmark: not compared", lacking, GREY, "square-open"),
        _series("Nothing cheaper is better (Pareto front)", front, OKABE_ITO["vermillion"],
                "diamond", labelled=True, step=True),
    ]  # fmt: skip
    return scatter(
        [one for one in series if one.x],
        x=f"{COSTS[cost]}, log scale",
        y="Weighted mean, 0 a guess, 1 the ceilings",
        log_x=True,
    )


def cost_text(value: float | None, cost: str) -> str:
    """A cost for people: `0.21 GiB`, `98.6 GFLOPs`, `12.5 s`."""
    if value is None:
        return number(None)
    if cost == FLOPS:
        return gigaflops_text(value)
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {'GiB' if cost == MEMORY else 's'}"


def _series(
    name: str,
    found: Sequence[Point],
    colour: str,
    symbol: str,
    *,
    labelled: bool = False,
    step: bool = False,
) -> Series:
    indices = [point.placed.standing.index for point in found]
    few = labelled and len(found) <= MOST_LABELS
    return Series(
        name=name,
        x=[point.cost for point in found],
        y=[index.value for index in indices],
        below=[_length(index.value - index.low) for index in indices],
        above=[_length(index.high - index.value) for index in indices],
        hover=[_hover(point) for point in found],
        colour=colour,
        symbol=symbol,
        labels=[said(point.placed.who.metric, limit=24) for point in found] if few else (),
        step=step,
    )


def _length(gap: float) -> float:
    return max(gap, 0.0) if math.isfinite(gap) else 0.0


def _hover(point: Point) -> str:
    who, index = point.placed.who, point.placed.standing.index
    used = point.spent
    lines = [
        f"<b>{said(who.metric)}</b> {said(who.version, limit=20)}".strip(),
        f"{number(index.value)} {interval(index.low, index.high)}".strip(),
    ]
    if used.seconds is not None:
        lines.append(f"{cost_text(used.seconds, SECONDS)} per 1,000 pairs")
    if used.gigaflops is not None:
        lines.append(f"{gigaflops_text(used.gigaflops)} per pair, {DECLARED}")
    if used.memory is not None:
        lines.append(f"{cost_text(used.memory, MEMORY)} at most")
    if used.devices:
        lines.append(f"on {said(', '.join(used.devices), limit=60)}")
    if used.elsewhere:
        lines.append("measured on other benchmarks")
    return "<br>".join(lines)
