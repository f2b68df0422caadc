"""The four demo benchmarks: simulated pictures and ratings under the protocols of CROC, EvalMuse, Gecko and TS2."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.croc import cases as croc_cases
from benchmarks.croc import protocol as croc
from benchmarks.demo import load
from benchmarks.demo.fingerprint import fingerprint_table
from benchmarks.evalmuse import cases as evalmuse_cases
from benchmarks.evalmuse import measures as evalmuse_measures
from benchmarks.evalmuse import protocol as evalmuse
from benchmarks.gecko import cases as gecko_cases
from benchmarks.gecko import measures as gecko_measures
from benchmarks.gecko import protocol as gecko
from benchmarks.rows import Measured
from benchmarks.schema import Answers, Benchmark, Card, MeasureInfo, Questions, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan
from benchmarks.ts2 import cases as ts2_cases
from benchmarks.ts2 import protocol as ts2
from benchmarks.ts2.measures import MEASURES as TS2_MEASURES


class DemoBenchmark(Benchmark):
    """One of the bundled benchmarks of drawn pictures and simulated labels."""

    def __init__(
        self,
        family: str,
        card: Card,
        answers: Callable[[], Answers],
        measure: Callable[..., Measured],
        cases: Callable[[Any, Mapping[str, str]], pd.DataFrame],
    ) -> None:
        self.card = card
        self._family = family
        self._answers = answers
        self._measure = measure
        self._cases = cases

    def answers(self, data: Path | None) -> Answers:
        """The answer side, which ships with Assay; `data` is not needed."""
        del data
        return self._answers()

    def questions(self, data: Path | None) -> Questions:
        """The question side, which ships with Assay; `data` is not needed."""
        del data
        return load.questions(self._family)

    def has_questions(self, data: Path | None) -> bool:
        """Always true: they ship with Assay."""
        del data
        return True

    def facts(self, answers: Answers) -> Mapping[str, pd.DataFrame]:
        """The hashes of all it is made of, and whether they are those of its revision."""
        return {"fingerprint": fingerprint_table(self.name, self.questions(None), answers)}

    def cases(self, answers: Answers, data: Path | None) -> pd.DataFrame:
        """The cases of the family, from the simulated ratings."""
        return self._cases(answers, self.questions(data).texts)

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
        "croc",
        _card("croc", croc.MEASURES, croc.FACETS),
        load.croc_answers,
        croc.measure,
        lambda answers, _: croc_cases.cases(answers),
    ),
    DemoBenchmark(
        "ts2",
        _card("ts2", TS2_MEASURES),
        load.ts2_answers,
        ts2.measure,
        ts2_cases.cases,
    ),
    DemoBenchmark(
        "evalmuse",
        _card("evalmuse", evalmuse_measures.MEASURES, evalmuse_measures.FACETS),
        load.evalmuse_answers,
        evalmuse.measure,
        lambda answers, _: evalmuse_cases.cases(answers),
    ),
    DemoBenchmark(
        "gecko",
        _card("gecko", gecko_measures.MEASURES, gecko_measures.FACETS),
        load.gecko_answers,
        gecko.measure,
        lambda answers, _: gecko_cases.cases(answers),
    ),
)
