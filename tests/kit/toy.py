"""A benchmark with three pairs, for tests of what surrounds a benchmark."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image

from benchmarks.rows import Measured, MeasuredBuilder, Row
from benchmarks.schema import (
    Answers,
    Benchmark,
    Card,
    MeasureInfo,
    Pair,
    Questions,
    ScoreTable,
    Selector,
)
from benchmarks.statistics.resampling import ResamplingPlan, resampled_mean

PAIRS = ("a", "b", "c")


class Toy(Benchmark):
    """Its only measure is the mean score; `odd` is a metric with a known defect.

    The picture of pair n is one pixel of brightness n, so a scorer can tell them apart.
    """

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

    def has_questions(self, data: Path | None) -> bool:
        return True

    def questions(self, data: Path | None) -> Questions:
        return Questions(
            images={f"image {pair}": _picture(n) for n, pair in enumerate(PAIRS)},
            texts={"text": "a grey pixel"},
            pairs=tuple(Pair(pair, f"image {pair}", "text") for pair in PAIRS),
        )

    def measure(self, scores: ScoreTable, answers: Any, plan: ResamplingPlan) -> Measured:
        built = MeasuredBuilder(plan.n_resamples)
        for name in scores.metrics:
            values = scores.oriented()[name].to_numpy(dtype=np.float64)
            row = Row(
                benchmark="toy",
                revision="1",
                metric=name,
                measure="mean",
                value=float(np.nanmean(values)),
                n_clusters=len(values),
                n_missing=int(np.isnan(values).sum()),
            )
            built.add(row, resampled_mean(values, plan.counts), PAIRS, values)
        return built.build()

    def repair_cell(self, metric: str, cell: str) -> float | None:
        return float(cell.strip("!")) if metric == "odd" and cell.endswith("!") else None

    def known_directions(self) -> Mapping[str, Literal[1, -1]]:
        return {"odd": -1}


def _picture(brightness: int) -> Callable[[], bytes]:
    def encode() -> bytes:
        buffer = io.BytesIO()
        Image.new("RGB", (1, 1), (brightness, brightness, brightness)).save(buffer, "PNG")
        return buffer.getvalue()

    return encode
