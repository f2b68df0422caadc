"""Protocol of TIFA160: ratings of all images in one pool, by two golds.

Hu et al. 2023 (TIFA), Cho et al. 2024 (DSG), Lin et al. 2024 (VQAScore) and Han et al. 2024
(EvalMuse-40K) report different pairs of a measure and a gold; every pair is given. Spearman is also
given for the images of each source of prompts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pandas as pd

from benchmarks.families.rating import MEASURES, RatingAnswers, RatingBenchmark
from benchmarks.pooled import Ties
from benchmarks.released.bundle import released_table
from benchmarks.rows import Row
from benchmarks.schema import MeasureInfo

SOURCES = {
    "srcc": "DSG, correlation with Likert ratings on TIFA160",
    "krcc": "TIFA, correlation with human judgement, column Kendall; DSG",
    "pearson": "TIFA, correlation with human judgement, column Spearman; VQAScore (x 100)",
    "plcc": "EvalMuse-40K, results on other benchmarks",
    "pairwise_accuracy": "VQAScore, with the tie calibration of Deutsch et al. 2023",
}
"""Measure to where papers report it."""
_OURS = frozenset({("plcc", "dsg_likert"), ("pairwise_accuracy", "human_avg")})
"""Pairs of a measure and a gold that no paper reports."""
_RATINGS = "tifa160/ratings.parquet"


class Tifa160(RatingBenchmark):
    """TIFA160: 800 images, rated for TIFA and again for DSG."""

    infos: ClassVar[Mapping[str, MeasureInfo]] = {
        name: MEASURES[name].model_copy(update={"source": source})
        for name, source in SOURCES.items()
    }
    released = (_RATINGS,)

    def rows_of(self, row: Row, answers: RatingAnswers) -> Iterator[tuple[Row, Ties]]:
        """Every measure of all images; of a source Spearman alone."""
        for one, ties in super().rows_of(replace(row, split="all"), answers):
            if row.skill is None or one.measure == "srcc":
                ours = row.skill is not None or (one.measure, one.facet) in _OURS
                yield replace(one, variant="assay" if ours else "paper"), ties

    def released_rows(self) -> pd.DataFrame:
        """Both sets of ratings; the bundle has no prompts."""
        table = released_table(_RATINGS)
        prompts = table["prompt_id"]
        named = zip(table["pair_id"], prompts, strict=True)
        return pd.DataFrame(
            {
                "pair": table["pair_id"],
                "prompt": prompts,
                "text": "",
                "model": [pair.removeprefix(f"{prompt}_") for pair, prompt in named],
                "source": prompts.str.split("_").str[0],
            }
            | {
                gold: table.filter(regex=f"^{gold}_").to_numpy(float).tolist()
                for gold in self.card.gold
            }
        )


TIFA160 = Tifa160.read(Path(__file__).parent / "card.toml")
HUMAN, LIKERT = TIFA160.card.paths
IMAGES = "tifa160/images"
MODEL_NAMES = TIFA160.card.tables[1].columns["model"].map
"""Names of the models in the DSG files to those in the TIFA file."""
BENCHMARKS = (TIFA160,)
