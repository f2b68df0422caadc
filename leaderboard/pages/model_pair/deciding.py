"""The prompts that decide between two models, side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from benchmarks.prompt_sets.prompt_set import SetPrompt
from leaderboard.models.board_types import PromptDifference
from leaderboard.pages.model_pair.tests_table import signed
from leaderboard.pages.models.names import model_name, plain_name
from leaderboard.pages.models.tiles import score_said, tiles
from leaderboard.pages.shown.markup import section, text
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.views.addresses import prompt_address
from leaderboard.views.models import Choice, Drawn

SHOWN = 4
"""Prompts that are shown for each of the two."""
Images = Mapping[tuple[str, str], Drawn]
"""Submission id and prompt id to what the model drew."""


def telling(
    found: Sequence[PromptDifference],
) -> tuple[list[PromptDifference], list[PromptDifference]]:
    """The prompts that say most for the first, and those that say most for the second.

    Args:
        found: those that say most for the first model first; prompts that one lacks are passed over.
    """
    known = [one for one in found if math.isfinite(one.first) and math.isfinite(one.second)]
    first = [one for one in known if one.first > one.second][:SHOWN]
    second = [one for one in reversed(known) if one.second > one.first][:SHOWN]
    return first, second


def deciding_section(
    pair: tuple[ModelEntry, ModelEntry],
    sides: tuple[Sequence[PromptDifference], Sequence[PromptDifference]],
    choice: Choice,
    judge: tuple[str, str],
    images: Images,
) -> str:
    """Images of both models on the prompts that say most for each.

    Args:
        pair: the models.
        sides: of `telling`.
        choice: what is looked at.
        judge: entry id and name of the metric.
        images: what both drew of these prompts.
    """
    prompts = {one.prompt_id: one for one in choice.prompts}

    def card(one: PromptDifference) -> str:
        prompt = prompts[one.prompt_id]
        drawn = "".join(
            tiles(found, prompt, heading=_who(entry, score))
            for entry, score in zip(pair, (one.first, one.second), strict=True)
            if (found := images.get((entry.submission_id, prompt.prompt_id))) is not None
        )
        return f'<article class="as-case">{_head(one, prompt, choice, judge[0])}{drawn}</article>'

    parts = []
    for entry, of in zip(pair, sides, strict=True):
        cards = "".join(card(one) for one in of if one.prompt_id in prompts)
        none = '<div class="as-empty"><p>No prompt on which it has the higher score.</p></div>'
        shown = f'<div class="as-cases as-by-model">{cards}</div>' if cards else none
        parts.append(f"<h3>For {model_name(entry)}</h3>{shown}")
    return section(
        "The prompts that decide",
        f"<p>By {text(judge[1], limit=60)}: the prompts with the greatest difference of scores, "
        f"{SHOWN} for each of the two.</p>{''.join(parts)}",
        ident="deciding",
    )


def _head(one: PromptDifference, prompt: SetPrompt, choice: Choice, judge: str) -> str:
    skill = choice.query.skill
    address = prompt_address(choice.card.name, prompt.prompt_id, judge=judge, skill=skill)
    # Of what speaks against the whole difference a share of it would be negative.
    share = f", {100 * one.share:.0f} % of the whole difference" if one.share > 0 else ""
    return (
        f'<header class="as-case-head"><h4><a href="{text(address)}">'
        f"{text(prompt.prompt_id, limit=60)}</a></h4>"
        f'<span class="as-muted">{signed(one.first - one.second)}{share}</span></header>'
        f'<p class="as-prompt">{text(prompt.text, limit=600)}</p>'
    )


def _who(entry: ModelEntry, score: float) -> str:
    return f'<p class="as-who-drew">{text(plain_name(entry, 50))}: {score_said(score)}</p>'
