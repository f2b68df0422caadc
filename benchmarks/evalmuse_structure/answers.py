"""The answer side of the EvalMuse structure test."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from benchmarks.evalmuse_structure.labels import CATEGORIES
from benchmarks.schema import Answers


@dataclass(frozen=True)
class StructureAnswers(Answers):
    """Yes or no per question. The clusters are the prompts where they are known, else the images.

    Attributes:
        categories: questions of the accuracy test: `pair_id` (str), `cluster` (str), `category`
            (str: `animal`, `object` or `human`), `yes` (bool).
        problems: questions of the recall test, to all of which the answer is yes: `pair_id`,
            `cluster`, `skill` (str, e.g. `human:palm_deformed`). A pair may stand in both tables.
    """

    categories: pd.DataFrame
    problems: pd.DataFrame

    def counts(self) -> dict[str, int]:
        """Images, questions of both tests, and yes and no by category."""
        images = {pair.rsplit("|", 1)[0] for pair in self.pair_ids}
        counts = {
            "images": len(images),
            "clusters": len(self.clusters),
            "category questions": len(self.categories),
            "annotated problems": len(self.problems),
        }
        for key in CATEGORIES:
            of_category = self.categories[self.categories["category"] == key]
            counts[f"{key}: yes"] = int(of_category["yes"].sum())
            counts[f"{key}: no"] = int((~of_category["yes"]).sum())
        return counts
