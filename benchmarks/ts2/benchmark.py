"""TS2 in the registry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import pandas as pd

from benchmarks.rows import Measured, MeasuredBuilder
from benchmarks.schema import Benchmark, Card, Questions, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan
from benchmarks.ts2.answers import Ts2Answers
from benchmarks.ts2.cases import cases
from benchmarks.ts2.errata import add_printed_rows
from benchmarks.ts2.load import IMAGES, METADATA, load_answers, load_questions, load_texts
from benchmarks.ts2.measures import MEASURES
from benchmarks.ts2.protocol import add_rows, graph_values

CARD = Card.read(Path(__file__).parent / "card.toml", MEASURES)

_STRAY_QUOTE = re.compile(r'"(\d+)')


class Ts2(Benchmark):
    """T2IScoreScore: 165 semantic error graphs, 2840 images."""

    def __init__(self, card: Card = CARD) -> None:
        self.card = card

    def answers(self, data: Path | None) -> Ts2Answers:
        """Read the graphs from `<data>/ts2/metadata.csv`; see `load_answers`."""
        return load_answers(self.folder(data))

    def questions(self, data: Path | None) -> Questions:
        """Read the images from `<data>/ts2/images`; see `load_questions`."""
        return load_questions(self.folder(data))

    def has_questions(self, data: Path | None) -> bool:
        """Whether the files are there; that each image is, `questions` checks."""
        return all(map(self.folder(data).has, (METADATA, IMAGES)))

    def cases(self, answers: Ts2Answers, data: Path | None) -> pd.DataFrame:
        """Graphs to look at; see `benchmarks.ts2.cases`."""
        return cases(answers, load_texts(self.folder(data)))

    def measure(self, scores: ScoreTable, answers: Ts2Answers, plan: ResamplingPlan) -> Measured:
        """The rows of `protocol.measure`, and the delta cells as printed; see `errata`."""
        values = graph_values(scores, answers)
        builder = MeasuredBuilder(plan.n_resamples)
        source = {"benchmark": self.name, "revision": self.card.revision}
        add_rows(builder, values, answers, plan, **source)
        add_printed_rows(builder, values, scores, **source)
        return builder.build()

    def repair_cell(self, metric: str, cell: str) -> float | None:
        """Mend the one known defect: in `llmscore_over`, six numbers follow a stray quote."""
        found = _STRAY_QUOTE.fullmatch(cell)
        return float(found[1]) if found and metric == "llmscore_over" else None

    def known_directions(self) -> Mapping[str, Literal[1, -1]]:
        """Both LLMScore columns grow with the errors; all others fall."""
        return {"llmscore_ec": -1, "llmscore_over": -1}


BENCHMARKS = (Ts2(),)
