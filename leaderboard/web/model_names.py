"""Functions that the templates of models call to name, link and say things."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.errata import Erratum, errata
from benchmarks.prompt_sets.reference import ReferenceTable
from leaderboard.publication.identities import shown_account
from leaderboard.publication.measure_names import skill_title
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.records import ModelCard
from leaderboard.text import MISSING, clean, count
from leaderboard.views.addresses import (
    board_address,
    metric_address,
    model_address,
    models_address,
)
from leaderboard.views.model_verdict import differs
from leaderboard.views.models import leaves
from leaderboard.web.model_tables import (
    dominance,
    p_value,
    parameters,
    signed,
    stability_tag,
    tags_of,
    whole_percent,
)

_SIZES = 3
_LONGEST_HINT = 300


def model_hint(entry: ModelEntry) -> str:
    """Submitter and description, on hover."""
    key = shown_account(entry.account)
    hint = f"{entry.title} by {entry.submitter}{f' ({key})' if key else ''}"
    return clean(f"{hint}: {entry.description}" if entry.description else hint)[:_LONGEST_HINT]


def signature(entry: ModelEntry) -> tuple[str, str]:
    """The name that it is signed with and its account; not both where they say the same."""
    key = shown_account(entry.account)
    return "" if key and entry.submitter == key.partition(":")[2] else entry.submitter, key


def taken(card: ModelCard) -> str:
    """How the image of a prompt and seed came about."""
    if card.selection == "first":
        return "first image"
    by = f" by {clean(card.selected_by)[:40]}" if card.selected_by else ""
    return f"best of {card.best_of or 'several'}{by}"


def images_said(entry: ModelEntry) -> str:
    """How many images there are, and of which sizes."""
    seen = entry.images
    sizes = sorted(seen.sizes.items(), key=lambda one: -one[1])
    found = ", ".join(size.replace("x", " × ") for size, _ in sizes[:_SIZES])
    more = f" and {count(len(sizes) - _SIZES, 'more size')}" if len(sizes) > _SIZES else ""
    return f"{seen.present:,}{f', {found}{more}' if found else ''}"


def fine_percent(share: float | None) -> str:
    """A share as per cent with two digits that matter, and never a power of ten."""
    if share is None:
        return MISSING
    of_hundred = 100 * share
    return f"{of_hundred:.0f}%" if of_hundred >= 10 else f"{of_hundred:.2g}%"


def errata_of(found: ReferenceTable) -> list[Erratum]:
    """The errata about a table of a paper."""
    return [one for one in errata() if one.id in found.errata]


NAMES: Mapping[str, Callable[..., Any]] = {
    "board_address": board_address,
    "differs": differs,
    "dominance": dominance,
    "errata_of": errata_of,
    "fine_percent": fine_percent,
    "images_said": images_said,
    "leaves": leaves,
    "metric_address": metric_address,
    "model_address": model_address,
    "model_hint": model_hint,
    "models_address": models_address,
    "p_value": p_value,
    "parameters": parameters,
    "percent": whole_percent,
    "signed": signed,
    "signature": signature,
    "skill_title": skill_title,
    "stability_tag": stability_tag,
    "tags_of": tags_of,
    "taken": taken,
}
"""What every template of models may use."""
