"""TIFA160 in the registry."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from benchmarks.rows import Measured
from benchmarks.schema import Benchmark, Card, Questions, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan
from benchmarks.tifa160.answers import Tifa160Answers
from benchmarks.tifa160.cases import cases
from benchmarks.tifa160.facts import facts
from benchmarks.tifa160.load import (
    HUMAN,
    IMAGES,
    load_answers,
    load_image_names,
    load_prompts,
    load_questions,
)
from benchmarks.tifa160.protocol import MEASURES, measure

CARD = Card.read(Path(__file__).parent / "card.toml", MEASURES)


class Tifa160(Benchmark):
    """TIFA160: 800 images, rated for TIFA and again for DSG."""

    def __init__(self, card: Card = CARD) -> None:
        self.card = card

    def answers(self, data: Path | None) -> Tifa160Answers:
        """Read both sets of ratings; see `load_answers`."""
        return load_answers(self.folder(data))

    def questions(self, data: Path | None) -> Questions:
        """Read the images from `<data>/tifa160/images`; see `load_questions`."""
        return load_questions(self.folder(data))

    def has_questions(self, data: Path | None) -> bool:
        """Whether the files are there; that each image is, `questions` checks."""
        return all(map(self.folder(data).has, (HUMAN, IMAGES)))

    def remote_names(self, path: str, data: Path | None) -> tuple[str, ...]:
        """Names of the files in the web folder of images; none for other paths.

        Raises:
            SubmitterError: `data_missing` or `data_malformed`: the names are in the annotations.
        """
        return load_image_names(self.folder(data)) if path == IMAGES else ()

    def prompts(self, data: Path | None) -> pd.DataFrame:
        """The 160 prompts; their skill is the collection they were taken from."""
        found = load_prompts(self.folder(data))
        return pd.DataFrame(
            {
                "prompt_id": found["prompt_id"],
                "prompt": found["prompt"],
                "split": "",
                "skills": found["source"],
            }
        )

    def facts(self, answers: Tifa160Answers) -> Mapping[str, pd.DataFrame]:
        """What the ratings alone say; see `benchmarks.tifa160.facts`."""
        return facts(answers)

    def cases(self, answers: Tifa160Answers, data: Path | None) -> pd.DataFrame:
        """Prompts to look at; see `benchmarks.tifa160.cases`."""
        del data
        return cases(answers)

    def measure(
        self, scores: ScoreTable, answers: Tifa160Answers, plan: ResamplingPlan
    ) -> Measured:
        """The rows of `protocol.measure`."""
        return measure(scores, answers, plan, self.name, self.card.revision)


BENCHMARKS = (Tifa160(),)
