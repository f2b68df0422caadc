"""Whatever a metric sends, each row is a number or says why it is none: on every benchmark."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.registry import load_registry
from benchmarks.schema import Answers, ScoreTable

AT_HAND = ("demo_croc", "demo_ts2", "demo_evalmuse", "demo_gecko")
FROM_DATA = ("ts2", "genai_527", "tifa160")

Scores = Callable[[int, np.random.Generator], np.ndarray]


def one_scored(n: int, rng: np.random.Generator) -> np.ndarray:
    values = np.full(n, np.nan)
    values[rng.integers(n)] = 1.0
    return values


POOR: dict[str, Scores] = {
    "constant": lambda n, rng: np.zeros(n),
    "none at all": lambda n, rng: np.full(n, np.nan),
    "one pair only": one_scored,
    "half missing": lambda n, rng: np.where(rng.random(n) < 0.5, np.nan, rng.normal(size=n)),
    "two values": lambda n, rng: rng.integers(0, 2, n).astype(float),
    "huge": lambda n, rng: rng.normal(size=n) * 1e300,
    "tiny": lambda n, rng: rng.normal(size=n) * 1e-300,
}


@pytest.fixture(params=[*AT_HAND, *(pytest.param(n, marks=pytest.mark.paper) for n in FROM_DATA)])
def case(request: pytest.FixtureRequest) -> tuple[str, Answers]:
    name: str = request.param
    data: Path | None = request.getfixturevalue("assay_data") if name in FROM_DATA else None
    return name, load_registry()[name].answers(data)


def test_every_row_is_a_number_or_says_why_not(case: tuple[str, Answers]) -> None:
    name, answers = case
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {kind: make(len(answers.pair_ids), rng) for kind, make in POOR.items()},
        index=pd.Index(answers.pair_ids, name="pair_id"),
    )
    rows = load_registry()[name].evaluate(ScoreTable(table), answers, n_resamples=20).rows
    assert {row.metric for row in rows} == set(POOR)
    silent = [row for row in rows if not math.isfinite(row.value) and not row.note]
    assert silent == []
    for row in rows:
        assert not math.isinf(row.value), row
        assert math.isnan(row.ci_low) or row.ci_low <= row.ci_high, row
    incomplete = [row for row in rows if row.metric == "none at all" and row.n_missing == 0]
    assert [row for row in incomplete if row.n_items > 0] == []


@pytest.mark.parametrize("unit", [5e-324, 1e-300, 1e-101, 1e101, 1e308])
def test_scores_in_an_extreme_unit_keep_their_order_and_proportions(unit: float) -> None:
    plain = pd.DataFrame({"a": [1.0, 0.0, -0.5, np.nan, 0.25]})
    scaled = ScoreTable(plain * unit).oriented()["a"]
    assert scaled.abs().max() < 1e100
    assert scaled.abs().max() > 1e-100
    if unit != 5e-324:  # the smallest double has no half
        ratio = (scaled / scaled[0]).to_numpy()
        np.testing.assert_allclose(ratio, plain["a"].to_numpy(), rtol=1e-15)


def test_ordinary_scores_are_left_as_they_are() -> None:
    table = pd.DataFrame({"a": [1.5, -3.0, np.nan], "b": [0.0, 0.0, 0.0]})
    pd.testing.assert_frame_equal(
        ScoreTable(table, directions={"b": -1}).oriented(), table * [1, -1]
    )
