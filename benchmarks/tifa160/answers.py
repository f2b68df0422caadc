"""The answer side of TIFA160."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.schema import Answers

FloatArray = NDArray[np.float64]

GOLDS = ("dsg_likert", "human_avg")
"""The two golds, the one of the headline first."""


@dataclass(frozen=True)
class Tifa160Answers(Answers):
    """Ratings of whole images. The clusters are the prompts.

    Attributes:
        images: one row per image, in the benchmark's order, with columns `pair_id`, `prompt_id`,
            `model`, `source` (all str: the collection a prompt was taken from, e.g. `coco`) and
            one column per gold (float, 1..5): the mean rating of the image.
        prompts: one row per prompt, in the benchmark's order, with columns `prompt_id`, `prompt`,
            `source`.
        ratings: gold to the single ratings behind it, shape (images, raters), 1..5; NaN where an
            image has fewer ratings than others. A column is not one person.
    """

    images: pd.DataFrame
    prompts: pd.DataFrame
    ratings: Mapping[str, FloatArray]

    def counts(self) -> dict[str, int]:
        """Images, prompts (also by source) and ratings of each gold."""
        sources = self.prompts["source"].value_counts(sort=False)
        return {
            "images": len(self.images),
            "prompts": len(self.prompts),
            **{f"{source}: prompts": int(n) for source, n in sources.items()},
            **{
                f"{gold}: ratings": int(np.isfinite(table).sum())
                for gold, table in self.ratings.items()
            },
        }
