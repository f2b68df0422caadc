"""CROC_hum in the registry."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchmarks.croc.answers import CrocAnswers, CrocHumAnswers
from benchmarks.croc.cases import cases
from benchmarks.croc.load import has_images, load_answers, load_prompts, load_questions
from benchmarks.croc.protocol import FACETS, MEASURES, measure
from benchmarks.rows import Measured
from benchmarks.schema import Benchmark, Card, Questions, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan

CARD = Card.read(Path(__file__).parent / "card.toml", MEASURES)
CARD = CARD.model_copy(update={"facets": {**FACETS, **CARD.facets}})


class CrocHum(Benchmark):
    """CROC_hum: 280 contrasting prompt pairs, 28,733 images that people checked."""

    def __init__(self, card: Card = CARD) -> None:
        self.card = card

    def answers(self, data: Path | None) -> CrocHumAnswers:
        """Read the prompt pairs; see `load_answers`."""
        return load_answers(self.folder(data))

    def questions(self, data: Path | None) -> Questions:
        """Read the unpacked images; see `load_questions`."""
        return load_questions(self.folder(data))

    def has_questions(self, data: Path | None) -> bool:
        """Whether the table and the unpacked archive are there."""
        return data is not None and has_images(self.folder(data))

    def prompts(self, data: Path | None) -> pd.DataFrame:
        """Originals and contrasts, each text once; see `load_prompts`."""
        return load_prompts(self.folder(data))

    def cases(self, answers: CrocAnswers, data: Path | None) -> pd.DataFrame:
        """Contrast pairs to look at; see `benchmarks.croc.cases`."""
        del data
        return cases(answers)

    def measure(self, scores: ScoreTable, answers: CrocAnswers, plan: ResamplingPlan) -> Measured:
        """The CROC protocol."""
        return measure(scores, answers, plan, self.name, self.card.revision)


BENCHMARKS = (CrocHum(),)
