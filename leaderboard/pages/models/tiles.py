"""Tiles of generations of a prompt, with the score of one metric."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from benchmarks.prompt_sets.prompt_set import SetPrompt
from leaderboard.pages.models.names import plain_name
from leaderboard.pages.shown.markup import text
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.text import number
from leaderboard.views.addresses import picture_address
from leaderboard.views.models import Drawn

MOST_SEEDS = 16
"""Images of one model and prompt that are shown."""


def tiles(drawn: Drawn, prompt: SetPrompt, *, heading: str = "") -> str:
    """The images of one model and prompt, by seed.

    Args:
        drawn: what it drew.
        prompt: of which prompt.
        heading: above them, as HTML.
    """
    shown = list(zip(drawn.seeds, drawn.scores, strict=True))[:MOST_SEEDS]
    cells = "".join(_tile(drawn.entry, prompt, seed, score) for seed, score in shown)
    left = len(drawn.seeds) - len(shown)
    more = f'<p class="as-muted">{left:,} more seeds not shown.</p>' if left > 0 else ""
    return f'{heading}<ul class="as-tiles as-drawn">{cells}</ul>{more}'


def score_said(score: float) -> str:
    """A score, or that there is none."""
    if math.isnan(score):
        return '<span class="as-badge as-warn">no score</span>'
    return f"<b>{number(score)}</b>"


def skill_badges(titles: Iterable[str]) -> str:
    """Skills of a prompt."""
    return "".join(f'<span class="as-badge">{text(title, limit=60)}</span>' for title in titles)


def leaves(skills: Sequence[str]) -> list[str]:
    """Without a skill whose sub-skill is named too."""
    return [one for one in skills if not any(other.startswith(f"{one}:") for other in skills)]


def _tile(entry: ModelEntry, prompt: SetPrompt, seed: int, score: float) -> str:
    alt = f"{plain_name(entry, 40)}, seed {seed}: {prompt.text}"
    if entry.pictures:
        address = picture_address(entry.submission_id, prompt.prompt_id, seed)
        seen = (
            f'<img src="{text(address)}" alt="{text(alt, limit=300)}" loading="lazy" '
            'decoding="async" width="160" height="160">'
        )
    else:
        seen = (
            f'<div class="as-no-picture" role="img" aria-label="{text(alt, limit=300)}">'
            "<span>not published</span></div>"
        )
    return (
        f'<li class="as-tile"><div class="as-picture">{seen}</div><p class="as-under">'
        f"<span>seed {seed}</span> {score_said(score)}</p></li>"
    )
