"""The scale of CROC: the values that the published tables follow from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.croc.lengths import LONG, SHORT, length_split
from benchmarks.croc.scaling import scale


@pytest.mark.parametrize(
    ("accuracy", "scaled"), [(0.0, -1.0), (0.4, -0.52), (5 / 6, 0.0), (0.9, 0.4), (1.0, 1.0)]
)
def test_text_based_accuracies_have_zero_at_five_sixths(accuracy: float, scaled: float) -> None:
    assert scale(accuracy, 5 / 6) == pytest.approx(scaled, abs=1e-12)


@pytest.mark.parametrize(
    ("published", "accuracy"),
    [(0.051, 0.8418), (0.503, 0.9172), (-0.305, 0.5792), (0.965, 0.9942)],
)
def test_published_cells_lead_back_to_their_accuracies(published: float, accuracy: float) -> None:
    """CROC Table 1, forward text-based: printed value and the accuracy it stands for."""
    assert round(scale(accuracy, 5 / 6), 3) == pytest.approx(published, abs=5e-4)
    side = 5 / 6 if published <= 0 else 1 / 6
    assert round(5 / 6 + published * side, 4) == accuracy


@given(st.floats(0, 1))
def test_with_chance_one_half_it_is_two_a_minus_one(accuracy: float) -> None:
    assert scale(accuracy, 0.5) == 2.0 * accuracy - 1.0


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 0.99))
def test_it_never_turns_the_order_round(a: float, b: float, chance: float) -> None:
    low, high = sorted((a, b))
    assert -1.0 <= scale(low, chance) <= scale(high, chance) <= 1.0


def test_arrays_keep_their_shape_and_their_gaps() -> None:
    found = scale(np.array([[0.0, np.nan], [0.5, 1.0]]), 0.5)
    np.testing.assert_array_equal(found, [[-1.0, np.nan], [0.0, 1.0]])


@pytest.mark.parametrize("chance", [0.0, 1.0, -0.1, float("nan")])
def test_a_guess_that_is_always_or_never_right_has_no_scale(chance: float) -> None:
    with pytest.raises(ValueError, match="strictly between"):
        scale(0.5, chance)


def test_a_prompt_of_280_characters_is_short_and_one_more_makes_it_long() -> None:
    assert (length_split("x" * 280), length_split("x" * 281)) == (SHORT, LONG)
    assert length_split("é" * 280) == SHORT  # characters, not bytes
