"""The ranking set of GenAI-Bench in the registry."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from benchmarks.genai_ranking.answers import RankingAnswers
from benchmarks.genai_ranking.cases import cases
from benchmarks.genai_ranking.load import (
    RATINGS,
    has_images,
    load_answers,
    load_prompts,
    load_questions,
)
from benchmarks.genai_ranking.protocol import MEASURES, chance, measure
from benchmarks.rows import Measured
from benchmarks.schema import Benchmark, Card, Questions, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan

CARD = Card.read(Path(__file__).parent / "card.toml", MEASURES)


class GenAiRanking(Benchmark):
    """Nine images of each of 800 prompts by two models, all rated."""

    def __init__(self, card: Card = CARD) -> None:
        self.card = card

    def answers(self, data: Path | None) -> RankingAnswers:
        """Read ratings and tags; see `load_answers`."""
        return load_answers(self.folder(data))

    def questions(self, data: Path | None) -> Questions:
        """Read the images from the models' archives or unpacked folders; see `load_questions`."""
        return load_questions(self.folder(data))

    def has_questions(self, data: Path | None) -> bool:
        """Whether prompts and images are there; that each image is, `questions` checks."""
        folder = self.folder(data)
        return folder.has(RATINGS) and has_images(folder)

    def prompts(self, data: Path | None) -> pd.DataFrame:
        """The prompts with their tags; see `Benchmark.prompts`."""
        return load_prompts(self.folder(data))

    def facts(self, answers: RankingAnswers) -> Mapping[str, pd.DataFrame]:
        """What a random choice reaches; see `protocol.chance`."""
        rows = [
            {"split": model, "facet": facet, **figures}
            for (model, facet), figures in chance(answers).items()
        ]
        return {"What a random choice and the best one reach": pd.DataFrame(rows)}

    def cases(self, answers: RankingAnswers, data: Path | None) -> pd.DataFrame:
        """Prompts to look at; see `benchmarks.genai_ranking.cases`."""
        texts = self.prompts(data).set_index("prompt_id")["prompt"]
        return cases(answers, texts.to_dict())

    def measure(
        self, scores: ScoreTable, answers: RankingAnswers, plan: ResamplingPlan
    ) -> Measured:
        """The rows of `protocol.measure`."""
        return measure(scores, answers, plan, self.name, self.card.revision)


BENCHMARKS = (GenAiRanking(),)
