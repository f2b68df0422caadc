"""The prompts of CROC_hum, originals and contrasts, each text once."""

from __future__ import annotations

from benchmarks.croc.load import METADATA, load_prompts
from benchmarks.croc.protocol import CARD
from benchmarks.prompt_sets.prompt_set import (
    Drawing,
    PromptSet,
    SetPrompt,
    card_beside,
    set_prompts_of,
)
from benchmarks.sources.folder import DataFolder


def _prompts(folder: DataFolder) -> list[SetPrompt]:
    return list(set_prompts_of(load_prompts(folder)))


PROMPT_SETS = (
    PromptSet(
        card_beside("croc_hum_prompts", CARD, (METADATA,)), _prompts, Drawing(least_side=256)
    ),
)
