"""Cells, charts and tabs of metrics, for every tab of the Metrics place."""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from benchmarks.schema import Card
from leaderboard.publication.entries import (
    MEANINGS,
    Entry,
    Identity,
    RankCount,
    flags_of,
    is_trained_on,
    origin,
    shown_account,
    signature_text,
)
from leaderboard.publication.metric_facts import (
    facts_of,
    metric_name,
    metric_title,
    verification_of,
)
from leaderboard.publication.reader import SIMULATED, View
from leaderboard.publication.skill_names import common_names, skills_of
from leaderboard.ranking.cells import Cell, cell_at_or_below_chance, cell_beats_chance
from leaderboard.submission_service import UNNAMED
from leaderboard.text import count, number, usd
from leaderboard.views.addresses import metric_address, submission_address
from leaderboard.views.badges import Tag
from leaderboard.views.boards import BoardQuery, Filters
from leaderboard.views.metric_table import MetricTable
from leaderboard.views.metrics import BENCHMARK, SKILL, MetricsQuery
from leaderboard.views.rankings import Place, Ranking, flops_text, front
from leaderboard.views.skills import FLOPS, MEMORY, USD
from leaderboard.web.components import (
    Column,
    Line,
    LineChart,
    Link,
    Point,
    Row,
    Scale,
    ScatterChart,
    Tab,
    TextCell,
    Tick,
    ValueCell,
)


def column_scale(ends: Iterable[float], chance: float | None) -> Scale | None:
    """The axis of a column that holds all of some ends and chance; None where there are none."""
    known = [one for one in ends if math.isfinite(one)]
    return Scale.around(known, chance, margin=0.04) if known else None


def place_cell(
    place: Place | None, scale: Scale | None, *, ranks: bool, best: bool = False, why: str = ""
) -> ValueCell:
    """The value of a place."""
    if place is None or math.isnan(place.value):
        return ValueCell(None, reason=place.why if place else why)
    return ValueCell(
        place.value,
        _or_none(place.low),
        _or_none(place.high),
        n=place.n,
        scale=scale,
        rank=place.range if ranks else "",
        best=best,
        trained=place.trained,
        below=place.below,
        not_significant=place.above is False and not place.below,
    )


def measure_cell(cell: Cell | None, card: Card, entry: Entry, *, best: bool = False) -> ValueCell:
    """A value of a board without a drawing."""
    if cell is None or cell.value is None:
        return ValueCell(None, reason=cell.note if cell else "not run there")
    below = cell_at_or_below_chance(card, cell)
    return ValueCell(
        cell.value, cell.ci_low, cell.ci_high, n=cell.n_clusters, best=best,
        trained=is_trained_on(entry, card), below=below,
        not_significant=cell_beats_chance(card, cell) is False and not below,
    )  # fmt: skip


def cost_cell(value: float | None, by: str, source: str = "") -> TextCell:
    """A cost; `source` says where it is from."""
    if value is None:
        title = {FLOPS: "Not stated", USD: "Not paid for"}.get(by, "Not recorded")
        return TextCell("", right=True, title=title)
    if by == FLOPS:
        shown = flops_text(value).strip()
    else:
        shown = usd(value) if by == USD else number(value, 2 if value < 10 else 1)
    return TextCell(shown, sort=f"{value:g}", right=True, title=source)


def flops_source(entries: Sequence[Entry]) -> str:
    """Where the operations of a metric are stated."""
    if any(one.flops_per_pair is not None for one in entries):
        return "Declared by its author, not measured"
    return "By the accounting of TS2, Table 2, not measured"


def size_cell(value: float | None) -> TextCell:
    """A number of parameters: `151 M`."""
    return (
        TextCell("", right=True, title="Not stated") if value is None
        else TextCell(flops_text(value).strip().replace(" G", " B"), sort=f"{value:g}", right=True)
    )  # fmt: skip


def names_met_twice(entries: Iterable[Entry]) -> frozenset[str]:
    """Names that more than one metric of a table has."""
    met = Counter(metric_title(entry)[0] for entry in entries)
    return frozenset(name for name, n in met.items() if n > 1)


def metric_row(
    entry: Entry,
    place: Place | None,
    cells: Sequence[ValueCell | TextCell],
    *,
    twice: Collection[str],
    last: int,
    opened: Collection[str],
    tags: tuple[Tag, ...],
    facts: tuple[Sequence[tuple[str, str]], ...],
    links: Sequence[Link],
) -> Row:
    """A row of a table of metrics; the version stands beside a name that is met `twice`."""
    name, sub = metric_title(entry)
    return Row(
        ident=f"m-{zlib.crc32(entry.entry_id.encode()):08x}",  # Its own on the page, whatever the order
        name=name,
        sub=sub if facts_of(entry).title or name in twice else "",
        rank=place.range if place else "",
        order=place.ranks[1] if place and place.ranks else last,
        cells=cells,
        tags=tags,
        facts=facts,
        links=links,
        open=entry.entry_id in opened,
        href=metric_address(entry.entry_id),
    )


def tags_of(sent: Sequence[Entry], benchmarks: Iterable[str] | None = None) -> tuple[Tag, ...]:
    """The flags of a metric, short."""
    flags = flags_of(sent, None if benchmarks is None else set(benchmarks))
    return tuple(
        Tag(label, "warn", f"{MEANINGS[label].capitalize()} {', '.join(_named(others))}".strip())
        for label, others in flags.items()
    )


def flag_links(sent: Sequence[Entry]) -> tuple[Link, ...]:
    """The submissions that flags are about, those that may be named."""
    return tuple(
        Link(f"{label}: {others[0]}", submission_address(others[0]))
        for label, found in flags_of(sent).items()
        if (others := _named(found))
    )


def who_facts(sent: Sequence[Entry], cards: Mapping[str, Card]) -> list[tuple[str, str]]:
    """What is known of a metric whatever its values: its source, submitter, training and paper."""
    entry = max(sent, key=lambda one: (one.published_at, one.entry_id))
    facts = facts_of(entry)
    trained = [card.title for card in cards.values() if is_trained_on(entry, card)]
    found = [("Identifier", entry.metric)] if facts.title else []
    found += [("Version", entry.version)] if entry.version else []
    found.append(("Source", origin(entry) or "run by Assay"))
    if entry.released_with:
        found.append(("Released with", entry.released_with))
    elif entry.submitter or shown_account(entry.account):
        found.append(("Submitter", signature_text(entry)))
    if facts.paper:
        found.append(("Paper", facts.paper))
    if verification := verification_of(entry):
        found.append(("Authors' scores", verification.text))
    found.append(("Trained on", ", ".join(trained) or "none of these benchmarks stated"))
    found.append(("Published", f"{entry.published_at:%Y-%m-%d}"))
    return found


def place_words(place: Place, of: RankCount) -> str:
    """`0.779 [0.731, 0.816], rank 1–4 of 19, best in 56% of resamples, tier 1`; or why it has no rank."""
    said = [place.figure]
    if place.ranks is None:
        said.append(f"no rank: {place.why}" if place.why else "no rank")
    else:
        said.append(f"rank {place.range} of {of}")
    if place.ranks is not None and place.best_share is not None:
        said.append(f"best in {share(place.best_share)} of resamples")
    if place.tier is not None:
        said.append(f"tier {place.tier}")
    if place.below:
        said.append("significantly at or below chance")
    elif place.above is False:
        said.append("not significantly above chance")
    return ", ".join(said)


def share(value: float | None) -> str:
    """A share as per cent, never rounded to certainty."""
    if value is None or math.isnan(value):
        return "–"
    if 0.0 < value < 0.005:
        return "< 1%"
    return "> 99%" if 0.995 <= value < 1.0 else f"{value:.0%}"


def heading(column: Column, *, sorted_by: str, down: bool) -> Column:
    """A column with how the table is sorted by it."""
    if column.key != sorted_by:
        return column
    return replace(column, sorted="descending" if down else "ascending")


def _named(others: Sequence[str]) -> list[str]:
    return [other for other in others if other != UNNAMED]


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


MOST_POINTS, MOST_LINES, MOST_STOPS, MOST_LABELS = 80, 16, 9, 6
_UNKNOWN = {FLOPS: "FLOPs not stated", USD: "not paid for"}
_AXES = {
    FLOPS: "FLOPs per pair, log scale",
    MEMORY: "Peak memory, GiB, log scale",
    USD: "USD per 1,000 pairs, log scale",
}
PAID = "Price of its replies; those kept from earlier runs count at what they cost"
_MARKED: tuple[Literal["l1", "l2", "l3", "l4"], ...] = ("l1", "l2", "l3", "l4")


def cost_chart(ranking: Ranking | None, costs: Mapping[Identity, float], by: str) -> ScatterChart:
    """Values of a ranking against a cost, with the Pareto front of those that may lead."""
    places = [one for one in ranking.places if math.isfinite(one.value)] if ranking else []
    rises = ranking is None or ranking.higher_is_better
    on_front = front(places, costs, rises=rises)
    shown = _drawn_places(places, on_front)
    ends = (end for one in shown for end in (one.value, one.low, one.high))
    y = Scale.around(ends, ranking.chance if ranking else None, margin=0.04)
    known = [costs[one.who] for one in shown if one.who in costs]
    x = _log_scale(known)
    labels = len(on_front) <= MOST_LABELS
    points = _without_overlaps([_point(one, costs, on_front, labels=labels) for one in shown], x, y)
    names = [metric_name(one.entry) for one in shown if one.who in on_front]
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
        name: {p.who: p.ranks[1] for p in table.ranking(name).ranked_metrics if p.ranks}
        for name in stops
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
        stops=[table.view.short_titles[name] for name in stops],
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
    values = [value for _, at in lines for value in at if value is not None]
    return LineChart(
        title="Values over skills",
        summary="Mean of rescaled values: 0 is chance, 1 the ceiling of each benchmark.",
        stops=[skill.title.partition(" (")[0] for skill in skills],
        lines=_lines(lines, table),
        scale=Scale(min([0.0, *values]), max([1.0, *values])),
        empty="" if lines else "No metric has values on two skills.",
        levels=(0.0, 1.0) if lines else (),
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
        metric_name(one.entry),
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


def _drawn_places(places: Sequence[Place], on_front: set[Identity]) -> list[Place]:
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
        name = metric_name(table.by_who[who].entry)
        found.append(Line(name, at, _MARKED[place] if place < len(_MARKED) else ""))
    return found


MOST_SKILLS = 9
EVERYTHING = Filters()
GROUP_TITLES = {
    "": "Real data", "preference": "Preference", "quality": "Quality", SIMULATED: "Simulated ratings",
}  # fmt: skip


def metric_tabs(
    view: View, tab: str, *, ratings: str = "", filters: Filters = EVERYTHING
) -> tuple[Tab, ...]:
    """The tabs."""
    shown = view.group(ratings)
    start = MetricsQuery(ratings=ratings)
    known = skills_of(shown.boards)
    named = [one for key, one in known.items() if key in common_names()][:MOST_SKILLS]
    kind, _, which = tab.partition(":")
    found = [_tab(start, "", "Overall", "", current=not kind)]
    found += [
        _tab(start, f"{SKILL}:{one.key}", one.title, "Skill", current=tab == f"{SKILL}:{one.key}")
        for one in named
    ]
    if known:
        elsewhere = kind == SKILL and which not in {one.key for one in named}
        more = f"{len(known)}" if named else ""
        found.append(_tab(start, f"{SKILL}:", "All skills", "Skill", note=more, current=elsewhere))
    kept = replace(filters, within=False)
    boards = sorted(shown.boards.items(), key=lambda one: one[1].empty)
    found += [
        Tab(
            shown.short_titles[name], BoardQuery(name, filters=kept).to_link(),
            tab == f"{BENCHMARK}:{name}", "no results" if board.empty else "", "Benchmark",
            go=f"tab-{BENCHMARK}:{name}",
        )
        for name, board in boards
    ]  # fmt: skip
    return tuple(found)


def kinds_of_data(view: View, query: MetricsQuery) -> tuple[Link, ...]:
    """Links to the groups of boards that have results; the current one is empty."""
    if len(view.groups) < 2:
        return ()
    return tuple(
        Link(GROUP_TITLES[ratings],
             "" if query.ratings == ratings else MetricsQuery(ratings=ratings).link(),
             go=f"ratings-{ratings or 'real'}")
        for ratings in view.groups
    )  # fmt: skip


def _tab(
    start: MetricsQuery, tab: str, title: str, group: str, *, current: bool, note: str = ""
) -> Tab:
    return Tab(title, start.link(tab=tab), current, note, group, go=f"tab-{tab or 'overall'}")
