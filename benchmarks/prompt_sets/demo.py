"""The bundled prompt set: the prompts of `demo_gecko`, which simulated models have drawn."""

from __future__ import annotations

from benchmarks.demo.load import gecko_answers
from benchmarks.prompt_sets.prompt_set import Drawing, PromptSet, SetPrompt, set_card
from benchmarks.sources.folder import DataFolder


def _prompts(folder: DataFolder) -> list[SetPrompt]:
    del folder
    return [
        SetPrompt(prompt_id, text, skills=(skill, f"{skill}:{sub_skill}"))
        for prompt_id, text, skill, sub_skill in gecko_answers().prompts.itertuples(index=False)
    ]


PROMPT_SETS = (
    PromptSet(
        set_card("demo_prompts"),
        _prompts,
        Drawing(seeds=(1, 2), least_side=64, most_side=1024),
        rated_by="demo_gecko",
    ),
)
