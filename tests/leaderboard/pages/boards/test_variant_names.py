"""Every variant that a protocol emits has a name that people can read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.registry import load_registry
from benchmarks.schema import ScoreTable
from leaderboard.pages.shown.measures import VARIANTS

HERE = [*("demo_croc", "demo_ts2", "demo_evalmuse", "demo_gecko")]
FROM_DATA = [pytest.param(name, marks=pytest.mark.paper) for name in ("tifa160", "genai_527")]


@pytest.mark.parametrize("name", [*HERE, *FROM_DATA])
def test_every_variant_is_named(name: str, request: pytest.FixtureRequest) -> None:
    data: Path | None = None if name in HERE else request.getfixturevalue("assay_data")
    benchmark = load_registry()[name]
    answers = benchmark.answers(data)
    scores = np.random.default_rng(0).normal(size=len(answers.pair_ids))
    table = ScoreTable(pd.DataFrame({"m": scores}, index=list(answers.pair_ids)))
    rows = benchmark.evaluate(table, answers, n_resamples=2).rows
    assert {row.variant for row in rows} - {None} <= set(VARIANTS)
