"""The two EvalMuse boards in the registry."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from benchmarks.errors import SubmitterError
from benchmarks.evalmuse import load, load_ntire
from benchmarks.evalmuse.answers import EvalMuseAnswers
from benchmarks.evalmuse.cases import cases
from benchmarks.evalmuse.facts import facts
from benchmarks.evalmuse.measures import MEASURES
from benchmarks.evalmuse.protocol import measure
from benchmarks.rows import Measured
from benchmarks.schema import Benchmark, Card, Questions, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan

_FOLDER = Path(__file__).parent
CARD = Card.read(_FOLDER / "card.toml", MEASURES)
NTIRE_CARD = Card.read(_FOLDER / "card_ntire.toml", MEASURES)


class EvalMuse(Benchmark):
    """A held-out quarter of the prompts of the public labelled list."""

    def __init__(self, card: Card = CARD) -> None:
        self.card = card

    def answers(self, data: Path | None) -> EvalMuseAnswers:
        """Read the labels from `<data>/evalmuse/train_list.json`; see `load.load_answers`."""
        return load.load_answers(self.folder(data))

    def questions(self, data: Path | None) -> Questions:
        """Read the images from the archive's parts or the unpacked folder `evalmuse/images`."""
        return load.load_questions(self.folder(data))

    def has_questions(self, data: Path | None) -> bool:
        """Whether the files are there; that each image is, `questions` checks."""
        folder = self.folder(data)
        return folder.has(load.LABELS) and load.has_images(folder)

    def prompts(self, data: Path | None) -> pd.DataFrame:
        """The 199 released prompts for ranking text-to-image models; see `Benchmark.prompts`."""
        return load.load_prompts(self.folder(data))

    def facts(self, answers: EvalMuseAnswers) -> Mapping[str, pd.DataFrame]:
        """What the human labels alone say; see `benchmarks.evalmuse.facts`."""
        return facts(answers)

    def cases(self, answers: EvalMuseAnswers, data: Path | None) -> pd.DataFrame:
        """Prompts to look at; see `benchmarks.evalmuse.cases`."""
        del data
        return cases(answers)

    def measure(
        self, scores: ScoreTable, answers: EvalMuseAnswers, plan: ResamplingPlan
    ) -> Measured:
        """The rows of `protocol.measure`."""
        return measure(scores, answers, plan, self.name, self.card.revision)


class EvalMuseNtire(Benchmark):
    """Track 1 of NTIRE 2025, with a label file that an operator supplies."""

    def __init__(self, card: Card = NTIRE_CARD) -> None:
        self.card = card

    def answers(self, data: Path | None) -> EvalMuseAnswers:
        """Read the labels from `<data>/evalmuse/eval.json`; see FORMAT.md."""
        return load_ntire.load_answers(self.folder(data))

    def questions(self, data: Path | None) -> Questions:
        """Read the images from `<data>/evalmuse/ntire_images`, where the operator has them."""
        return load_ntire.load_questions(self.folder(data))

    def has_questions(self, data: Path | None) -> bool:
        """Whether the images and the prompts of all of them are there."""
        folder = self.folder(data)
        if not folder.has(load_ntire.IMAGES):
            return False
        try:
            load_ntire.load_questions(folder)
        except SubmitterError:
            return False
        return True

    def facts(self, answers: EvalMuseAnswers) -> Mapping[str, pd.DataFrame]:
        """What the human labels alone say; see `benchmarks.evalmuse.facts`."""
        return facts(answers)

    def measure(
        self, scores: ScoreTable, answers: EvalMuseAnswers, plan: ResamplingPlan
    ) -> Measured:
        """The rows of `protocol.measure`."""
        return measure(scores, answers, plan, self.name, self.card.revision)


BENCHMARKS = (EvalMuse(), EvalMuseNtire())
