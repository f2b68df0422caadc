"""One rating against the mean of the others, under any measure."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from benchmarks.arrays import FloatArray
from benchmarks.statistics.correlation import spearman
from benchmarks.statistics.one_rater import one_against_the_others

TABLE = np.array([[1.0, 2.0, 3.0], [2.0, 2.0, 5.0], [4.0, np.nan, 1.0], [5.0, 4.0, 4.0]])


def test_each_column_meets_the_mean_of_the_others_where_both_exist() -> None:
    found = one_against_the_others(TABLE, spearman)
    assert found[0] == pytest.approx(spearmanr([1, 2, 4, 5], [2.5, 3.5, 1.0, 4.0])[0])
    assert found[1] == pytest.approx(spearmanr([2, 2, 4], [2.0, 3.5, 4.5])[0])
    assert found[2] == pytest.approx(spearmanr([3, 5, 1, 4], [1.5, 2.0, 4.0, 4.5])[0])


def test_a_unit_with_a_single_rating_is_left_out() -> None:
    lonely = np.vstack([TABLE, [3.0, np.nan, np.nan], [np.nan, np.nan, np.nan]])
    np.testing.assert_array_equal(
        one_against_the_others(lonely, spearman), one_against_the_others(TABLE, spearman)
    )


@given(st.integers(2, 5), st.integers(0, 99))
def test_the_measure_sees_scores_first_and_finite_labels_second(raters: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = np.where(rng.random((12, raters)) < 0.2, np.nan, rng.integers(1, 6, (12, raters)))
    seen: list[tuple[FloatArray, FloatArray]] = []

    def keep(scores: FloatArray, labels: FloatArray) -> float:
        seen.append((scores, labels))
        return float(len(seen))

    assert one_against_the_others(table, keep).tolist() == [*map(float, range(1, raters + 1))]
    for column, (scores, labels) in enumerate(seen):
        assert scores.shape == labels.shape
        assert np.isfinite(scores).all()
        assert np.isfinite(labels).all()
        assert set(scores) <= set(table[:, column])


@pytest.mark.parametrize("table", [np.ones((4, 1)), np.ones(4)])
def test_one_column_has_no_others(table: FloatArray) -> None:
    with pytest.raises(ValueError, match="2 or more"):
        one_against_the_others(table, spearman)
