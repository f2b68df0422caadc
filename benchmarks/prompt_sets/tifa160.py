"""The 160 prompts of TIFA160; their skill is the collection they were taken from."""

from __future__ import annotations

from benchmarks.prompt_sets.prompt_set import Drawing, PromptSet, SetPrompt, card_beside
from benchmarks.sources.folder import DataFolder
from benchmarks.tifa160.load import HUMAN, load_prompts
from benchmarks.tifa160.protocol import CARD


def _prompts(folder: DataFolder) -> list[SetPrompt]:
    table = load_prompts(folder)
    columns = (table[name] for name in ("prompt_id", "prompt", "source"))
    return [
        SetPrompt(prompt_id, text, skills=(source,))
        for prompt_id, text, source in zip(*columns, strict=True)
    ]


PROMPT_SETS = (
    PromptSet(
        card_beside("tifa160_prompts", CARD, (HUMAN,)),
        _prompts,
        Drawing(least_side=256),
        rated_by=CARD.name,
    ),
)
