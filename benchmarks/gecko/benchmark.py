"""Gecko2K in the registry."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from benchmarks.gecko.answers import Gecko2kAnswers
from benchmarks.gecko.cases import cases
from benchmarks.gecko.facts import facts
from benchmarks.gecko.load import IMAGES, PROMPTS, load_answers, load_prompts, load_questions
from benchmarks.gecko.load_ratings import RATINGS
from benchmarks.gecko.measures import FACETS, MEASURES
from benchmarks.gecko.protocol import measure
from benchmarks.rows import Measured
from benchmarks.schema import Benchmark, Card, Questions, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan

_READ = Card.read(Path(__file__).parent / "card.toml", MEASURES)
CARD = _READ.model_copy(update={"facets": {**FACETS, **_READ.facets}})


class Gecko(Benchmark):
    """Gecko2K: released prompts, ratings and images of an operator."""

    def __init__(self, card: Card = CARD) -> None:
        self.card = card

    def answers(self, data: Path | None) -> Gecko2kAnswers:
        """Read the prompts and the supplied ratings; see `load_answers` and FORMAT.md."""
        return load_answers(self.folder(data))

    def questions(self, data: Path | None) -> Questions:
        """Read the supplied images `<data>/gecko/images/<prompt_id>/<model>.png` or `.jpg`."""
        return load_questions(self.folder(data))

    def has_questions(self, data: Path | None) -> bool:
        """Whether the files are there; that each image is, `questions` checks."""
        return all(map(self.folder(data).has, (PROMPTS, RATINGS, IMAGES)))

    def prompts(self, data: Path | None) -> pd.DataFrame:
        """All released prompts, rated or not; two ids share one text. See `Benchmark.prompts`."""
        table = load_prompts(self.folder(data))
        finer = (table["skill"] + ":" + table["sub_skill"]).where(table["skill"] != "", "")
        skills = (table["skill"] + ";" + finer).where(table["skill"] != "", "")
        return table[["prompt_id", "prompt", "split"]].assign(skills=skills)

    def facts(self, answers: Gecko2kAnswers) -> Mapping[str, pd.DataFrame]:
        """What the ratings alone say; see `benchmarks.gecko.facts`."""
        return facts(answers)

    def cases(self, answers: Gecko2kAnswers, data: Path | None) -> pd.DataFrame:
        """Prompts to look at; see `benchmarks.gecko.cases`."""
        del data
        return cases(answers)

    def measure(
        self, scores: ScoreTable, answers: Gecko2kAnswers, plan: ResamplingPlan
    ) -> Measured:
        """The rows of `protocol.measure`."""
        return measure(scores, answers, plan, self.name, self.card.revision)


BENCHMARKS = (Gecko(),)
