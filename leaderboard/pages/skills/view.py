"""All HTML of the skill explorer but its controls and its chart."""

from __future__ import annotations

import math
from collections.abc import Iterable

from leaderboard.pages.shown.downloads import download_links, skills_data
from leaderboard.pages.shown.flags import flags_legend
from leaderboard.pages.shown.markup import badge, notice, page, scroll_box, section, text
from leaderboard.pages.shown.metric_names import metric_name
from leaderboard.pages.skills.answer import remarks
from leaderboard.pages.skills.table import (
    front_table,
    list_table,
    part_table,
)
from leaderboard.publication.measure_names import info, skill_title, title
from leaderboard.publication.reader import View
from leaderboard.publication.recommending import nobody
from leaderboard.publication.skill_names import Skill, common_names, skills_of
from leaderboard.text import count, number
from leaderboard.views.addresses import board_address, skills_address
from leaderboard.views.boards import BoardQuery
from leaderboard.views.skill_choice import FLOPS, Found, SkillsChoice
from leaderboard.views.skills import Measured

HEADER = (
    '<header class="as-hero"><h1>Which metric for what?</h1><p>Benchmarks test skills under names '
    "of their own. Choose one, and see which metrics people agree with there, how sure that is, "
    "what they cost and where they fail. Simulated boards stand apart: "
    '<a href="./skills">real data</a> · <a href="./skills?ratings=simulated">simulated</a>.</p></header>'
    '<form class="as-asking" method="get" action="./skills" role="search"><label><span>Type what '
    'matters to you</span><input name="skill" maxlength="120" placeholder="how many, left of, '
    'letters" autocomplete="off"></label><button type="submit" class="as-plain">Find</button>'
    "</form>"
)
WAITING = page(['<p class="as-wait" role="status">Looking up the skills…</p>'])
"""In place of the answer until it is there."""
_MOST_LINKS = 14
_MOST_NAMED = 12


def skill_links(view: View, most: int = _MOST_LINKS) -> str:
    """Links to the skills that go by a common name, for other pages; empty where none has results.

    Args:
        view: what is published.
        most: how many.
    """
    known = skills_of(view.boards)
    common = common_names()
    shown = [skill for key, skill in known.items() if key in common][:most]
    if not shown:
        return ""
    links = "".join(f"<li>{_link(skill)}</li>" for skill in shown)
    more = (
        f'<li><a href="{text(skills_address())}">all {len(known)}</a></li>'
        if len(known) > len(shown)
        else ""
    )
    return f'<ul class="as-skill-links" aria-label="Which metric for…">{links}{more}</ul>'


def chooser_view(choice: SkillsChoice, view: View) -> str:
    """In place of everything else while no skill is chosen."""
    if not choice.known:
        return page([*remarks(choice), _empty()])
    ratings = choice.ratings
    named = [skill for key, skill in choice.known.items() if key in common_names()]
    own = [skill for key, skill in choice.known.items() if key not in common_names()]
    rest = (
        f'<details class="as-own-skills"{"" if named else " open"}><summary>{count(len(own), "skill")} of single benchmarks'
        f"</summary>{_cards(own, view, ratings)}</details>"
        if own
        else ""
    )
    skills = section("Skills", _cards(named, view, ratings)) if named else ""
    return page([*remarks(choice), skills, rest])


def front_view(choice: SkillsChoice, found: Found) -> str:
    """The front as a table beside the chart, and what both leave out."""
    if not found.placed:
        return ""
    best = found.affordable(choice.budget)
    about = (
        '<p class="as-legend">Dotted stair: the best that each cost buys; a metric on it is marked '
        "by a diamond, significantly above chance and beaten by nothing cheaper that is. Bars: 95 % "
        f"intervals, so a lead on the stair may be chance: see the rank ranges. {_where_from(choice, found)}</p>"
    )
    table = (
        front_table(found.front, found, choice.cost, best)
        if found.front
        else f'<p class="as-muted">{_no_front(found)}</p>'
    )
    return page([f"<h3>The front</h3>{table}{about}"])


def list_view(choice: SkillsChoice, found: Found) -> str:
    """The list of all metrics with its downloads."""
    if not found.placed:
        return ""
    whole = found.ranked
    rest = [one for one in found.placed if one.standing.rank is None]
    spent = dict(zip((one.who for one in found.placed), found.spent, strict=True))
    body = _about_list(found)
    if whole:
        body += list_table(whole, [spent[one.who] for one in whole], found)
    if rest:
        body += (
            f'<details class="as-rest"{"" if whole else " open"}><summary>'
            f"{count(len(rest), 'metric lacks', 'metrics lack')} a benchmark, and "
            f"{'has' if len(rest) == 1 else 'have'} a value without a rank</summary>"
            f"{list_table(rest, [spent[one.who] for one in rest], found)}</details>"
        )
    flags = flags_legend(entry for one in found.placed for entry in found.base.sent[one.who])
    body += f'<p class="as-legend">{" ".join(flags)}</p>' if flags else ""
    data = download_links(skills_data(choice.query.to_query()))
    aside = f"<span>{count(len(whole), 'metric')}</span>{data}"
    return page([section("All metrics, best first", body, aside=aside)])


def parts_view(choice: SkillsChoice, found: Found, view: View) -> str:
    """Each benchmark by itself: measure, rank ranges, tiers."""
    blocks = "".join(
        _part(found.base.measured[part.name], found.weights.get(part.name), choice, view)
        for part in choice.parts
    )
    how = section("How the list is made", _how(found), ident="how")
    return page([section("Benchmark by benchmark", f'<div class="as-parts">{blocks}</div>'), how])


# Around it -----------------------------------------------------------------------------------


def _empty() -> str:
    return (
        '<div class="as-empty"><h2>No skill has results yet</h2><p>It takes a published metric on a '
        'benchmark that names skills.</p><p><a class="as-button as-strong" href="./submit">Submit a '
        "metric</a></p></div>"
    )


def _cards(skills: Iterable[Skill], view: View, ratings: str) -> str:
    cards = []
    for skill in skills:
        boards = list(dict.fromkeys(part.benchmark for part in skill.parts))
        named = ", ".join(text(view.boards[name].card.title) for name in boards)
        cards.append(
            f'<li class="as-card"><h3>{_link(skill, ratings)}</h3><p class="as-muted">{named}</p></li>'
        )
    return f'<ul class="as-cards as-skills">{"".join(cards)}</ul>'


def _link(skill: Skill, ratings: str = "") -> str:
    return f'<a href="{text(skills_address(skill.key, ratings=ratings))}">{text(skill.title)}</a>'


def _no_front(found: Found) -> str:
    """Why there is no front."""
    whole = [point.placed for point in found.points if point.whole]
    if whole:
        templates = any(one.above_chance for one in whole)
        return f"{nobody(where='of known cost', but_templates=templates)}."
    return "No metric with every benchmark has such a cost."


def _where_from(choice: SkillsChoice, found: Found) -> str:
    """What the costs are, and who has none: nobody is left out unsaid."""
    shown = {point.placed.who for point in found.points}
    without = [one for one in found.placed if one.who not in shown]
    names = ", ".join(metric_name(one.entry) for one in without[:_MOST_NAMED])
    more = f" and {len(without) - _MOST_NAMED:,} more" if len(without) > _MOST_NAMED else ""
    listed = f": {names}{more}" if without else ""
    if choice.cost == FLOPS:
        said = (
            "<b>FLOPs are declared by the authors, not measured.</b> They count the operations of "
            "one pair and say nothing of speed on any device."
        )
        left = f" {count(len(without), 'metric')} not on the chart, FLOPs not declared{listed}."
    else:
        said = (
            "Seconds and memory are those of the workers that ran the metrics, on the hardware named "
            "on hover."
        )
        left = (
            f" {count(len(without), 'metric has', 'metrics have')} no recorded cost (scores files "
            f"are not run), so not on the chart{listed}."
        )
    return said + (left if without else "")


def _about_list(found: Found) -> str:
    used = [found.base.measured[name] for name, weight in found.weights.items() if weight]
    joined = ", ".join(
        f"{text(one.card.title)} ({number(found.weights[one.part.name], 1)})" for one in used
    )
    unjoined = "".join(
        notice(
            f"<b>No joint resamples of {text(found.base.measured[name].card.title)}</b>: {text(why)}, "
            "so metrics that have it are shown without an interval.",
            "warn",
        )
        for name, why in found.base.unjoined.items()
        if found.weights.get(name)
    )
    return (
        f'<p class="as-lead">The mean of rescaled values, 0 a guess and 1 the ceiling, over {joined}, '
        "weights in brackets. Ranks are among metrics that have them all.</p>" + unjoined
    )


def _part(one: Measured, weight: float | None, choice: SkillsChoice, view: View) -> str:
    card = one.card
    every = view.boards[card.name].every_selector()
    to = board_address(card.name, skill=one.part.key)
    marks = badge("simulated ratings", "warn") if card.simulated else ""
    marks += badge(f"weight {weight:g}", "plain") if weight is not None else ""
    marks += badge(f"not in the list: {one.why_out}", "warn") if one.why_out else ""
    why = (choice.why or {}).get(card.name, "")
    note = f'<p class="as-legend">Begins with weight 0: {text(why)}.</p>' if why else ""
    return (
        f'<article class="as-part-of"><header><h3><a href="{text(to)}">{text(card.title)}</a> '
        f'<span class="as-muted">{text(skill_title(card, one.part.key))}</span></h3>'
        f'<span class="as-badges">{marks}</span></header>'
        f'<p class="as-muted">{text(title(card, one.selector, every))}: '
        f"{text(info(card, one.selector.measure).meaning)}</p>{note}{part_table(one, view)}</article>"
    )


def _how(found: Found) -> str:
    rows = "".join(_scale_row(one) for one in found.base.measured.values())
    head = "".join(
        f'<th scope="col">{name}</th>'
        for name in ("Benchmark", "Measure", "Chance", "Ceiling", "What the ceiling is")
    )
    table = (
        f'{scroll_box("Scales")}<table class="as-table as-scales"><caption class="as-sr">What values '
        f"are rescaled with</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
    return (
        "<p>Each benchmark shows the skill by the measure nearest to its headline. A value becomes "
        "(value − chance) / (ceiling − chance), with the headline’s chance and ceiling where the "
        "skill is measured as the headline is; those are of the whole benchmark, not of the skill. "
        "The mean is weighted by skill times benchmark. Resample b of a metric joins resample b of "
        "all its benchmarks, so ranges and intervals are of paired draws, as on the "
        f'<a href="./index">index</a>.</p>{table}'
    )


def _scale_row(one: Measured) -> str:
    scale = one.scale
    card = one.card
    name = f'<a href="./boards{text(BoardQuery(card.name, one.part.key).to_query())}">{text(card.title)}</a>'
    measure = text(info(card, one.selector.measure).title)
    if scale is None:
        return f'<tr><th scope="row">{name}</th><td>{measure}</td><td colspan="3">{text(one.why_out)}</td></tr>'
    of = "" if one.own_scale else " Not the headline’s measure."
    return (
        f'<tr><th scope="row">{name}</th><td data-label="Measure">{measure}</td>'
        f'<td data-label="Chance">{_exact(scale.chance)}</td>'
        f'<td data-label="Ceiling">{_exact(scale.ceiling)}</td>'
        f'<td data-label="What the ceiling is">{text(scale.ceiling_is)}{of}</td></tr>'
    )


def _exact(value: float) -> str:
    return f"{value:.6g}".replace("-", "−") if math.isfinite(value) else ""
