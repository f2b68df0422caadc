"""Figures, p-values and verdicts of a comparison as sentences."""

from __future__ import annotations

import math
from typing import Any

import pytest

from benchmarks.comparison import (
    Compared,
    corrected,
    dominance_words,
    effect_words,
    evidence_words,
    figures,
    p_words,
    paired_words,
    plural,
    units_of,
    verdict,
)


def found(**more: Any) -> Compared:
    fields: dict[str, Any] = {
        "metric_a": "A", "metric_b": "B", "measure": "m", "variant": None, "split": None,
        "facet": None, "skill": None, "higher_is_better": True, "value_a": 0.5, "value_b": 0.4,
        "difference": 0.1, "ci_low": 0.02, "ci_high": 0.18, "p_value": 0.01, "n_patterns": 9999,
        "n_differing": 12, "unit": "graph", "n_units": 15, "n_better_a": 9, "n_tied": 3,
        "n_better_b": 3,
    }  # fmt: skip
    return Compared(**{**fields, **more})


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "A is better than B by 0.100 [0.020, 0.180]"),
        ({"difference": -0.1, "ci_low": -0.18, "ci_high": -0.02},
         "B is better than A by 0.100 [0.020, 0.180]"),
        ({"higher_is_better": False}, "B is better than A by 0.100 [0.020, 0.180]"),
        ({"p_value": 0.3, "ci_low": -0.02},
         "A and B are not told apart: A has 0.100 [−0.020, 0.180] over B"),
        ({"p_value": math.nan},
         "A has 0.100 [0.020, 0.180] over B, but the two were not tested"),
        ({"p_value": 0.011, "p_corrected": 0.053, "correction": "holm", "n_tests": 10},
         "A and B are not told apart: A has 0.100 [0.020, 0.180] over B "
         "(p = 0.011 alone, 0.053 once corrected for 10 pairs)"),
        ({"p_value": 0.2, "p_corrected": 0.4, "correction": "holm", "n_tests": 10},
         "A and B are not told apart: A has 0.100 [0.020, 0.180] over B"),
        ({"difference": 0.0, "n_differing": 0, "p_value": 1.0}, "A and B are equal on every graph"),
        ({"difference": 0.0, "p_value": 1.0, "ci_low": -0.1, "ci_high": 0.1},
         "A and B have the same value [−0.100, 0.100]"),
        ({"value_a": math.nan, "difference": math.nan}, "A has no value here"),
        ({"value_a": math.nan, "value_b": math.nan}, "A and B have no value here"),
        ({"ci_low": math.nan, "ci_high": math.nan}, "A is better than B by 0.100"),
        ({"difference": 0.00042, "ci_low": 0.0001, "ci_high": 0.0008},
         "A is better than B by 0.00042 [0.00010, 0.00080]"),
    ],
)  # fmt: skip
def test_the_verdict_says_what_the_test_says(more: dict[str, Any], words: str) -> None:
    assert verdict(found(**more), "A", "B") == words


def test_small_p_values_are_neither_zero_nor_in_powers() -> None:
    assert [p_words(p) for p in (1.0, 0.999, 0.61, 0.0496, 0.0004, 3e-7, math.nan)] == [
        "p = 1", "p = 1", "p = 0.61", "p = 0.0496", "p = 0.00040", "p < 0.00001", "p –",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("p", "said"),
    [
        (0.0494, "0.049"), (0.0495, "0.0495"), (0.04998, "0.04998"), (0.05, "0.050"),
        (0.0502, "0.0502"), (0.0507, "0.051"),
    ],
)  # fmt: skip
def test_a_p_value_beside_the_level_is_never_rounded_to_it(p: float, said: str) -> None:
    assert p_words(p) == f"p = {said}"


def test_the_test_says_how_many_patterns_it_saw() -> None:
    assert evidence_words(found()) == "p = 0.010 (sign flips of 12 graphs, 9,999 draws)"
    assert evidence_words(found(exact=True, n_patterns=4096)).endswith("all 4,096 patterns)")
    assert evidence_words(found(n_patterns=0, p_value=1.2e-5)) == (
        "p ≤ 0.000012 (sign flips of 12 graphs, an upper bound)"
    )
    assert evidence_words(found(p_value=math.nan, untested="because")) == "because"


def test_words_for_numbers_and_units() -> None:
    assert figures(-0.0001, 0.5) == ["−0.00010", "0.50000"]
    assert plural("block of prompts", 250) == "250 blocks of prompts"
    assert plural("graph", 1) == "1 graph"
    assert units_of("block of prompts") == "blocks of prompts"
    assert figures(math.nan) == ["–"]
    assert dominance_words(found(), "A", "B") == "A better on 9 graphs, B on 3, tied on 3"
    assert effect_words(found(effect=math.inf)).startswith("d_z is infinite")
    assert effect_words(found()) == paired_words(found()) == ""
    assert found(effect=math.inf).to_json()["effect"] is None


def test_rows_without_a_test_do_not_count_in_a_correction() -> None:
    rows = corrected([found(), found(p_value=math.nan), found(p_value=0.04)], "holm")
    assert [row.n_tests for row in rows] == [2, 2, 2]
    assert rows[0].p_corrected == pytest.approx(0.02)
    assert math.isnan(rows[1].p_corrected)
