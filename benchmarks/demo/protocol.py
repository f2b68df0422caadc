"""The four demo benchmarks: simulated pictures and ratings under the protocols of CROC, EvalMuse, Gecko and TS2."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.croc.protocol import CrocHum
from benchmarks.demo import load
from benchmarks.evalmuse.protocol import EvalMuse
from benchmarks.gecko.protocol import Gecko
from benchmarks.rated_images import RatedImages
from benchmarks.rows import Measured, Row
from benchmarks.schema import Answers, Benchmark, Card, Questions, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan
from benchmarks.ts2 import protocol as ts2


class DemoBenchmark(Benchmark):
    """One of the bundled benchmarks of drawn pictures and simulated labels, measured as `protocol` is."""

    def __init__(
        self, family: str, protocol: type[Benchmark], answers: Callable[[], Answers]
    ) -> None:
        path = Path(__file__).parent / f"card_{family}.toml"
        self.card = Card.read(path, protocol.card.measures)
        self._family = family
        self._protocol = protocol(self.card)
        self._answers = answers

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
        return {"fingerprint": load.fingerprint_table(self.name, self.questions(None), answers)}

    def cases(self, answers: Any, data: Path | None) -> pd.DataFrame | None:
        """The cases of the family, from the simulated ratings."""
        if self._family == "ts2":
            return ts2.cases(answers, self.questions(data).texts)
        return self._protocol.cases(answers, data)

    def rated_images(self, answers: Any) -> RatedImages | None:
        """As in the protocol of the family."""
        return self._protocol.rated_images(answers)

    @property
    def compares_images(self) -> bool:
        """As in the protocol of the family."""
        return self._protocol.compares_images

    def within_text(self, row: Row) -> bool:
        """As in the protocol of the family."""
        return self._protocol.within_text(row)

    def measure(self, scores: ScoreTable, answers: Any, plan: ResamplingPlan) -> Measured:
        """The protocol of the family, unchanged."""
        return self._protocol.measure(scores, answers, plan)

    def by_generator(self, scores: ScoreTable, answers: Any, plan: ResamplingPlan) -> Measured:
        """As in the protocol of the family."""
        return self._protocol.by_generator(scores, answers, plan)


BENCHMARKS = (
    DemoBenchmark("croc", CrocHum, load.croc_answers),
    DemoBenchmark("ts2", ts2.Ts2, load.ts2_answers),
    DemoBenchmark("evalmuse", EvalMuse, load.evalmuse_answers),
    DemoBenchmark("gecko", Gecko, load.gecko_answers),
)
