"""EvalMuse-Structure (NTIRE 2025 track 2) in the registry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.evalmuse_track2.answers import MaskedScores, Track2Answers
from benchmarks.evalmuse_track2.load import BOXES, IMAGES, PROMPTS, load_answers, load_questions
from benchmarks.evalmuse_track2.measures import MEASURES
from benchmarks.evalmuse_track2.protocol import measure
from benchmarks.evalmuse_track2.submission import parse_masks
from benchmarks.rows import Measured
from benchmarks.schema import Benchmark, Card, Questions, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan

CARD = Card.read(Path(__file__).parent / "card.toml", MEASURES)


class EvalMuseTrack2(Benchmark):
    """Distorted regions and structural quality of generated images, labelled by people."""

    def __init__(self, card: Card = CARD) -> None:
        self.card = card

    def answers(self, data: Path | None) -> Track2Answers:
        """Read the label file of the operator; see `load_answers`."""
        return load_answers(self.folder(data))

    def questions(self, data: Path | None) -> Questions:
        """The labelled images with their prompts; see `load_questions`."""
        return load_questions(self.folder(data), self.answers(data).pair_ids)

    def has_questions(self, data: Path | None) -> bool:
        """Whether images and prompts are there; that each image is, `questions` checks."""
        folder = self.folder(data)
        prompts = folder.has(PROMPTS) or folder.has(BOXES)
        return prompts and folder.has(IMAGES) and self.has_answers(data)

    def measure(self, scores: ScoreTable, answers: Any, plan: ResamplingPlan) -> Measured:
        """The rows of `protocol.measure`."""
        return measure(scores, answers, plan, self.name, self.card.revision)

    def parse_special(
        self, content: bytes, name: str, answers: Any, metric: str
    ) -> MaskedScores | None:
        """Scores with masks, `.npz` or `.pkl`; see `parse_masks`."""
        return parse_masks(content, name, answers.pair_ids, metric)


BENCHMARKS = (EvalMuseTrack2(),)
