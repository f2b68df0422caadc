"""Protocol of GenAI-Bench: all images in one pool, against the mean of three ratings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pandas as pd

from benchmarks.families.card import FamilyCard
from benchmarks.families.rating import MEASURES, RatingAnswers, RatingBenchmark
from benchmarks.pooled import Estimate, PooledImages, Ties
from benchmarks.released.bundle import released_table
from benchmarks.rows import Measured, Row
from benchmarks.schema import MeasureInfo, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan

SOURCES = {
    "pairwise_accuracy": "Deutsch et al. 2023 (tie calibration); VQAScore and GenAI-Bench, no grouping",
    "krcc": "VQAScore and GenAI-Bench, no grouping",
    "pearson": "VQAScore and GenAI-Bench, no grouping (x 100)",
    "srcc": "as EvalMuse-40K, Table 2, reports it for GenAI-Bench",
}
"""Measure to where papers report it."""
_CLEANED = "cleaned"


@dataclass(frozen=True)
class AgreementPool(PooledImages):
    """Images whose pairs, once compared, hold Kendall's tau-b of every resample too."""

    def estimate(self, measure: str, ties: Ties, unit: float = 1.0) -> Estimate:
        """A measure of this pool; see `PooledImages.estimate`."""
        if measure == "krcc" and not self.undefined:
            return Estimate(self.value(measure), self.remark, self.drawn_pairs(0.0).tau_b)
        found = super().estimate(measure, ties, unit)
        if measure == "pairwise_accuracy" and ties == "calibrated" and not self.too_few:
            return replace(found, note=f"scores {found.note}")
        return found


class AgreementBenchmark(RatingBenchmark):
    """Agreement of scores with the mean ratings, by one gold that rows do not name."""

    infos: ClassVar[Mapping[str, MeasureInfo]] = {
        name: MEASURES[name].model_copy(update={"source": source})
        for name, source in SOURCES.items()
    }
    pools = AgreementPool

    def rows_of(self, row: Row, answers: RatingAnswers) -> Iterator[tuple[Row, Ties]]:
        """Every measure of a slice."""
        return super().rows_of(replace(row, facet=None), answers)


class GenAiBench(AgreementBenchmark):
    """Images of six models with three ratings each; which set, the card says."""

    def __init__(self, card: FamilyCard, home: Path) -> None:
        super().__init__(card, home)
        if self.name == "genai_1600":
            self.released = ("genai_1600/ratings.parquet", "genai_1600/tags.parquet")

    def measure(self, scores: ScoreTable, answers: RatingAnswers, plan: ResamplingPlan) -> Measured:
        """All measures, overall and by tag; overall again without ratings outside the scale."""
        [rated] = answers.facets.values()
        if rated.within is not None:
            answers = replace(answers, facets={**answers.facets, _CLEANED: rated.within})
        return super().measure(scores, answers, plan)

    def rows_of(self, row: Row, answers: RatingAnswers) -> Iterator[tuple[Row, Ties]]:
        """Every measure; of cleaned ratings overall alone, with calibrated ties."""
        for one, ties in super().rows_of(row, answers):
            if row.facet != _CLEANED:
                yield one, ties
            elif row.skill is None and ties == "calibrated":
                yield replace(one, variant=_CLEANED), ties

    def released_rows(self) -> pd.DataFrame:
        """Ratings and tags; the bundle has no prompts."""
        table, tags = map(released_table, self.released)
        of_prompt = tags.groupby("prompt_id")["tag"].agg(list)
        prompts = table["prompt_id"]
        return pd.DataFrame(
            {
                "pair": prompts + "/" + table["model"],
                "prompt": prompts,
                "text": "",
                "model": table["model"],
                "tag": [of_prompt.get(prompt, []) for prompt in prompts],
                "ratings": table.filter(regex="^rating_").to_numpy(float).tolist(),
            }
        )


_FOLDER = Path(__file__).parent
GENAI_527 = GenAiBench.read(_FOLDER / "card_527.toml")
GENAI_1600 = GenAiBench.read(_FOLDER / "card_1600.toml")
BENCHMARKS = (GENAI_527, GENAI_1600)
