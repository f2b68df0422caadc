"""Protocol of the ranking set: rating of the image with the highest score, and agreement of all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from benchmarks.families.best_of import MEASURES, BestOfBenchmark, RatedGroups
from benchmarks.families.card import FamilyCard
from benchmarks.families.items import Items
from benchmarks.families.rating import RatingAnswers
from benchmarks.genai_bench.protocol import AgreementBenchmark
from benchmarks.rows import Measured, Row, concatenate
from benchmarks.schema import MeasureInfo, ScoreTable, Selector
from benchmarks.sources.folder import DataFolder
from benchmarks.statistics.resampling import ResamplingPlan


class GenAiRanking(BestOfBenchmark):
    """Nine images of each of 800 prompts by two models, all rated; the models are the splits."""

    infos: ClassVar[Mapping[str, MeasureInfo]] = {**MEASURES, **AgreementBenchmark.infos}
    family = "group"

    def __init__(self, card: FamilyCard, home: Path) -> None:
        super().__init__(card, home)
        update = {
            "headline": Selector(measure="pairwise_accuracy"),
            "measures": {name: card.measures[name] for name in AgreementBenchmark.infos},
            "evaluation": card.evaluation.model_copy(update={"slices": ("split",)}),
        }
        self.ratings = AgreementBenchmark(card.model_copy(update=update), home)

    def labelled(self, folder: DataFolder, items: Items) -> RatedGroups:
        """The ratings, and the groups, which go by the images' numbers."""
        numbers, size = items.rows["number"].to_numpy(), max(self.said.size)
        if (numbers != np.arange(len(numbers)) % size + 1).any():
            raise folder.malformed(
                self.asked_from[0], f"does not hold images 1 to {size} of each prompt and model"
            )
        return super().labelled(folder, items)

    def measure(self, scores: ScoreTable, answers: RatedGroups, plan: ResamplingPlan) -> Measured:
        """Choices by facet and variant, overall and by tag; overall also what GenAI-Bench reports."""
        choices = super().measure(scores, answers, plan)
        return concatenate((choices, self.ratings.measure(scores, self._rated(answers), plan)))

    def within_text(self, row: Row) -> bool:
        """Whether it is of a choice; agreement is of the images of all prompts."""
        return row.measure in MEASURES

    def _rated(self, answers: RatedGroups) -> RatingAnswers:
        facets = {self.said.gold: answers.rated}
        return RatingAnswers(answers.pair_ids, answers.clusters, answers.items, facets)

    def prompts(self, data: Path | None) -> pd.DataFrame:
        """The prompts, each of which is in both splits; see `Benchmark.prompts`."""
        return super().prompts(data).assign(split="")

    def cases(self, answers: RatedGroups, data: Path | None) -> pd.DataFrame:
        """The images of each prompt by each model, since a metric chooses among those of one."""
        found = self.ratings.cases(self._rated(answers), data)
        assert found is not None
        return found.assign(case_id=found["case_id"] + "/" + found["split"])


GENAI_RANKING = GenAiRanking.read(Path(__file__).parent / "card.toml")
BENCHMARKS = (GENAI_RANKING,)
