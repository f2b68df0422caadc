"""The answer of the skill explorer in words, before everything it rests on."""

from __future__ import annotations

from leaderboard.pages.shown.markup import notice, page, submitted, text
from leaderboard.pages.shown.metric_names import metric_name
from leaderboard.pages.skills.scatter import cost_text
from leaderboard.pages.skills.table import (
    first_failures,
)
from leaderboard.publication.recommending import nobody
from leaderboard.text import count, interval, number
from leaderboard.views.addresses import metric_address
from leaderboard.views.skill_choice import (
    FLOPS,
    MEMORY,
    SECONDS,
    Found,
    Point,
    SkillsChoice,
    for_less,
)
from leaderboard.views.skills import Placed

_MOST_EXAMPLES = 3
_UNITS = {SECONDS: " per 1,000 pairs", FLOPS: " per pair (declared, not measured)", MEMORY: ""}


def answer_view(choice: SkillsChoice, found: Found) -> str:
    """The answer in words, before everything it rests on."""
    parts = [f"<h2 class='as-question'>Which metric for {text(choice.title.lower())}?</h2>"]
    parts += remarks(choice)
    parts += _warnings(choice, found)
    if not found.ranked:
        parts.append(_nobody(choice, found))
        return page(parts)
    parts.append(_answers(choice, found) if found.recommended else _at_chance(choice, found))
    return page([*parts, *_contradictions(found)])


def _answers(choice: SkillsChoice, found: Found) -> str:
    best = found.recommended[0]
    others = sum(
        one.standing.rank is not None and one.standing.rank.low == 1
        for one in found.ranked
        if one is not best
    )
    doubt = (
        f"{count(others, 'other metric', 'other metrics')} may be first as well"
        if others > 0
        else "no other metric’s rank range reaches the first place"
    )
    cards = [_answer("Most accurate", best, f"{_value(best)}; {doubt}.", found)]
    point = found.affordable(choice.budget)
    if point is not None:
        cards.append(
            _answer(_affordable_title(choice), point.placed, _affordable(choice, point), found)
        )
        cards += _for_less(found, point, choice)
    elif choice.budget is not None:
        cards.append(_none_within(choice, found))
    return f'<div class="as-cards as-answers">{"".join(cards)}</div>'


def _none_within(choice: SkillsChoice, found: Found) -> str:
    """In place of the best within a budget: that there is none, and what the cheapest costs."""
    templates = any(
        point.placed.above_chance and choice.budget is not None and point.cost <= choice.budget
        for point in found.points
    )
    said = f"{nobody(where=f'under {cost_text(choice.budget, choice.cost)}', but_templates=templates)}."
    if found.front:
        cheapest = found.front[0]
        said += (
            f" The cheapest that is, {metric_name(cheapest.placed.entry)}, takes "
            f"{cost_text(cheapest.cost, choice.cost)}."
        )
    return (
        f'<article class="as-card as-quiet"><header><h3>{_affordable_title(choice)}</h3></header>'
        f"<p>{said}</p></article>"
    )


def _answer(label: str, one: Placed, said: str, found: Found) -> str:
    fails = first_failures(one, found)
    links = [
        *([f'<a class="as-button as-strong" href="{text(fails)}">Images where it fails</a>'] if fails else []),
        f'<a class="as-button" href="{text(metric_address(one.entry.entry_id))}">All about it</a>',
    ]  # fmt: skip
    return (
        f'<article class="as-card"><header><h3>{text(label)}</h3></header>'
        f'<p class="as-leader">{metric_name(one.entry)}</p><p>{said}</p>'
        f'<p class="as-links">{" ".join(links)}</p></article>'
    )


def _for_less(found: Found, point: Point, choice: SkillsChoice) -> list[str]:
    """What the step below costs and loses; nothing where there is none."""
    less = for_less(found.front, point)
    if less is None:
        return []
    said = (
        f"{_value(less.placed)} for {cost_text(less.cost, choice.cost)}: "
        f"{number(point.value - less.value, 2)} less at {_times(point.cost / less.cost)} of the cost."
    )
    return [_answer("For less", less.placed, said, found)]


def _times(ratio: float) -> str:
    """`a 65th`, `two thirds` would be hard to read: `1/65`, `1/1.5`."""
    return f"1/{ratio:.0f}" if ratio >= 9.5 else f"1/{ratio:.1f}"


def _affordable_title(choice: SkillsChoice) -> str:
    if choice.budget is None:
        return "Best affordable"
    return f"Best within {cost_text(choice.budget, choice.cost)}"


def _affordable(choice: SkillsChoice, point: Point) -> str:
    unit = _UNITS[choice.cost]
    why = (
        "the cheapest whose rank range reaches the first place"
        if choice.budget is None
        else "the most accurate within the budget"
    )
    return f"{_value(point.placed)} for {cost_text(point.cost, choice.cost)}{unit}: {why}."


def _value(one: Placed) -> str:
    index = one.standing.index
    return f"<b>{number(index.value)}</b> {interval(index.low, index.high)}".strip()


def _contradictions(found: Found) -> list[str]:
    """Says where benchmarks disagree; nothing where fewer than two say anything."""
    told = found.disagreement
    if not told.n_pairs:
        return []
    if not told.opposed:
        return [
            '<p class="as-legend">The benchmarks agree: no two of them order a pair of the leading '
            f"metrics in opposite ways beyond their 95 % intervals ({count(told.n_pairs, 'pair')} "
            "ordered by both).</p>"
        ]
    measured = found.base.measured
    examples = "; ".join(
        f"{submitted(one.one.metric, limit=40)} is above {submitted(one.other.metric, limit=40)} on "
        f"{text(measured[one.by_first].card.title)} and below on "
        f"{text(measured[one.by_second].card.title)}"
        for one in told.opposed[:_MOST_EXAMPLES]
    )
    return [
        notice(
            f"<b>The benchmarks disagree</b> on {len(told.opposed):,} of "
            f"{count(told.n_pairs, 'pair')} of leading metrics that two of them order beyond their "
            f"95 % intervals: {examples}. What they measure of this skill differs: look at each by "
            "itself below before trusting the mean.",
            "warn",
        )
    ]


def remarks(choice: SkillsChoice) -> list[str]:
    """What could not be done, as messages."""
    return [notice(text(remark), "info", role="status") for remark in choice.remarks]


def _warnings(choice: SkillsChoice, found: Found) -> list[str]:
    weighty = [found.base.measured[name] for name, weight in found.weights.items() if weight]
    simulated = [one.card.title for one in weighty if one.card.simulated]
    said = []
    if simulated:
        which = (
            "all"
            if len(simulated) == len(weighty)
            else ", ".join(map(text, dict.fromkeys(simulated)))
        )
        said.append(
            f"<b>Simulated ratings are in this list ({which}).</b> They do not come from people; it "
            "shows how the page works, not how good a metric is."
        )
    inside = [
        name for name, why in (choice.why or {}).items()
        if "twice" in why and (choice.of_benchmarks or {}).get(name)
    ]  # fmt: skip
    said += [
        f"<b>{text(name)} counts twice:</b> {text((choice.why or {})[name])}. The intervals are too narrow."
        for name in inside
    ]
    return [notice(one, "warn") for one in said]


def _at_chance(choice: SkillsChoice, found: Found) -> str:
    """In place of all recommendations, where no ranked metric may be recommended."""
    where = "this skill" if len(choice.skills) == 1 else "these skills together"
    said = nobody(but_templates=any(one.above_chance for one in found.ranked))
    return (
        f'<div class="as-empty"><h2>{said} on {where}.</h2><p>So none is recommended. All values '
        "stand below.</p></div>"
    )


def _nobody(choice: SkillsChoice, found: Found) -> str:
    if not any(found.weights.values()):
        said = (
            "No benchmark of this skill has a weight."
            if found.weights
            else ("No benchmark orders metrics by this skill yet; what there is stands below.")
        )
        return f'<div class="as-empty"><h2>No list yet</h2><p>{said}</p></div>'
    return (
        '<div class="as-empty"><h2>No metric has every benchmark</h2><p>Ranks need metrics with all '
        f"benchmarks that have a weight for {text(choice.title.lower())}. Take a weight away, or see "
        "the values below.</p></div>"
    )
