"""The four demo benchmarks in the registry. All pictures and ratings are simulated.

They need no data folder and no network: pictures are rendered from a seed when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.croc import cases as croc_cases
from benchmarks.croc import protocol as croc
from benchmarks.demo import croc_split, evalmuse_split, gecko_split, ts2_split
from benchmarks.demo.fingerprint import fingerprint_table
from benchmarks.evalmuse import cases as evalmuse_cases
from benchmarks.evalmuse import protocol as evalmuse
from benchmarks.gecko import cases as gecko_cases
from benchmarks.gecko import protocol as gecko
from benchmarks.rows import Measured
from benchmarks.schema import Answers, Benchmark, Card, MeasureInfo, Questions, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan
from benchmarks.ts2 import cases as ts2_cases
from benchmarks.ts2 import protocol as ts2
from benchmarks.ts2.measures import MEASURES as TS2_MEASURES


class DemoBenchmark(Benchmark):
    """One of the bundled benchmarks with rendered pictures and simulated labels.

    Args:
        card: what people are told about it.
        answers: makes the answer side.
        questions: makes the question side.
        measure: the protocol of its family.
        cases: makes the cases of its family, from answers and the prompt of each text id.
    """

    def __init__(
        self,
        card: Card,
        answers: Callable[[], Answers],
        questions: Callable[[], Questions],
        measure: Callable[..., Measured],
        cases: Callable[[Any, Mapping[str, str]], pd.DataFrame],
    ) -> None:
        self.card = card
        self._answers = answers
        self._questions = questions
        self._measure = measure
        self._cases = cases

    def answers(self, data: Path | None) -> Answers:
        """The answer side, worked out from the seed; `data` is not needed."""
        del data
        return self._answers()

    def questions(self, data: Path | None) -> Questions:
        """The question side; each picture is rendered when its bytes are asked for."""
        del data
        return self._questions()

    def has_questions(self, data: Path | None) -> bool:
        """Always: they are rendered."""
        del data
        return True

    def facts(self, answers: Answers) -> Mapping[str, pd.DataFrame]:
        """The hashes of all it is made of, and whether they are those of its revision."""
        return {"fingerprint": fingerprint_table(self.name, self._questions(), answers)}

    def cases(self, answers: Answers, data: Path | None) -> pd.DataFrame:
        """What the simulated ratings say; the cases of the family, unchanged."""
        del data
        return self._cases(answers, self._questions().texts)

    def measure(self, scores: ScoreTable, answers: Any, plan: ResamplingPlan) -> Measured:
        """The protocol of the family, unchanged."""
        return self._measure(scores, answers, plan, self.name, self.card.revision)


def _card(
    family: str,
    measures: Mapping[str, MeasureInfo],
    facets: Mapping[str, str] | None = None,
) -> Card:
    card = Card.read(Path(__file__).parent / f"card_{family}.toml", measures)
    return card.model_copy(update={"facets": {**(facets or {}), **card.facets}})


BENCHMARKS = (
    DemoBenchmark(
        _card("croc", croc.MEASURES, croc.FACETS),
        croc_split.answers,
        croc_split.questions,
        croc.measure,
        lambda answers, _: croc_cases.cases(answers),
    ),
    DemoBenchmark(
        _card("ts2", TS2_MEASURES),
        ts2_split.answers,
        ts2_split.questions,
        ts2.measure,
        ts2_cases.cases,
    ),
    DemoBenchmark(
        _card("evalmuse", evalmuse.MEASURES, evalmuse.FACETS),
        evalmuse_split.answers,
        evalmuse_split.questions,
        evalmuse.measure,
        lambda answers, _: evalmuse_cases.cases(answers),
    ),
    DemoBenchmark(
        _card("gecko", gecko.MEASURES, gecko.FACETS),
        gecko_split.answers,
        gecko_split.questions,
        gecko.measure,
        lambda answers, _: gecko_cases.cases(answers),
    ),
)
