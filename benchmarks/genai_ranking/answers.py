"""The answer side of the ranking set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.genai_bench.answers import GenAiAnswers

IMAGES_PER_PROMPT = 9


@dataclass(frozen=True)
class RankingAnswers(GenAiAnswers):
    """Nine rated images of each prompt by each model, one after the other.

    `images` has a column `number` (int, 1..9) beside those of `GenAiAnswers`. Its rows go by
    prompt, then by model, then by number.
    """

    @property
    def models(self) -> tuple[str, ...]:
        """The models that made the images, in the benchmark's order."""
        return tuple(dict.fromkeys(self.images["model"]))

    def rows_of(self, model: str) -> NDArray[np.intp]:
        """Shape (P, 9): row of each image of one model, by prompt and number."""
        rows = np.flatnonzero(self.images["model"].to_numpy(object) == model)
        return rows.reshape(-1, IMAGES_PER_PROMPT)
