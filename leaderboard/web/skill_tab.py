"""Tab of a skill: which metric for it, at what cost, where it fails, and where benchmarks disagree."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.schema import Card
from leaderboard.publication.entries import MEANINGS, Entry, Identity, flags_of
from leaderboard.publication.index import nobody
from leaderboard.publication.measure_names import info, short_titles, skill_title, title
from leaderboard.publication.metric_facts import metric_name
from leaderboard.publication.reader import View
from leaderboard.publication.skill_names import common_names
from leaderboard.ranking.cells import Cell
from leaderboard.rendering import render
from leaderboard.text import count, interval, number
from leaderboard.views.addresses import board_address, items_address, metric_address
from leaderboard.views.badges import Tag
from leaderboard.views.figures import Option, estimate, rank_range
from leaderboard.views.metric_table import BEST_SHARE
from leaderboard.views.metrics import NAME, SKILL, MetricsQuery, SkillView, fails_at, skill_view
from leaderboard.views.rankings import MEAN, Place, Ranking, cost_words
from leaderboard.views.skills import (
    COSTS,
    FLOPS,
    MEMORY,
    SECONDS,
    USD,
    Measured,
    Placed,
    RunCost,
    SkillData,
)
from leaderboard.web.components import Column, Link, Row, Scale, TextCell, Tier, ValueCell, Values
from leaderboard.web.live import LiveContent
from leaderboard.web.metric_parts import (
    PAID,
    column_scale,
    cost_cell,
    cost_chart,
    cut,
    heading,
    kinds_of_data,
    measure_cell,
    metric_row,
    metric_tabs,
    names_met_twice,
    place_cell,
    place_words,
    share,
    tags_of,
    who_facts,
)
from leaderboard.web.metrics_tab import BoardParts, WeightField, exact
from leaderboard.web.page import Context

MOST_OF_A_PART, MOST_ROWS = 5, 100
_MOST_EXAMPLES, _MOST_NAMED = 3, 12
_UNITS = {
    FLOPS: "FLOPs a pair", SECONDS: "s per 1,000 pairs", MEMORY: "GiB", USD: "USD per 1,000 pairs",
}  # fmt: skip
_COLUMNS = {
    SECONDS: ("Seconds", "per 1,000 pairs"), FLOPS: ("FLOPs", "per pair, declared"),
    MEMORY: ("Memory", "GiB, peak"), USD: ("USD", "per 1,000 pairs"),
}  # fmt: skip
_SOURCES = {FLOPS: "Declared by its author, not measured", USD: PAID}


@dataclass(frozen=True)
class SkillAnswer:
    """A metric for a skill: what was asked, who it is, the figure, its cost, and where it fails."""

    question: str
    name: str
    figure: str
    href: str = ""
    fails: str = ""
    cost: str = ""


def skill_tab(context: Context, query: MetricsQuery) -> LiveContent:
    """What the tab shows; without a skill all of them, to choose from."""
    view = context.reader.view()
    found = skill_view(query, view, context.skills)
    shared = {
        "tabs": metric_tabs(view, found.query.tab, ratings=found.query.ratings),
        "data": kinds_of_data(view, found.query),
        "remarks": found.choice.remarks,
        "query": found.query,
    }
    if found.found is None or found.ranking is None:
        html = render("metrics/skills.html", **shared, **_chooser(found, view))
        return LiveContent(html, found.query.to_query(), "Metrics")
    costs = {one.who: cost for one in (*found.ranked, *found.lacking)
             if (cost := one.cost(found.by)) is not None}  # fmt: skip
    html = render(
        "metrics/skill.html",
        **shared,
        sentence=_sentence(found),
        detail=_detail(found),
        answers=answers_of(found),
        cost=cost_chart(found.ranking, costs, found.by),
        cut=cut(found.ranking),
        disagreement=_disagreement(found.found),
        warnings=_warnings(found),
        board=skill_board(found),
        caption=f"Metrics for {found.choice.in_a_sentence}, by the mean over benchmarks",
        shown=_row_counts(found),
        costs=tuple(Option(by, label, by == found.by) for by, label in COSTS.items()),
        bound="" if found.query.cost is None else f"{found.query.cost:g}",
        unit=_UNITS[found.by],
        weights=_weights(found, view),
        without=_without(found),
        data_href=f"./v1/skills{found.choice.query.to_query()}",
        legend=_legend(found),
    )
    return LiveContent(html, found.query.to_query(), f"Metrics for {found.choice.title}")


def skill_parts(context: Context, query: MetricsQuery) -> LiveContent:
    """Each benchmark by itself with its tiers, which take longer than the list."""
    view = context.reader.view()
    found = skill_view(query, view, context.skills)
    if found.found is None:
        return LiveContent("")
    parts = tuple(
        _part(found.found.base.measured[part.name], found, view) for part in found.choice.parts
    )
    return LiveContent(render("metrics/skill_parts.html", parts=parts, scales=_scales(found.found)))


def answers_of(found: SkillView) -> tuple[SkillAnswer, ...]:
    """Highest, best affordable and for less, each with the images where it fails."""
    assert found.found is not None
    if not found.found.recommended:
        return ()
    best = found.found.recommended[0]
    answers = [_answer("Highest", best, "", found.found)]
    affordable = found.best_affordable
    asked = "Best affordable" if found.query.cost is None else (
        f"Best under {cost_words(found.query.cost, found.by)}"
    )  # fmt: skip
    if affordable is not None:
        answers.append(_answer(asked, affordable, _cost(affordable, found.by), found.found))
        place = found.found.front.index(affordable)
        if place:
            less = found.found.front[place - 1]
            answers.append(_answer("For less", less, _cost(less, found.by), found.found))
    elif found.query.cost is not None:
        answers.append(SkillAnswer(asked, _none_within(found), ""))
    return tuple(answers)


def skill_board(found: SkillView) -> BoardParts:
    """The list as a table."""
    assert found.found is not None and found.ranking is not None
    key, down = found.sort
    parts = found.found.base.measured
    short = short_titles(one.card for one in parts.values())
    first = Column(
        NAME, "Rank range · Metric", "ranks of the mean that tests leave open", first=True
    )
    columns = [first, Column(MEAN, "Weighted mean", "0 chance, 1 the ceilings")]
    for name, one in parts.items():
        weight = found.found.weights.get(name)
        left = one.why_out or (f"weight {weight:g}" if weight is not None else "not in the mean")
        note = f"{info(one.card, one.selector.measure).title} · {left}"
        columns.append(Column(name, short[one.card.name], note, right=True, hint=one.card.title))
    columns.append(Column(BEST_SHARE, "Best in", "share of resamples", right=True))
    columns += [Column(by, *_COLUMNS[by], right=True) for by in COSTS]
    shown = tuple(heading(one, sorted_by=key, down=down) for one in columns)
    ends = (end for one in found.ranking.places for end in (one.value, one.low, one.high))
    scale = column_scale(ends, 0.0)
    places = {one.who: one for one in found.ranking.places}
    twice = names_met_twice(one.entry for one in found.found.placed)
    drawn = _Drawn(found, found.found, places, scale, found.ranking, twice)
    groups: list[tuple[Tier | None, tuple[Row, ...]]] = []
    if found.ranked:
        groups.append((None, tuple(_row(row, drawn) for row in found.ranked[:MOST_ROWS])))
    if found.lacking:
        n = count(len(found.lacking), "metric lacks", "metrics lack")
        head = Tier("Without a rank", f"{n} a benchmark of the mean; values are not compared")
        groups.append((head, tuple(_row(row, drawn) for row in found.lacking[:MOST_ROWS])))
    return BoardParts(shown, tuple(groups))


@dataclass(frozen=True)
class _Drawn:
    """What all rows share."""

    view: SkillView
    found: SkillData
    places: Mapping[Identity, Place]
    scale: Scale | None
    ranking: Ranking
    twice: frozenset[str]


def _row(placed: Placed, drawn: _Drawn) -> Row:
    found = drawn.found
    place = drawn.places[placed.who]
    cells: list[ValueCell | TextCell] = [place_cell(place, drawn.scale, ranks=False)]
    for one in found.base.measured.values():
        cell = one.able.get(placed.who)
        shown = measure_cell(cell, one.card, placed.entry)
        if cell is None:
            shown = ValueCell(None, reason=one.unfit.get(placed.who, "not run there"))
        cells.append(shown)
    best_share = placed.standing.best_share
    cells.append(
        TextCell(
            "" if math.isnan(best_share) else share(best_share), sort=f"{best_share:g}", right=True
        )
    )
    cells += [cost_cell(placed.cost(by), by, _source(placed.used, by)) for by in COSTS]
    sent = found.base.sent[placed.who]
    links = [Link(f"Images where it fails: {label}", to) for label, to in fails_at(placed, found)]
    return metric_row(
        placed.entry, place, cells,
        twice=drawn.twice, last=len(drawn.ranking.places), opened=drawn.view.query.open,
        tags=_tags(placed, found),
        facts=(_results(placed, drawn, place), who_facts(sent, _cards(found))),
        links=links,
    )  # fmt: skip


def _tags(placed: Placed, found: SkillData) -> tuple[Tag, ...]:
    tags = list(tags_of(found.base.sent[placed.who], _cards(found)))
    if not math.isfinite(placed.standing.index.low):
        tags.append(Tag("no interval", "warn", placed.standing.note))
    elif not placed.above_chance:
        tags.append(Tag("at chance", "warn", "Not significantly above chance, so not recommended"))
    return tuple(tags)


def _results(placed: Placed, drawn: _Drawn, place: Place) -> list[tuple[str, str]]:
    found = [("Weighted mean", place_words(place, drawn.ranking.n_ranked))]
    for one in drawn.found.base.measured.values():
        cell = one.able.get(placed.who)
        if cell is None:
            found.append((one.card.title, one.unfit.get(placed.who, "not run there")))
            continue
        value = estimate(cell.value, cell.ci_low, cell.ci_high)
        rank = f", rank {rank_range(cell)}" if cell.rank is not None else ""
        missing = f", {cell.n_missing:,} missing" if cell.n_missing else ""
        found.append((one.card.title, f"{value}{rank}{missing}"))
    return found


def _source(used: RunCost | None, by: str) -> str:
    if by in _SOURCES or used is None:
        return _SOURCES.get(by, "")
    where = "on other benchmarks" if used.elsewhere else "on these benchmarks"
    on = f" on {', '.join(used.devices)}" if used.devices else ""
    return f"Measured {where}{on}"[:200]


def _cards(found: SkillData) -> dict[str, Card]:
    return {one.card.name: one.card for one in found.base.measured.values()}


def _sentence(found: SkillView) -> str:
    """The verdict: who ranks highest for the skill, or that nobody may be named."""
    assert found.found is not None
    skill = found.choice.in_a_sentence
    if not any(found.found.weights.values()):
        return f"No benchmark orders metrics by {skill} yet."
    if not found.found.ranked:
        return f"No metric has every benchmark of {skill}."
    if not found.found.recommended:
        said = nobody(but_templates=any(one.above_chance for one in found.found.ranked))
        where = "this skill" if len(found.choice.skills) == 1 else "these skills together"
        return f"{said} on {where}."
    best = found.found.recommended[0]
    others = sum(
        one.standing.rank is not None and one.standing.rank.low == 1
        for one in found.found.ranked if one is not best
    )  # fmt: skip
    beside = (
        f"the rank ranges of {count(others, 'other metric')} reach the first place as well"
        if others
        else "no other rank range reaches the first place"
    )
    return f"For {skill}, {metric_name(best.entry)} ranks highest; {beside}."


def _detail(found: SkillView) -> str:
    assert found.found is not None
    used = [
        found.found.base.measured[name] for name, weight in found.found.weights.items() if weight
    ]
    if not used:
        return "All values there are stand below."
    short = short_titles(one.card for one in used)
    joined = ", ".join(
        f"{short[one.card.name]} (weight {found.found.weights[one.part.name]:g})" for one in used
    )
    said = f"Mean of rescaled values, 0 chance and 1 the ceilings, over {joined}; 95% intervals."
    if found.query.cost is None and found.best_affordable is not None:
        said += " Best affordable: the cheapest whose rank range reaches the first place."
    return said


def _answer(question: str, one: Placed, cost: str, found: SkillData) -> SkillAnswer:
    fails = next((to for _, to in fails_at(one, found)), "")
    href = metric_address(one.entry.entry_id)
    return SkillAnswer(question, metric_name(one.entry), _figure(one), href, fails, cost)


def _figure(one: Placed) -> str:
    index = one.standing.index
    return estimate(index.value, index.low, index.high)


def _cost(one: Placed, by: str) -> str:
    return cost_words(one.cost(by) or 0.0, by)


def _none_within(found: SkillView) -> str:
    """That there is none within the bound, and what the cheapest costs."""
    assert found.found is not None and found.query.cost is not None
    bound = found.choice.bound or 0.0
    templates = any(
        one.above_chance and math.isfinite(one.value) and (one.cost(found.by) or math.inf) <= bound
        for one in found.found.placed
    )
    where = f"under {cost_words(found.query.cost, found.by)}"
    said = f"{nobody(where=where, but_templates=templates)}."
    if found.found.front:
        cheapest = found.found.front[0]
        said += (
            f" The cheapest that is: {metric_name(cheapest.entry)}, {_cost(cheapest, found.by)}."
        )
    return said


def _disagreement(found: SkillData) -> tuple[str, str]:
    """Where benchmarks disagree, as a heading and text; empty where fewer than two say anything."""
    told = found.disagreement
    if not told.n_pairs:
        return "", ""
    if not told.opposed:
        return "", (
            "The benchmarks agree: no two of them order a pair of the leading metrics in opposite "
            f"ways beyond their 95% intervals ({count(told.n_pairs, 'pair')} ordered by both)."
        )
    measured = found.base.measured
    examples = "; ".join(
        f"{one.one.metric[:40]} is above {one.other.metric[:40]} on "
        f"{measured[one.by_first].card.title} and below on {measured[one.by_second].card.title}"
        for one in told.opposed[:_MOST_EXAMPLES]
    )
    return "The benchmarks disagree", (
        f"on {len(told.opposed):,} of {count(told.n_pairs, 'pair')} of leading metrics that two of "
        f"them order beyond their 95% intervals: {examples}. What they measure of this skill "
        "differs: look at each by itself before relying on the mean."
    )


def _warnings(found: SkillView) -> tuple[tuple[str, str], ...]:
    assert found.found is not None
    weighty = [
        found.found.base.measured[name] for name, weight in found.found.weights.items() if weight
    ]
    said = []
    simulated = [one.card.title for one in weighty if one.card.simulated]
    if simulated:
        which = "all" if len(simulated) == len(weighty) else ", ".join(dict.fromkeys(simulated))
        said.append((f"Simulated ratings are in this list ({which}).",
                     "They do not come from people and say nothing of how good a metric is."))  # fmt: skip
    why = found.choice.why or {}
    said += [
        (f"{name} counts twice:", f"{why[name]}. The intervals are too narrow.")
        for name in why if "twice" in why[name] and (found.choice.of_benchmarks or {}).get(name)
    ]  # fmt: skip
    said += [
        (f"No joint resamples of {found.found.base.measured[name].card.title}:",
         f"{reason}, so metrics that have it are shown without an interval.")
        for name, reason in found.found.base.unjoined.items() if found.found.weights.get(name)
    ]  # fmt: skip
    return tuple(said)


def _row_counts(found: SkillView) -> str:
    n = len(found.ranked) + len(found.lacking)
    if found.query.terms:
        return f"{n:,} of {count(found.everyone, 'metric')}"
    return f"{count(n, 'metric')} · {len(found.ranked):,} ranked"


def _without(found: SkillView) -> str:
    """Who is not on the chart for want of a cost: nobody is left out unsaid."""
    names = [metric_name(row.entry) for row in (*found.ranked, *found.lacking)
             if row.cost(found.by) is None]  # fmt: skip
    if not names:
        return ""
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    what = {FLOPS: "FLOPs not declared", USD: "not paid for"}.get(
        found.by, "cost not recorded (scores files are not run)"
    )
    return f"{count(len(names), 'metric')} in the grey band, {what}: {', '.join(names[:_MOST_NAMED])}{more}."


def _weights(found: SkillView, view: View) -> tuple[WeightField, ...]:
    """Fields of the weights: of skills where there are several, and of benchmarks."""
    choice = found.choice
    fields = []
    if len(choice.skills) > 1:
        of = choice.of_skills or {}
        fields += [
            WeightField(f"w.{s.key}", f"Skill: {s.title}", f"{of[s.key]:g}") for s in choice.skills
        ]
    boards = choice.of_benchmarks or {}
    if len(boards) > 1:
        why = choice.why or {}
        fields += [
            WeightField(f"w.{name}", view.boards[name].card.title, f"{weight:g}", why.get(name, ""))
            for name, weight in boards.items()
        ]
    return tuple(fields)


def _legend(found: SkillView) -> tuple[str, ...]:
    assert found.found is not None
    sent: list[Entry] = [e for row in (*found.ranked, *found.lacking)
                         for e in found.found.base.sent[row.who]]  # fmt: skip
    flags = flags_of(sent)
    return tuple(f"{label}: {meaning}" for label, meaning in MEANINGS.items() if label in flags)


def _chooser(found: SkillView, view: View) -> dict[str, object]:
    """All skills with the benchmarks that measure them: common names, then those of one."""
    shown = view.group(found.query.ratings)
    start = MetricsQuery(ratings=found.query.ratings)

    def listed(common: bool) -> tuple[tuple[Link, str], ...]:
        return tuple(
            (
                Link(one.title, start.link(tab=f"{SKILL}:{key}"), go=f"skill-{key}"),
                ", ".join(dict.fromkeys(shown.short_titles[p.benchmark] for p in one.parts
                                    if common or len(one.parts) > 1)),
            )
            for key, one in found.choice.known.items() if (key in common_names()) is common
        )  # fmt: skip

    return {"named": listed(common=True), "own": listed(common=False)}


def _part(one: Measured, found: SkillView, view: View) -> Values:
    card = one.card
    assert found.found is not None
    ranked = view.orders.ranked(card, [one.cells])
    weight = found.found.weights.get(one.part.name)
    marks = [Tag("simulated ratings", "sim")] if card.simulated else []
    marks += [Tag(f"weight {weight:g}")] if weight is not None else []
    marks += [Tag(f"not in the mean: {one.why_out}", "warn")] if one.why_out else []
    why = (found.choice.why or {}).get(card.name, "")
    marks += [Tag("begins with weight 0", "warn", why)] if why else []
    clusters = max((cell.n_clusters for cell in ranked.cells), default=0)
    return {
        "title": card.title,
        "skill": skill_title(card, one.part.key),
        "href": board_address(card.name, skill=one.part.key),
        "measure": title(card, one.selector, view.boards[card.name].every_selector()),
        "meaning": info(card, one.selector.measure).meaning,
        "marks": tuple(marks),
        "rows": tuple(_part_row(cell, one, view) for cell in ranked.cells[:MOST_OF_A_PART]),
        "more": f"{count(len(ranked.cells), 'metric')} on the board; {count(clusters, card.cluster)} "
        "behind a value",
    }


def _part_row(cell: Cell, one: Measured, view: View) -> tuple[str, str, str, str, str, str, str]:
    entry = view.entries[cell.entry_id]
    fails = ""
    if one.card.answers_public:
        fails = items_address(one.card.name, skill=one.part.key, a=cell.entry_id, show="failures")
    return (
        rank_range(cell), f"{cell.tier}" if cell.tier is not None else "", metric_name(entry),
        metric_address(cell.entry_id), number(cell.value), interval(cell.ci_low, cell.ci_high), fails,
    )  # fmt: skip


def _scales(found: SkillData) -> tuple[tuple[str, ...], ...]:
    rows = []
    for one in found.base.measured.values():
        scale, measure = one.scale, info(one.card, one.selector.measure).title
        if scale is None:
            rows.append((one.card.name, one.card.title, measure, "–", "–", one.why_out, "–", ""))
            continue
        note = "" if one.own_scale else "Not the measure of the headline."
        rows.append((one.card.name, one.card.title, measure, exact(scale.chance),
                     exact(scale.ceiling), scale.ceiling_is, scale.source, note))  # fmt: skip
    return tuple(rows)
