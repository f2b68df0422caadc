"""The 1,600 prompts of GenAI-Bench with their tags."""

from __future__ import annotations

from benchmarks.genai_bench.load import Release, load_prompts
from benchmarks.genai_bench.protocol import CARD_1600
from benchmarks.prompt_sets.prompt_set import (
    Drawing,
    PromptSet,
    SetPrompt,
    card_beside,
    set_prompts_of,
)
from benchmarks.sources.folder import DataFolder

_RELEASE = Release(CARD_1600.name)


def _prompts(folder: DataFolder) -> list[SetPrompt]:
    return list(set_prompts_of(load_prompts(folder, _RELEASE)))


PROMPT_SETS = (
    PromptSet(
        card_beside("genai_prompts", CARD_1600, (_RELEASE.ratings, _RELEASE.skills)),
        _prompts,
        Drawing(least_side=256),
        rated_by=CARD_1600.name,
    ),
)
