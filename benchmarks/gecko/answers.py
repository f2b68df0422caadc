"""The answer side of Gecko and of any benchmark with its structure."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from benchmarks.schema import Answers

TEMPLATES: tuple[str, ...] = ("WL", "Likert", "DSGH", "SxS")
"""Annotation templates: word level, Likert, DSG answered by humans, side by side."""


@dataclass(frozen=True)
class GeckoAnswers(Answers):
    """Raw ratings in the documented file format. The clusters are the prompts.

    Attributes:
        prompts: `prompt_id` (str, a cluster id), `prompt` (str), `skill` (str), `sub_skill` (str).
        pairs: one row per image, in the benchmark's order: `pair_id` (`<prompt_id>/<model>`),
            `prompt_id`, `model` (str).
        ratings: one row per rated unit: `template` (one of TEMPLATES), `prompt_id`, `model`,
            `model_b` (str, SxS only, else empty), `rater_id` (str), `unit_index` (int),
            `unit_text` (word or question, may be empty), `value` (str: WL aligned |
            not_aligned | unsure; Likert 1..5 | unsure; DSGH yes | no | invalid | unsure;
            SxS a | b | unsure).
    """

    prompts: pd.DataFrame
    pairs: pd.DataFrame
    ratings: pd.DataFrame
