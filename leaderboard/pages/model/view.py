"""All HTML of the page of one model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from leaderboard.models.board_types import ModelBoard
from leaderboard.pages.model.facts import again_section, card_section, shared_section
from leaderboard.pages.model.means import means_section
from leaderboard.pages.models.names import badges, model_name
from leaderboard.pages.models.view import SIMULATED
from leaderboard.pages.shown.markup import notice, page, paragraphs, submitted, text
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.views.addresses import model_pair_address, models_address, seeds_address
from leaderboard.views.models import Choice

MOST_LISTED = 200


def model_view(
    entry: ModelEntry,
    choice: Choice,
    board: ModelBoard | None,
    known: Mapping[str, ModelEntry],
    further: Iterable[str] = (),
) -> str:
    """The page.

    Args:
        entry: the model.
        choice: its prompt set, and what of it is looked at.
        board: of the whole set; None where there is none.
        known: models on the boards, by submission id.
        further: sections after the means, as HTML.
    """
    card = choice.card
    others = [one for one in choice.entries if one.submission_id != entry.submission_id]
    parts = [f"<h1>{submitted(entry.title, limit=120)}</h1>", _intro(entry, choice, others)]
    parts += [notice(SIMULATED, "warn")] if card.simulated else []
    parts += [notice(text(remark), "info", role="status") for remark in choice.remarks]
    if entry not in choice.entries:
        parts.append(notice(
            f"It drew the prompts of {text(card.title)} as they were at revision "
            f"{text(entry.images.revision)}; those of now ({text(card.revision)}) may be others, so "
            "it stands on no board.", "warn",
        ))  # fmt: skip
    if marks := badges(entry):
        parts.append(f'<p class="as-badges">{marks}</p>')
    if entry.description:
        parts.append(f'<div class="as-described">{paragraphs(entry.description[:4000])}</div>')
    parts.append(shared_section(entry, known))
    parts += [card_section(entry), means_section(entry.submission_id, board), *further]
    parts += [again_section(entry, card)]
    return page(parts)


def absent(submission_id: str, entries: Iterable[ModelEntry], *, known: bool) -> str:
    """In place of a model that is not there: which there are.

    Args:
        submission_id: that was asked for; empty: none was.
        entries: of the models on the boards.
        known: whether it is on the boards, but its prompt set is not here.
    """
    parts = ["<h1>Model</h1>"]
    if known:
        parts.append(notice("The prompt set of this model is not known here.", "info"))
    elif submission_id:
        parts.append(notice(f"There is no model “{text(submission_id, limit=60)}” here.", "info"))
    listed = "".join(
        f"<li>{model_name(one)} <span class=as-muted>{text(one.prompt_set)}</span></li>"
        for one, _ in zip(entries, range(MOST_LISTED), strict=False)
    )
    if listed:
        parts.append(f'<p>Models on the boards:</p><ul class="as-matches">{listed}</ul>')
    else:
        parts.append(
            '<div class="as-empty"><h2>No models yet</h2><p>Nobody has submitted images so far.'
            '</p><p><a class="as-button as-strong" href="./models">The board of models</a></p></div>'
        )
    return page(parts)


def _intro(entry: ModelEntry, choice: Choice, others: list[ModelEntry]) -> str:
    name = choice.card.name
    links = [
        f'<a href="{text(models_address(name))}">Board of {text(choice.card.title)}</a>',
        f'<a href="{text(seeds_address(name))}">Seeds</a>',
    ]
    if others and entry in choice.entries:
        pair = model_pair_address(name, entry.submission_id, others[0].submission_id)
        links.append(f'<a href="{text(pair)}">Compare with another model</a>')
    return (
        f'<p class="as-intro">A text-to-image model on the prompts of {text(choice.card.title)}.'
        f"</p><p>{' · '.join(filter(None, links))}</p>"
    )
