"""The released prompts of Gecko2K: Gecko(S) by skill, Gecko(R), and the reliable ones of each."""

from __future__ import annotations

from functools import partial
from typing import Literal

from benchmarks.gecko.load import PROMPTS, RELIABLE_FLAG, load_prompts
from benchmarks.gecko.protocol import CARD
from benchmarks.prompt_sets.prompt_set import Drawing, PromptSet, SetPrompt, card_beside
from benchmarks.sources.folder import DataFolder


def _prompts(folder: DataFolder, part: Literal["s", "r"], *, reliable: bool) -> list[SetPrompt]:
    table = load_prompts(folder)
    if reliable:
        if "reliable" not in table:
            raise folder.malformed(PROMPTS, f"has no column {RELIABLE_FLAG}")
        table = table[table["reliable"]]
    chosen = table[table["split"] == part]
    columns = ("prompt_id", "prompt", "skill", "sub_skill", "source")
    return [
        SetPrompt(prompt_id, text, source, (skill, f"{skill}:{sub_skill}") if skill else ())
        for prompt_id, text, skill, sub_skill, source in zip(
            *(chosen[name] for name in columns), strict=True
        )
    ]


def _set(part: Literal["s", "r"], *, reliable: bool) -> PromptSet:
    name = f"gecko_{part}{'_rel' if reliable else ''}"
    return PromptSet(
        card_beside(name, CARD, (PROMPTS,), skills=part == "s"),
        partial(_prompts, part=part, reliable=reliable),
        Drawing(least_side=256),
        rated_by="gecko",
    )


PROMPT_SETS = tuple(
    _set(part, reliable=reliable) for part in ("s", "r") for reliable in (False, True)
)
