"""CROC_syn in the registry."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchmarks.croc_syn.answers import CrocSynAnswers
from benchmarks.croc_syn.cases import cases
from benchmarks.croc_syn.load import FILES, load_answers, prompt_pairs
from benchmarks.croc_syn.measures import FACETS, MEASURES
from benchmarks.croc_syn.protocol import measure
from benchmarks.croc_syn.questions import IMAGES, load_prompts, load_questions
from benchmarks.rows import Measured
from benchmarks.schema import Benchmark, Card, Questions, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan

CARD = Card.read(Path(__file__).parent / "card.toml", MEASURES)
CARD = CARD.model_copy(update={"facets": {**FACETS, **CARD.facets}})
IMAGES_PER_PROMPT = 5


class CrocSyn(Benchmark):
    """CROC_syn: contrast pairs written by language models; the operator supplies the files."""

    def __init__(self, card: Card = CARD) -> None:
        self.card = card

    @property
    def _n_images(self) -> int:
        return self.card.counts.get("images per prompt", IMAGES_PER_PROMPT)

    def answers(self, data: Path | None) -> CrocSynAnswers:
        """Read the four prompt files; see `load_answers`."""
        return load_answers(self.folder(data), self._n_images)

    def questions(self, data: Path | None) -> Questions:
        """Find the images; see `load_questions`."""
        return load_questions(self.folder(data), self._n_images)

    def has_questions(self, data: Path | None) -> bool:
        """Whether the prompt files and the folder of images are there; each is checked later."""
        return all(map(self.folder(data).has, (*FILES, IMAGES)))

    def prompts(self, data: Path | None) -> pd.DataFrame:
        """Originals and contrasts, each text once; see `load_prompts`."""
        return load_prompts(self.folder(data))

    def cases(self, answers: CrocSynAnswers, data: Path | None) -> pd.DataFrame:
        """Some contrast pairs to look at; see `benchmarks.croc_syn.cases`."""
        pairs = prompt_pairs(self.folder(data))
        return cases(answers, (pair for pair in pairs if pair.is_whole))

    def measure(
        self, scores: ScoreTable, answers: CrocSynAnswers, plan: ResamplingPlan
    ) -> Measured:
        """The CROC_syn protocol."""
        return measure(scores, answers, plan, self.name, self.card.revision)


BENCHMARKS = (CrocSyn(),)
