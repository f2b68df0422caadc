"""Prompt sets that a card says whole: files, the table they make, judge and images asked for.

A set is one file in `declared/`, named for it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from benchmarks.families.card import Table
from benchmarks.families.tables import read_table
from benchmarks.prompt_sets.prompt_set import MEASURES, Drawing, Judge, PromptSet, SetPrompt
from benchmarks.schema import Card
from benchmarks.sources.folder import DataFolder, data_row

FOLDER = Path(__file__).parent / "declared"
_NEEDED = frozenset({"prompt_id", "text"})
_KNOWN = _NEEDED | {"split", "skill", "sub_skill"}


class SetCard(Card):
    """Card of a prompt set with the table that its prompts are read from."""

    table: Table
    """Its columns: `prompt_id` and `text`; perhaps `split`, `skill` (a key or a list of keys, where
    `a:b` is a sub-skill of `a`) and `sub_skill` (which goes with the only skill of its row). Rows of
    one id are one prompt with the skills of all of them."""
    drawing: Drawing = Field(default_factory=Drawing)
    judge: Judge | None = None

    @model_validator(mode="after")
    def _has_the_columns(self) -> Self:
        given = self.table.columns.keys()
        if not _NEEDED <= given <= _KNOWN:
            raise ValueError(
                f"the table has the columns {', '.join(given)}; expected prompt_id and text, and "
                "perhaps split, skill and sub_skill"
            )
        undeclared = [path for path in self.table.paths if path not in self.paths]
        if undeclared:
            raise ValueError(f"the table reads {', '.join(undeclared)}, which it does not declare")
        return self

    @property
    def paths(self) -> tuple[str, ...]:
        """The declared files, in order."""
        return tuple(file.path for file in self.files)


def declared_set(card: SetCard) -> PromptSet:
    """The prompt set of a card."""
    return PromptSet(card, partial(_prompts, card=card), card.drawing, judge=card.judge)


def _prompts(folder: DataFolder, card: SetCard) -> list[SetPrompt]:
    """The prompts in the order of their first rows, with their skills in the order of the card."""
    found: dict[str, SetPrompt] = {}
    skills: dict[str, set[str]] = {}
    for path in card.table.paths:
        rows, _ = read_table(folder, card.table.model_copy(update={"path": path}))
        for place, row in enumerate(rows.to_dict("records")):
            one = SetPrompt(row["prompt_id"], row["text"], row.get("split", ""))
            own = _skills(row)
            strange = [("skill", key) for key in own if key not in card.skills]
            strange += [("split", one.split)] if one.split and one.split not in card.splits else []
            if strange:
                what, key = strange[0]
                where = data_row(place)
                raise folder.malformed(
                    path, f"has the {what} {key!r} ({where}), which the card does not name"
                )
            if found.setdefault(one.prompt_id, one) != one:
                raise folder.malformed(
                    path,
                    f"gives {one.prompt_id!r} another text or split than before ({data_row(place)})",
                )
            skills.setdefault(one.prompt_id, set()).update(own)
    return [
        replace(one, skills=tuple(key for key in card.skills if key in skills[name]))
        for name, one in found.items()
    ]


def _skills(row: Mapping[Hashable, object]) -> list[str]:
    """Skills and sub-skills of a row; a sub-skill brings its skill."""
    given, below = row.get("skill"), row.get("sub_skill")
    if isinstance(given, str) and isinstance(below, str) and below:
        given = f"{given}:{below}"
    keys = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    return [part for key in keys for part in dict.fromkeys((key.partition(":")[0], key))]


PROMPT_SETS = tuple(
    declared_set(SetCard.read(path, MEASURES)) for path in sorted(FOLDER.glob("*.toml"))
)
