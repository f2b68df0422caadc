"""Scores in extreme units: oriented tables keep their order and proportions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.schema import ScoreTable


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
