"""A model's images: prompt by prompt, all of its seeds, with what one metric says of each."""

from __future__ import annotations

import math
from collections.abc import Sequence

from leaderboard.pages.models.forms import (
    asking_form,
    judge_field,
    select,
    skill_field,
    split_field,
    words_field,
)
from leaderboard.pages.models.names import judge_name
from leaderboard.pages.models.tiles import leaves, score_said, skill_badges, tiles
from leaderboard.pages.shown.markup import section, text
from leaderboard.publication.measure_names import skill_title
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.text import count
from leaderboard.views.addresses import prompt_address
from leaderboard.views.models import PER_PAGE, Choice, Drawn, ModelQuery

_ORDERS = [
    ("Lowest score first", "worst"),
    ("Highest score first", "best"),
    ("As in the set", "set"),
]


def ordered(drawn: Sequence[Drawn], query: ModelQuery) -> list[int]:
    """Places of the prompts in the order of a query; those without a score come last."""
    places = list(range(len(drawn)))
    if query.order == "set":
        return places
    sign = 1.0 if query.order == "worst" else -1.0
    means = [one.mean for one in drawn]
    return sorted(
        places, key=lambda at: sign * means[at] if not math.isnan(means[at]) else math.inf
    )


def images_section(
    entry: ModelEntry, choice: Choice, query: ModelQuery, judge: str, drawn: Sequence[Drawn]
) -> str:
    """A page of the prompts with their images.

    Args:
        entry: the model.
        choice: what is looked at.
        query: of the page.
        judge: entry id of the metric whose scores are shown; empty where there is none.
        drawn: what it drew of the prompts that the filters keep, in the order of the set.
    """
    fields = [*skill_field(choice), *split_field(choice), words_field(choice.query.words)]
    fields += [*judge_field(choice, "", judge), select("Order", "order", _ORDERS, query.order)]
    form = asking_form("model", "Choose images", fields, {"id": entry.submission_id})
    kept = choice.places
    if not kept:
        why = (
            "No prompt is kept by these filters."
            if choice.prompts
            else "The prompts are not on this machine."
        )
        return section("Images", f'{form}<div class="as-empty"><p>{why}</p></div>', ident="images")
    order = ordered(drawn, query)
    pages = max(1, -(-len(order) // PER_PAGE))
    number = min(query.page, pages)
    shown = order[(number - 1) * PER_PAGE : number * PER_PAGE]
    cards = "".join(_card(choice, kept[at], judge, drawn[at]) for at in shown)
    said = (
        f"<p>Scores by {judge_name(judge, choice.judges.get(judge, judge))}, higher is better.</p>"
        if judge
        else "<p>No metric has scored these images so far.</p>"
    )
    return section(
        "Images",
        f'{form}{said}<div class="as-cases as-by-model">{cards}</div>{_pager(query, number, pages)}',
        aside=f"<span>{count(len(kept), 'prompt')}</span>",
        ident="images",
    )


def _card(choice: Choice, place: int, judge: str, drawn: Drawn) -> str:
    prompt = choice.prompts[place]
    address = prompt_address(choice.card.name, prompt.prompt_id, judge=judge,
                             skill=choice.query.skill)  # fmt: skip
    skills = skill_badges(skill_title(choice.card, one) for one in leaves(prompt.skills))
    mean = "" if math.isnan(drawn.mean) else f"mean {score_said(drawn.mean)}"
    heading = (
        f'<header class="as-case-head"><h3><a href="{text(address)}">'
        f"{text(prompt.prompt_id, limit=60)}</a></h3>"
        f'<span class="as-case-skills">{skills} {mean}</span></header>'
        f'<p class="as-prompt">{text(prompt.text, limit=600)}</p>'
    )
    return f'<article class="as-case">{tiles(drawn, prompt, heading=heading)}</article>'


def _pager(query: ModelQuery, number: int, pages: int) -> str:
    if pages == 1:
        return ""

    def step(to: int, label: str, rel: str) -> str:
        if not 1 <= to <= pages:
            return ""
        address = text(f"{query.to_link(page=to)}#images")
        return f'<a class="as-button" rel="{rel}" href="{address}">{label}</a>'

    return (
        f'<nav class="as-pager" aria-label="Pages">{step(number - 1, "Previous", "prev")}'
        f"<span>Page {number:,} of {pages:,}</span>{step(number + 1, 'Next', 'next')}</nav>"
    )
