"""Section of the first page: people's ratings of text-to-image models."""

from __future__ import annotations

from leaderboard.models.people import rated_sets
from leaderboard.models.reading import ModelReader
from leaderboard.web.model_place import people_html


def people_section(models: ModelReader | None) -> str:
    """The section of the first prompt set whose models people rated; empty where there is none.

    Args:
        models: knows the prompt sets and the folder of data; None: there are no prompt sets here.
    """
    rated = rated_sets(models) if models is not None else {}
    return people_html(next(iter(rated)), models) if models is not None and rated else ""
