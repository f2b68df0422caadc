"""The answer side of EvalMuse-40K and of any benchmark with its structure."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from benchmarks.schema import Answers


@dataclass(frozen=True)
class EvalMuseAnswers(Answers):
    """Averaged human labels. The clusters are the prompts.

    Attributes:
        images: one row per image, in the benchmark's order: `pair_id` (str), `prompt_id` (str,
            a cluster id), `prompt` (str), `split` (`real` or `synth`), `label` (float, mean
            overall rating 1..5).
        elements: one row per (image, element): `pair_id`, `element_id` (str), `skill` (str,
            normalised element type such as `counting`), `label` (float in 0..1, mean of the
            annotators' 0/1 labels).
    """

    images: pd.DataFrame
    elements: pd.DataFrame
