"""The EvalMuse structure test in the registry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.evalmuse_structure.answers import StructureAnswers
from benchmarks.evalmuse_structure.load import IMAGES, TABLE, load_answers, load_questions
from benchmarks.evalmuse_structure.measures import MEASURES
from benchmarks.evalmuse_structure.protocol import measure
from benchmarks.rows import Measured
from benchmarks.schema import Benchmark, Card, Questions, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan

CARD = Card.read(Path(__file__).parent / "card.toml", MEASURES)


class EvalMuseStructure(Benchmark):
    """Yes-or-no questions about malformed animals, objects and people."""

    def __init__(self, card: Card = CARD) -> None:
        self.card = card

    def answers(self, data: Path | None) -> StructureAnswers:
        """Read the operator's table; see `load_answers`."""
        return load_answers(self.folder(data))

    def questions(self, data: Path | None) -> Questions:
        """Images and questions; see `load_questions`."""
        return load_questions(self.folder(data))

    def has_questions(self, data: Path | None) -> bool:
        """Whether the files are there; that each image is, `questions` checks."""
        return all(map(self.folder(data).has, (TABLE, IMAGES)))

    def measure(self, scores: ScoreTable, answers: Any, plan: ResamplingPlan) -> Measured:
        """The rows of `protocol.measure`."""
        return measure(scores, answers, plan, self.name, self.card.revision)


BENCHMARKS = (EvalMuseStructure(),)
