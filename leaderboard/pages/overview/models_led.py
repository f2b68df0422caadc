"""Leaders of the boards of text-to-image models, one card for each prompt set that has some."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.errors import SubmitterError
from leaderboard.models.board import model_board
from leaderboard.models.board_types import BoardQuery, ModelBoard, SkillBoard, Standing
from leaderboard.models.reading import ModelReader
from leaderboard.pages.shown.markup import badge, text
from leaderboard.publication.reader import View
from leaderboard.text import count, interval, number
from leaderboard.views.addresses import model_address, models_address


class ModelCards(NamedTuple):
    """The cards of prompt sets with models, as HTML; empty where there are none."""

    real: str
    simulated: str


NO_MODELS = ModelCards("", "")


def model_cards(view: View, models: ModelReader | None) -> ModelCards:
    """A card for each prompt set with models, those of simulated models apart.

    Args:
        view: the boards of metrics, by which metrics earn trust.
        models: reads the models; None: there are no prompt sets here.
    """
    if models is None:
        return NO_MODELS
    drawn: dict[str, int] = {}
    for entry in models.track().entries.values():
        drawn[entry.prompt_set] = drawn.get(entry.prompt_set, 0) + 1

    def cards(*, simulated: bool) -> str:
        found = "".join(
            _card(view, models, name, drawn[name])
            for name, one in models.prompt_sets.items()
            if name in drawn and one.card.simulated is simulated
        )
        return f'<div class="as-cards">{found}</div>' if found else ""

    return ModelCards(cards(simulated=False), cards(simulated=True))


def _card(view: View, models: ModelReader, name: str, n: int) -> str:
    card = models.prompt_sets[name].card
    link = text(models_address(name))
    simulated = badge("simulated models", "warn") if card.simulated else ""
    head = f'<header><h3><a href="{link}">{text(card.title)}</a></h3>{simulated}</header>'
    try:
        board = model_board(models, view, BoardQuery(name, skills=(None,)))
    except SubmitterError:  # its prompts are not on this machine
        body = f'<p class="as-muted">{count(n, "model")}</p>'
    else:
        body = _led(board, board.skills[None])
    return f'<article class="as-card">{head}{body}</article>'


def _led(board: ModelBoard, overall: SkillBoard) -> str:
    """The first model of a board, and who cannot be told from it."""
    ranked = [one for one in overall.standings.values() if one.rank_low is not None]
    n = count(len(overall.standings), "model")
    if not ranked or overall.note:
        said = text(overall.note or "No model has a rank.")
        return f'<p class="as-leader">{n}</p><p class="as-muted">{said}</p>'
    best, entry = ranked[0], board.entries[ranked[0].submission_id]
    tied = sum(one.rank_low == 1 for one in ranked) - 1
    standing = f"rank {_range(best)} of {n}"
    if tied:
        standing += f"; {count(tied, 'other')} may be first as well"
    judges = ", ".join(judge.title for judge in overall.trusted)
    return (
        f'<p class="as-leader"><a href="{text(model_address(entry.submission_id))}">'
        f"{text(entry.title)}</a></p>{_figure(best, overall)}"
        f'<p class="as-muted">{standing}; judged by {text(judges)}</p>'
    )


def _figure(best: Standing, overall: SkillBoard) -> str:
    mean = best.means.get(overall.lead) if overall.lead else None
    if mean is None:
        return ""
    return (
        f'<p class="as-figure"><b>{number(mean.value)}</b> '
        f'<span class="as-ci">{interval(mean.ci_low, mean.ci_high)}</span> '
        '<span class="as-muted">mean score</span></p>'
    )


def _range(standing: Standing) -> str:
    low, high = standing.rank_low, standing.rank_high
    return f"{low}" if low == high else f"{low}–{high}"
