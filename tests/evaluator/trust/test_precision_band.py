"""The band of a faster precision, against float32 on the CPU."""

from __future__ import annotations

import math

import pytest

from evaluator.trust.precision import band


def test_the_band_is_the_mean_and_the_largest_difference() -> None:
    found = band({"a": 0.5, "b": 0.25}, {"b": 0.25, "a": 0.375}, {"dtype": "float32"})
    assert (found.mean, found.largest, found.n_lost) == (0.0625, 0.125, 0)
    assert found.reference == {"dtype": "float32"}


@pytest.mark.parametrize(
    ("ours", "theirs", "lost"), [(math.nan, 1.0, 1), (1.0, math.nan, 1), (math.nan, math.nan, 0)]
)
def test_scores_that_only_one_of_them_has_are_counted(
    ours: float, theirs: float, lost: int
) -> None:
    found = band({"a": ours, "b": 2.0}, {"a": theirs, "b": 2.0}, {})
    assert (found.largest, found.n_lost) == (0.0, lost)


def test_no_pairs_have_no_band() -> None:
    assert band({}, {}, {}).largest is None
    assert band({"a": math.nan}, {"a": math.nan}, {}).mean is None
