"""The bundled prompt set, of the prompts of `demo_gecko`: no files, and simulated models."""

from __future__ import annotations

from benchmarks.demo import gecko_split
from benchmarks.prompt_sets.prompt_set import Drawing, PromptSet, SetPrompt
from benchmarks.prompt_sets.set_cards import set_card
from benchmarks.sources.folder import DataFolder


def _prompts(folder: DataFolder) -> list[SetPrompt]:
    del folder
    return [
        SetPrompt(p.id, p.text, skills=(p.skill, f"{p.skill}:{p.sub_skill}"))
        for p in gecko_split.prompts()
    ]


PROMPT_SETS = (
    PromptSet(
        set_card("demo_prompts"),
        _prompts,
        Drawing(seeds=(1, 2), least_side=64, most_side=1024),
        rated_by="demo_gecko",
    ),
)
