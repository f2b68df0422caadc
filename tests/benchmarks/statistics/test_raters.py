"""Krippendorff's alpha and error consistency."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.statistics.raters import Level, error_consistency, krippendorff_alpha

NAN = float("nan")


def test_alpha_of_the_small_worked_example() -> None:
    alpha = krippendorff_alpha([[1, 1], [2, 2], [1, 2]], "nominal")
    assert alpha == pytest.approx(0.4444, abs=5e-5)


@pytest.mark.parametrize(
    ("level", "expected"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_alpha_of_krippendorffs_textbook_example(level: Level, expected: float) -> None:
    """Four observers, twelve units (Krippendorff, Computing Krippendorff's alpha-reliability)."""
    observers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
    assert krippendorff_alpha(np.array(observers).T, level) == pytest.approx(expected, abs=5e-4)


def test_units_with_one_rating_do_not_count() -> None:
    ratings = [[1.0, 1.0], [2.0, 2.0], [1.0, 2.0]]
    with_single = [*ratings, [5.0, NAN]]
    assert krippendorff_alpha(with_single, "interval") == krippendorff_alpha(ratings, "interval")


def test_perfect_agreement_is_one_and_equal_ratings_are_undefined() -> None:
    assert krippendorff_alpha([[1, 1], [2, 2]], "ordinal") == 1.0
    assert np.isnan(krippendorff_alpha([[3, 3], [3, 3]], "nominal"))
    assert np.isnan(krippendorff_alpha([[1, NAN], [2, NAN]], "nominal"))


def slow_alpha(ratings: list[list[float]], level: Level) -> float:
    """The definition, pair of ratings by pair of ratings."""
    units = [[r for r in unit if not np.isnan(r)] for unit in ratings]
    units = [unit for unit in units if len(unit) >= 2]
    everything = [r for unit in units for r in unit]

    def distance(a: float, b: float) -> float:
        if level == "nominal":
            return float(a != b)
        if level == "interval":
            return (a - b) ** 2
        low, high = min(a, b), max(a, b)
        between = sum(low <= r <= high for r in everything)
        return (between - (everything.count(a) + everything.count(b)) / 2) ** 2 * (a != b)

    observed = sum(
        distance(a, b) / (len(unit) - 1) for unit in units for a, b in permutations(unit, 2)
    )
    expected = sum(distance(a, b) for a, b in permutations(everything, 2))
    if expected == 0:
        return NAN
    return 1 - observed * (len(everything) - 1) / expected


@given(
    st.lists(
        st.lists(st.sampled_from([1.0, 2.0, 3.0, 5.0, NAN]), min_size=4, max_size=4), max_size=8
    ),
    st.sampled_from(["nominal", "ordinal", "interval"]),
)
def test_alpha_is_its_definition(ratings: list[list[float]], level: Level) -> None:
    found = krippendorff_alpha(np.array(ratings).reshape(len(ratings), 4), level)
    assert found == pytest.approx(slow_alpha(ratings, level), abs=1e-9, nan_ok=True)


def test_alpha_needs_a_table() -> None:
    with pytest.raises(ValueError, match="units, raters"):
        krippendorff_alpha([1, 2, 3], "nominal")


def test_error_consistency_of_the_worked_example() -> None:
    metric = [1, 1, 1, 1, 1, 1, 1, 1, 0, 0]
    human = [1, 1, 1, 1, 1, 1, 1, 0, 1, 0]
    assert error_consistency(metric, human) == pytest.approx(0.375)


def test_error_consistency_is_undefined_where_everything_is_expected() -> None:
    assert np.isnan(error_consistency([1, 1], [1, 1]))
    assert np.isnan(error_consistency([], []))
    with pytest.raises(ValueError, match="one length"):
        error_consistency([1], [1, 0])
