"""The 1,060 prompts of DSG-1k: by where they come from, and by what is asked about them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pandas as pd

from benchmarks.prompt_sets.prompt_set import Drawing, PromptSet, SetPrompt, set_card
from benchmarks.sources.folder import DataFolder, data_row

QUESTIONS = "dsg_tifa160/dsg-1k-anns.csv"
SOURCES: Mapping[str, str] = MappingProxyType(
    {
        "tifa": "tifa",
        "stanford": "paragraph",
        "localized": "paragraph",
        "vrd": "relation",
        "countbench": "count",
        "diffusion": "real_user",
        "midjourney": "real_user",
        "posescript": "pose",
        "whoops": "defying",
        "drawtext": "text",
    }
)
"""Part of a released id to the category of its prompt, as the authors tell them apart."""

_COLUMNS = ("item_id", "text", "category_broad", "category_detailed")
_NO_DETAIL = "-"


def _prompts(folder: DataFolder) -> list[SetPrompt]:
    table = folder.read_table(QUESTIONS, _COLUMNS)
    _check_cells(folder, table)
    prompts = [
        SetPrompt(
            str(item_id),
            str(rows["text"].iloc[0]),
            _category(folder, str(item_id)),
            _skills(rows),
        )
        for item_id, rows in table.groupby("item_id", sort=False)
    ]
    known = _CARD.skills
    strange = next((s for one in prompts for s in one.skills if s not in known), None)
    if strange is not None:
        raise folder.malformed(QUESTIONS, f"has a question of the unknown category {strange!r}")
    return prompts


def _check_cells(folder: DataFolder, table: pd.DataFrame) -> None:
    empty = table.index[(table[["item_id", "text", "category_broad"]] == "").any(axis=1)]
    if len(empty):
        raise folder.malformed(
            QUESTIONS, f"has an empty item_id, text or category_broad ({data_row(empty[0])})"
        )
    texts = table.groupby("item_id", sort=False)["text"].nunique()
    if (texts > 1).any():
        raise folder.malformed(QUESTIONS, f"gives {texts.idxmax()!r} more than one text")


def _category(folder: DataFolder, item_id: str) -> str:
    for part, category in SOURCES.items():
        if part in item_id:
            return category
    raise folder.malformed(
        QUESTIONS, f"has item_id {item_id[:60]!r}; expected one that names {', '.join(SOURCES)}"
    )


def _skills(rows: pd.DataFrame) -> tuple[str, ...]:
    """Each broad category of the prompt's questions, and the detailed ones, in the card's order."""
    found: set[str] = set(rows["category_broad"])
    for broad, detailed in zip(rows["category_broad"], rows["category_detailed"], strict=True):
        if detailed != _NO_DETAIL:
            found.add(f"{broad}:{detailed}")
    order = {skill: place for place, skill in enumerate(_CARD.skills)}
    return tuple(sorted(found, key=lambda skill: (order.get(skill, len(order)), skill)))


_CARD = set_card("dsg_1k")
PROMPT_SETS = (PromptSet(_CARD, _prompts, Drawing(least_side=256)),)
