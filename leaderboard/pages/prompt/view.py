"""All HTML of the page of one prompt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from urllib.parse import quote

from benchmarks.prompt_sets.prompt_set import SetPrompt
from leaderboard.pages.models.forms import (
    asking_form,
    judge_field,
    skill_field,
    split_field,
    words_field,
)
from leaderboard.pages.models.names import badges, judge_name, model_name
from leaderboard.pages.models.tiles import leaves, score_said, skill_badges, tiles
from leaderboard.pages.models.view import SIMULATED
from leaderboard.pages.shown.downloads import download_links
from leaderboard.pages.shown.markup import notice, page, section, text
from leaderboard.publication.measure_names import skill_title
from leaderboard.text import count
from leaderboard.views.addresses import with_state
from leaderboard.views.models import Choice, Drawn


def prompt_view(
    choice: Choice, place: int | None, judge: str, drawn: Sequence[Drawn], remarks: Sequence[str]
) -> str:
    """The page.

    Args:
        choice: what is looked at; its filters say what comes before and after.
        place: of the prompt in its set; None where no prompt is kept by the filters.
        judge: entry id of the metric whose scores are shown; empty where there is none.
        drawn: what each model drew of it, in any order.
        remarks: what was asked for and could not be shown.
    """
    card = choice.card
    title = "A prompt" if place is None else f"Prompt of {card.title}"
    parts = [f"<h1>{text(title)}</h1>", _intro(choice)]
    parts += [notice(SIMULATED, "warn")] if card.simulated else []
    parts += [notice(text(one), "info", role="status") for one in (*choice.remarks, *remarks)]
    fields = [*skill_field(choice), *split_field(choice), words_field(choice.query.words)]
    fields += judge_field(choice, "", judge)
    keeps = {"set": card.name, "models": ",".join(choice.query.models)}
    if place is not None:
        keeps["id"] = choice.prompts[place].prompt_id
    parts.append(asking_form("prompt", "Choose prompts", fields, keeps))
    if place is None:
        return page([*parts, _nothing(choice)])
    prompt = choice.prompts[place]
    return page(
        [
            *parts,
            _steps(choice, place),
            _prompt(prompt, choice),
            _images(choice, prompt, judge, drawn),
        ]
    )


def by_score(drawn: Sequence[Drawn]) -> list[Drawn]:
    """The best mean score first, models without any last."""
    return sorted(drawn, key=lambda one: (math.isnan(one.mean), -_or_zero(one.mean)))


def _or_zero(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def _intro(choice: Choice) -> str:
    back = text(choice.query.to_link())
    return (
        '<p class="as-intro">What every model drew of it, and what a metric says of each image. '
        f'<a href="{back}">The board of models</a></p>'
    )


def _nothing(choice: Choice) -> str:
    if not choice.prompts:
        why = f"The files of {text(choice.card.title)} are not on this machine."
    else:
        why = "No prompt is kept by these filters."
    back = text(choice.query.to_link("prompt", words="", split="", skill=""))
    return (
        f'<div class="as-empty"><h2>No prompt to show</h2><p>{why}</p><p><a class="as-button" '
        f'href="{back}">Remove the filters</a></p></div>'
    )


def prompt_link(choice: Choice, prompt_id: str) -> str:
    """The address of another prompt within the same view; not escaped for HTML yet."""
    return with_state(choice.query.to_link("prompt"), id=prompt_id)


def _steps(choice: Choice, place: int) -> str:
    """To the prompt before and after among those that the filters keep."""
    places = choice.places
    at = places.index(place) if place in places else None

    def step(to: int, label: str, rel: str) -> str:
        if at is None or not 0 <= to < len(places):
            return ""
        address = text(prompt_link(choice, choice.prompts[places[to]].prompt_id))
        return f'<a class="as-button" rel="{rel}" href="{address}">{label}</a>'

    if at is None:
        return notice("This prompt is not among those that the filters keep.", "info")
    return (
        f'<nav class="as-pager as-pager-top" aria-label="Prompts">{step(at - 1, "Previous", "prev")}'
        f"<span>Prompt {at + 1:,} of {len(places):,}</span>{step(at + 1, 'Next', 'next')}</nav>"
    )


def _prompt(prompt: SetPrompt, choice: Choice) -> str:
    card = choice.card
    skills = skill_badges(skill_title(card, one) for one in leaves(prompt.skills))
    split = (
        f'<span class="as-badge as-info">{text(card.splits.get(prompt.split, prompt.split))}</span>'
        if prompt.split
        else ""
    )
    elements = "".join(
        f"<li>{text(one.text, limit=200)}{_element_skill(one.skill, choice)}</li>"
        for one in prompt.elements
    )
    listed = f'<ul class="as-elements" aria-label="Elements">{elements}</ul>' if elements else ""
    return (
        f'<section class="as-case" aria-label="The prompt"><header class="as-case-head"><h2>'
        f"{text(prompt.prompt_id, limit=80)}</h2>"
        f'<span class="as-case-skills">{split}{skills}</span></header>'
        f'<p class="as-prompt">{text(prompt.text, limit=4000)}</p>{listed}</section>'
    )


def _element_skill(skill: str, choice: Choice) -> str:
    said = text(skill_title(choice.card, skill), limit=40)
    return f' <span class="as-muted">({said})</span>' if skill else ""


def _images(choice: Choice, prompt: SetPrompt, judge: str, drawn: Sequence[Drawn]) -> str:
    if not drawn:
        return (
            f'<div class="as-empty"><p>No model has drawn {text(choice.card.title)} yet.</p></div>'
        )
    cards = "".join(
        f'<article class="as-case">'
        f"{tiles(one, prompt, heading=_heading(one, choice, judge, place))}</article>"
        for place, one in enumerate(by_score(drawn), 1)
    )
    if judge:
        named = judge_name(judge, choice.judges.get(judge, judge))
        said = f"<p>Scores by {named}, higher is better; the highest mean first.</p>"
    else:
        said = "<p>No metric has scored these images so far.</p>"
    data = download_links(choice.query.to_data(f"prompts/{quote(prompt.prompt_id, safe='')}", judge=judge,
                          skill="", split="", words="", seed=""))  # fmt: skip
    return section(
        "Images", f'{said}<div class="as-cases as-by-model">{cards}</div>',
        aside=f"<span>{count(len(drawn), 'model')}</span>{data}",
    )  # fmt: skip


def _heading(one: Drawn, choice: Choice, judge: str, place: int) -> str:
    mean = "" if math.isnan(one.mean) else f"mean {score_said(one.mean)}"
    return (
        f'<header class="as-case-head"><h3 class="as-named"><span class="as-muted">{place}</span> '
        f"{model_name(one.entry, skill=choice.query.skill, judge=judge)}</h3>"
        f'<span class="as-case-skills">{badges(one.entry)} {mean}</span></header>'
    )
