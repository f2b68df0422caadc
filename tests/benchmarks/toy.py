"""A benchmark with three pairs, for tests of what surrounds a benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks.rows import Measured, MeasuredBuilder, Row
from benchmarks.schema import Answers, Benchmark, Card, MeasureInfo, ScoreTable, Selector
from benchmarks.statistics.resampling import ResamplingPlan

PAIRS = ("a", "b", "c")


class Toy(Benchmark):
    """Its only measure is the mean score; `odd` is a metric with a known defect."""

    card = Card(
        name="toy",
        title="Toy",
        family="toy",
        summary="A toy.",
        description="",
        revision="1",
        cluster="pair",
        headline=Selector(measure="mean"),
        measures={"mean": MeasureInfo(title="Mean", meaning="The mean score.")},
    )

    def answers(self, data: Path | None) -> Answers:
        return Answers(pair_ids=PAIRS, clusters=PAIRS)

    def measure(self, scores: ScoreTable, answers: Any, plan: ResamplingPlan) -> Measured:
        built = MeasuredBuilder(plan.n_resamples)
        for name in scores.metrics:
            values = scores.oriented()[name].to_numpy(dtype=np.float64)
            row = Row(
                benchmark="toy", revision="1", metric=name, measure="mean", value=values.mean()
            )
            built.add(row)
        return built.build()

    def repair_cell(self, metric: str, cell: str) -> float | None:
        return float(cell.strip("!")) if metric == "odd" and cell.endswith("!") else None

    def known_directions(self) -> Mapping[str, Literal[1, -1]]:
        return {"odd": -1}
