"""Section of the first page: people's ratings of text-to-image models."""

from __future__ import annotations

from leaderboard.models.people import rated_sets
from leaderboard.models.reading import ModelReader
from leaderboard.pages.models.people_table import people_legend, people_table, people_verdict
from leaderboard.pages.shown.markup import section, text
from leaderboard.views.addresses import models_address
from leaderboard.views.models import PEOPLE_IDENT


def people_section(models: ModelReader | None) -> str:
    """The section of the first prompt set whose models people rated; empty where there is none.

    Args:
        models: knows the prompt sets and the folder of data; None: there are no prompt sets here.
    """
    rated = rated_sets(models) if models is not None else {}
    if models is None or not rated:
        return ""
    name, (board, *_) = next(iter(rated.items()))
    title = f"Models, rated by people: {models.prompt_sets[name].card.title}"
    aside = (
        f'<a href="{text(models_address(name))}#{PEOPLE_IDENT}">Tests and further prompt sets</a>'
    )
    body = f"{people_verdict(board)}{people_table(board)}{people_legend(board)}"
    return section(title, body, aside=aside, ident="rated-by-people")
