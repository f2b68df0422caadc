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
        prompts: `prompt_id` (str, a cluster id), `prompt` (str), `skill` (str, empty where the
            prompt has none), `sub_skill` (str); where the benchmark has splits also `split`
            (`s` or `r`), `source` (str, of `r`) and `reliable` (bool).
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

    def counts(self) -> dict[str, int]:
        """Images, prompts, models and ratings, and prompts by split, source and skill."""
        found = {
            "images": len(self.pairs),
            "prompts": len(self.prompts),
            "models": self.pairs["model"].nunique(),
            "raters": self.ratings["rater_id"].nunique(),
        }
        for template in TEMPLATES:
            found[f"{template}: ratings"] = int((self.ratings["template"] == template).sum())
        if "split" in self.prompts:
            found |= self._counts_of_splits()
        found |= _sizes(self.prompts["skill"], "prompts")
        return found

    def _counts_of_splits(self) -> dict[str, int]:
        found = {}
        for split, rows in self.prompts.groupby("split", sort=True):
            found[f"{split}: prompts"] = len(rows)
            found[f"{split}_rel: reliable prompts"] = int(rows["reliable"].sum())
        return found | _sizes(self.prompts["source"], "prompts of this source")


@dataclass(frozen=True)
class Gecko2kAnswers(GeckoAnswers):
    """`GeckoAnswers` of Gecko2K.

    Attributes:
        reliable_from: `released flag` or `ratings`: how the reliable prompts were found.
    """

    reliable_from: str = "released flag"

    def counts(self) -> dict[str, int]:
        """Those of `GeckoAnswers`, and the reliable prompts by how they were found."""
        found = {f"reliable prompts (from the {self.reliable_from})": 0}
        found[next(iter(found))] = int(self.prompts["reliable"].sum())
        return super().counts() | found


def _sizes(labels: pd.Series, what: str) -> dict[str, int]:
    sizes = labels[labels != ""].value_counts()
    return {f"{label}: {what}": int(sizes[label]) for label in sorted(sizes.index)}
