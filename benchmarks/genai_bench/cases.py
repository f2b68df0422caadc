"""Cases of GenAI-Bench: a prompt with its images and their mean ratings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from benchmarks.cases import image_cases, of_five
from benchmarks.genai_bench.load import GenAiAnswers


def cases(answers: GenAiAnswers, texts: Mapping[Any, str]) -> pd.DataFrame:
    """The images of each prompt."""
    return image_cases(
        answers.images["pair_id"].tolist(),
        answers.images["prompt_id"].tolist(),
        answers.labels,
        of_five(answers.labels),
        texts=texts,
        skills=tags_of(answers),
    )


def tags_of(answers: GenAiAnswers) -> dict[str, list[str]]:
    """Prompt id to its tags, in the order of the benchmark."""
    found: dict[str, list[str]] = {}
    for tag, prompts in answers.skills.items():
        for prompt in prompts:
            found.setdefault(prompt, []).append(tag)
    return found
