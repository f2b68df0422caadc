"""Charts of the Metrics place: values against cost, ranks over benchmarks, values over skills."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from leaderboard.publication.identities import Identity
from leaderboard.text import count
from leaderboard.views.metric_table import MetricTable, short_title
from leaderboard.views.rankings import Place, Ranking, flops_text, front, name_of
from leaderboard.views.skills import FLOPS, MEMORY
from leaderboard.web.components import Line, LineChart, Point, Scale, ScatterChart, Tick

MOST_POINTS, MOST_LINES, MOST_STOPS, MOST_LABELS = 80, 16, 9, 6
_UNKNOWN = {FLOPS: "FLOPs not stated"}
_AXES = {FLOPS: "FLOPs per pair, log scale", MEMORY: "Peak memory, GiB, log scale"}
_MARKED: tuple[Literal["l1", "l2", "l3", "l4"], ...] = ("l1", "l2", "l3", "l4")


def cost_chart(ranking: Ranking | None, costs: Mapping[Identity, float], by: str) -> ScatterChart:
    """Values of a ranking against a cost, with the Pareto front of those that may lead."""
    places = [one for one in ranking.places if math.isfinite(one.value)] if ranking else []
    rises = ranking is None or ranking.higher_is_better
    on_front = front(places, costs, rises=rises)
    shown = _shown(places, on_front)
    ends = [end for one in shown for end in (one.value, one.low, one.high) if math.isfinite(end)]
    ends += [ranking.chance] if ranking and ranking.chance is not None else []
    ends = ends or [0.0, 1.0]
    pad = 0.04 * (max(ends) - min(ends)) or 0.5
    y = Scale(min(ends) - pad, max(ends) + pad, chance=ranking.chance if ranking else None)
    known = [costs[one.who] for one in shown if one.who in costs]
    x = _log_scale(known)
    labels = len(on_front) <= MOST_LABELS
    points = _without_overlaps([_point(one, costs, on_front, labels=labels) for one in shown], x, y)
    names = [name_of(one.entry) for one in shown if one.who in on_front]
    measure = ranking.measure if ranking else "Value"
    summary = f"Pareto front: {', '.join(names)}." if names else "No metric of known cost leads."
    return ScatterChart(
        title=f"{measure} against cost, {ranking.title if ranking else 'nothing published'}",
        summary=f"{summary} The table holds the same numbers.",
        points=points,
        x=x,
        y=y,
        x_title=_AXES.get(by, "Seconds per 1,000 pairs, log scale"),
        y_title=f"{measure}, 95% intervals",
        x_ticks=tuple(Tick(value, _tick(value, by)) for value in x.ticks(6)),
        y_ticks=tuple(Tick(value, f"{value:.4g}".replace("-", "−")) for value in y.ticks(6)),
        gutter=_UNKNOWN.get(by, "cost not recorded") if len(known) < len(shown) else "",
        empty="" if shown else "No metric has a value here.",
    )


def cut(ranking: Ranking | None) -> str:
    """That a chart shows not all of a ranking; empty where it does."""
    n = sum(math.isfinite(one.value) for one in ranking.places) if ranking else 0
    return (
        f"The first {MOST_POINTS} of {count(n, 'metric')} and the front." if n > MOST_POINTS else ""
    )


def rank_chart(table: MetricTable, lead: Ranking | None) -> LineChart:
    """Ranks over benchmarks of the metrics that have a rank on two or more."""
    stops = table.benchmarks[:MOST_STOPS]
    ranks = {
        name: {p.who: p.ranks[1] for p in table.ranking(name).ranked if p.ranks} for name in stops
    }
    lines = [
        (who, [ranks[name].get(who) for name in stops])
        for who in _in_order(lead, [row.who for row in table.rows])
    ]
    lines = [(who, at) for who, at in lines if sum(one is not None for one in at) > 1]
    worst = max((rank for of in ranks.values() for rank in of.values()), default=1)
    return LineChart(
        title="Ranks over benchmarks",
        summary=f"{count(len(lines), 'metric')} ranked on two or more benchmarks; best at the top.",
        stops=[short_title(table.view.boards[name].card) for name in stops],
        lines=_lines(lines, table),
        scale=Scale(1, max(2, worst)),
        empty="" if lines else "No metric has a rank on two benchmarks.",
    )


def skill_chart(table: MetricTable, lead: Ranking | None) -> LineChart:
    """Mean rescaled values over skills of the first metrics."""
    skills = table.skills[:MOST_STOPS]
    means = table.skill_means
    lines = [
        (who, [means[skill.key].get(who) for skill in skills])
        for who in _in_order(lead, [row.who for row in table.rows])
    ]
    lines = [(who, at) for who, at in lines if sum(one is not None for one in at) > 1]
    values = [value for _, at in lines for value in at if value is not None] or [0.0, 1.0]
    return LineChart(
        title="Values over skills",
        summary="Mean of rescaled values: 0 is chance, 1 the ceiling of each benchmark.",
        stops=[skill.title.partition(" (")[0] for skill in skills],
        lines=_lines(lines, table),
        scale=Scale(min(values), max(values)),
        empty="" if lines else "No metric has values on two skills.",
    )


def _point(
    one: Place, costs: Mapping[Identity, float], on_front: set[Identity], *, labels: bool
) -> Point:
    kind: Literal["plain", "front", "other", "hollow", "below"] = "plain"
    if one.who in on_front:
        kind = "front"
    elif one.below:
        kind = "below"
    elif one.above is False:
        kind = "hollow"
    elif one.ranks is None or one.who in costs:
        kind = "other"
    drawn = math.isfinite(one.low)
    return Point(
        name_of(one.entry),
        one.value,
        costs.get(one.who),
        one.low if drawn else None,
        one.high if drawn else None,
        kind,
        labelled=labels and one.who in on_front,
    )


def _without_overlaps(points: Sequence[Point], x: Scale, y: Scale) -> list[Point]:
    """The points with the name of one that is near a higher named one below it."""
    across, up = replace(x, start=0.0, end=560.0), replace(y, start=0.0, end=196.0)
    found: list[Point] = []
    for point in points:
        near = any(
            one.labelled and point.labelled and one.x is not None and point.x is not None
            and abs(across.at(one.x) - across.at(point.x)) < 110
            and abs(up.at(one.y) - up.at(point.y)) < 16
            for one in found
        )  # fmt: skip
        found.append(replace(point, under=True) if near else point)
    return found


def _shown(places: Sequence[Place], on_front: set[Identity]) -> list[Place]:
    """The first places, and the front."""
    rest = [one for one in places[MOST_POINTS:] if one.who in on_front]
    return [*places[:MOST_POINTS], *rest]


def _log_scale(known: Sequence[float]) -> Scale:
    if not known:
        return Scale(1.0, 10.0, log=True)
    low, high = min(known), max(known)
    if high / low < 10:
        low, high = low / 2, high * 2
    return Scale(low / 1.6, high * 1.6, log=True)


def _tick(value: float, by: str) -> str:
    if by == FLOPS:
        return flops_text(value).strip() or "1"
    return f"{value:g}"


def _in_order(lead: Ranking | None, everyone: Sequence[Identity]) -> list[Identity]:
    first = [one.who for one in lead.places] if lead else []
    return [*first, *(who for who in everyone if who not in set(first))]


def _lines(
    lines: Sequence[tuple[Identity, Sequence[float | None]]], table: MetricTable
) -> list[Line]:
    found = []
    for place, (who, at) in enumerate(lines[:MOST_LINES]):
        name = name_of(table.by_who[who].entry)
        found.append(Line(name, at, _MARKED[place] if place < len(_MARKED) else ""))
    return found
