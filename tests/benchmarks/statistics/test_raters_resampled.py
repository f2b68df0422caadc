"""Agreement between raters in resamples equals that of the repeated units."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.statistics.raters import Level, error_consistency, krippendorff_alpha
from benchmarks.statistics.raters_resampled import resampled_alpha, resampled_error_consistency

NAN = float("nan")
UNITS = st.lists(
    st.tuples(
        st.lists(st.sampled_from([1.0, 2.0, 2.5, 4.0, NAN]), min_size=3, max_size=3),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=10,
)
TIMES = st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=4)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_alpha_of_a_resample_is_that_of_the_repeated_units(level: Level) -> None:
    @settings(deadline=None)
    @given(UNITS, TIMES)
    def holds(units: list[tuple[list[float], int]], times: list[list[int]]) -> None:
        ratings = np.array([unit for unit, _ in units])
        clusters = np.array([cluster for _, cluster in units])
        found = resampled_alpha(ratings, level, times, clusters)
        repeated = [np.repeat(ratings, np.array(row)[clusters], axis=0) for row in times]
        expected = [krippendorff_alpha(table, level) for table in repeated]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)

    holds()


def test_blocks_and_missing_clusters_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    ratings = rng.integers(1, 6, (30, 3)).astype(float)
    counts = rng.multinomial(30, np.full(30, 1 / 30), size=6)
    whole = resampled_alpha(ratings, "ordinal", counts)
    monkeypatch.setattr("benchmarks.statistics.raters_resampled._CACHED_CELLS", 1)
    np.testing.assert_allclose(resampled_alpha(ratings, "ordinal", counts), whole)
    once = resampled_alpha(ratings, "interval", np.ones((1, 30)))
    assert once[0] == pytest.approx(krippendorff_alpha(ratings, "interval"))
    assert np.isnan(resampled_alpha(np.zeros((2, 1)), "nominal", np.ones((1, 2)))).all()


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 3)), min_size=1, max_size=12),
    TIMES,
)
def test_error_consistency_of_a_resample_is_that_of_the_repeated_items(
    items: list[tuple[bool, bool, int]], times: list[list[int]]
) -> None:
    metric, human, clusters = (np.array(column) for column in zip(*items, strict=True))
    found = resampled_error_consistency(np.column_stack([metric, ~metric]), human, times, clusters)
    for row, (value, inverted) in zip(times, found, strict=True):
        drawn = np.repeat(np.arange(human.size), np.array(row)[clusters])
        for labels, got in ((metric, value), (~metric, inverted)):
            expected = error_consistency(labels[drawn], human[drawn])
            assert got == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_misfits_are_refused() -> None:
    with pytest.raises(ValueError, match="units, raters"):
        resampled_alpha([1.0], "nominal", np.ones((1, 1)))
    with pytest.raises(ValueError, match="one length"):
        resampled_error_consistency([1], [1, 0], np.ones((1, 2)))
    with pytest.raises(ValueError, match="every cluster"):
        resampled_error_consistency([1, 0], [1, 0], np.ones((1, 1)))
    with pytest.raises(ValueError, match="do not fit"):
        resampled_error_consistency([1, 0], [1, 0], np.ones((1, 2)), [0])
