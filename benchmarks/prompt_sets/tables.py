"""Prompts of a benchmark of metrics, as the prompts of a set."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from benchmarks.prompt_sets.prompt_set import SetPrompt


def set_prompts_of(table: pd.DataFrame) -> Iterator[SetPrompt]:
    """One prompt for each row.

    Args:
        table: columns `prompt_id`, `prompt`, `split`, `skills` (joined by `;`), as
            `Benchmark.prompts` gives them.
    """
    columns = (table[name].astype(str) for name in ("prompt_id", "prompt", "split", "skills"))
    for prompt_id, text, split, skills in zip(*columns, strict=True):
        yield SetPrompt(prompt_id, text, split, tuple(filter(None, skills.split(";"))))
