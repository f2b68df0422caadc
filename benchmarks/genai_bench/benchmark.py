"""The two sets of GenAI-Bench in the registry."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from benchmarks.genai_bench.answers import GenAiAnswers
from benchmarks.genai_bench.cases import cases
from benchmarks.genai_bench.facts import facts
from benchmarks.genai_bench.load import (
    Release,
    has_images,
    load_answers,
    load_prompts,
    load_questions,
)
from benchmarks.genai_bench.measures import MEASURES
from benchmarks.genai_bench.protocol import measure
from benchmarks.rows import Measured
from benchmarks.schema import Benchmark, Card, Questions, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan

_FOLDER = Path(__file__).parent
CARD_527 = Card.read(_FOLDER / "card_527.toml", MEASURES)
CARD_1600 = Card.read(_FOLDER / "card_1600.toml", MEASURES)


class GenAiBench(Benchmark):
    """Images of six models with three ratings each; which set, the card says."""

    def __init__(self, card: Card = CARD_1600) -> None:
        self.card = card

    @property
    def release(self) -> Release:
        """Where its files lie: in a folder of the benchmark's name."""
        return Release(self.name)

    def answers(self, data: Path | None) -> GenAiAnswers:
        """Read ratings and tags; see `load_answers`."""
        return load_answers(self.folder(data), self.release)

    def questions(self, data: Path | None) -> Questions:
        """Read the images from the models' archives or unpacked folders; see `load_questions`."""
        return load_questions(self.folder(data), self.release)

    def has_questions(self, data: Path | None) -> bool:
        """Whether prompts and images are there; that each image is, `questions` checks."""
        folder = self.folder(data)
        return folder.has(self.release.ratings) and has_images(folder, self.release)

    def prompts(self, data: Path | None) -> pd.DataFrame:
        """The prompts with their tags; see `Benchmark.prompts`."""
        return load_prompts(self.folder(data), self.release)

    def facts(self, answers: GenAiAnswers) -> Mapping[str, pd.DataFrame]:
        """What the ratings alone say; see `benchmarks.genai_bench.facts`."""
        return facts(answers)

    def cases(self, answers: GenAiAnswers, data: Path | None) -> pd.DataFrame:
        """Prompts to look at; see `benchmarks.genai_bench.cases`."""
        texts = self.prompts(data).set_index("prompt_id")["prompt"]
        return cases(answers, texts.to_dict())

    def measure(self, scores: ScoreTable, answers: GenAiAnswers, plan: ResamplingPlan) -> Measured:
        """The rows of `protocol.measure`."""
        return measure(scores, answers, plan, self.name, self.card.revision)


BENCHMARKS = (GenAiBench(CARD_527), GenAiBench(CARD_1600))
