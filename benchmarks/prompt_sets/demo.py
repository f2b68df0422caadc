"""The bundled prompt set, of the prompts of `demo_gecko`: no files, and simulated models."""

from __future__ import annotations

from pathlib import Path

from benchmarks.demo import gecko_split
from benchmarks.prompt_sets.prompt_set import MEASURES, Drawing, PromptSet, SetPrompt
from benchmarks.schema import Card


def _prompts(data: Path | None) -> list[SetPrompt]:
    del data
    return [
        SetPrompt(p.id, p.text, skills=(p.skill, f"{p.skill}:{p.sub_skill}"))
        for p in gecko_split.prompts()
    ]


PROMPT_SETS = (
    PromptSet(
        Card.read(Path(__file__).parent / "cards" / "demo_prompts.toml", MEASURES),
        _prompts,
        Drawing(seeds=(1, 2), least_side=64, most_side=1024),
        rated_by="demo_gecko",
    ),
)
