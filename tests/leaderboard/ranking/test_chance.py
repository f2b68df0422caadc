"""When a metric is significantly above chance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.schema import Card, MeasureInfo, Scale
from leaderboard.ranking.cells import (
    beats_chance,
    cell_at_or_below_chance,
    cell_beats_chance,
    chance_of,
    is_at_or_below_chance,
    too_few,
)
from tests.leaderboard.models.made_up_models import cell, metric_card

ABOVE, BELOW, NEITHER = (True, False), (False, True), (False, False)


@pytest.mark.parametrize(
    ("low", "high", "chance", "rises", "found"),
    [
        (0.1, 0.3, 0.0, True, ABOVE), (0.0, 0.3, 0.0, True, NEITHER),
        (-0.1, 0.3, 0.0, True, NEITHER), (-0.3, 0.0, 0.0, True, BELOW),
        (-0.3, -0.1, 0.0, True, BELOW), (0.0, 0.0, 0.0, True, BELOW),
        (0.4, 0.6, 0.5, True, NEITHER), (0.51, 0.6, 0.5, True, ABOVE),
        (0.1, 0.3, 0.5, False, ABOVE), (0.1, 0.5, 0.5, False, NEITHER),
        (0.5, 0.7, 0.5, False, BELOW), (None, 0.3, 0.0, True, NEITHER),
        (0.1, None, 0.0, True, NEITHER), (None, None, 0.0, False, NEITHER),
        (math.nan, 0.3, 0.0, True, NEITHER), (0.1, math.nan, 0.0, True, NEITHER),
    ],
)  # fmt: skip
def test_the_whole_interval_lies_above_chance_or_at_and_below_it(
    low: float | None, high: float | None, chance: float, rises: bool, found: tuple[bool, bool]
) -> None:
    above = beats_chance(low, high, chance, higher_is_better=rises)
    below = is_at_or_below_chance(low, high, chance, higher_is_better=rises)
    assert (above, below) == found


def card(chance: float | None, scale: float | None, *, rises: bool = True) -> Card:
    measure = MeasureInfo(title="t", meaning="m", chance=chance, higher_is_better=rises)
    own = None if scale is None else Scale(chance=scale, ceiling=1.0, ceiling_is="c", source="s")
    return metric_card(headline_scale=own, measures={"srcc": measure, "other": measure})


def test_the_chance_level_of_the_headline_is_that_of_its_scale() -> None:
    both = card(0.1, 0.4)
    assert [chance_of(both, name) for name in ("srcc", "other", "no measure")] == [0.4, 0.1, None]
    assert chance_of(card(0.1, None), "srcc") == 0.1


@pytest.mark.parametrize(
    ("own", "measure", "low", "above", "below"),
    [
        (card(0.1, 0.4), "other", 0.2, True, False),
        (card(0.1, 0.4), "srcc", 0.2, False, True),
        (card(0.5, None, rises=False), "srcc", 0.2, True, False),
        (card(0.5, None, rises=False), "srcc", 0.6, False, True),
        (card(0.1, None), "srcc", None, False, False),
        (card(None, None), "srcc", 0.2, None, False),  # without a chance level nothing is known
    ],
)
def test_a_cell_is_held_against_the_chance_level_of_its_measure(
    own: Card, measure: str, low: float | None, above: bool | None, below: bool
) -> None:
    one = cell(measure=measure, ci_low=low, ci_high=low and low + 0.1)
    assert cell_beats_chance(own, one) is above
    assert cell_at_or_below_chance(own, one) is below


@pytest.mark.parametrize(
    ("value", "low", "among", "found"),
    [
        (0.39, 0.08, 1, True),
        (0.39, 0.08, 5, False),  # 0.39 - 0.31 * 2.576 / 1.960 is below 0.
        (0.39, 0.12, 5, True),
        (0.39, 0.12, 50, False),
    ],
)
def test_the_best_of_many_must_be_further_up(
    value: float, low: float, among: int, found: bool
) -> None:
    assert beats_chance(low, 0.7, value=value, among=among) is found
    assert beats_chance(-0.7, -low, value=-value, among=among, higher_is_better=False) is found


def test_among_many_guesses_hardly_one_is_above_chance() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(2000, 19))
    lows = values - 1.96
    picked = [
        any(beats_chance(low, low + 3.92, value=v, among=19) for v, low in zip(*one, strict=True))
        for one in zip(values, lows, strict=True)
    ]
    assert 0.01 < np.mean(picked) < 0.04  # 2.5 % for all 19 together, one side.


@pytest.mark.parametrize(("clusters", "numbers"), [([], ()), ([8, 3], ()), ([7, 3], ("7", "8"))])
def test_too_few_clusters_are_said_with_numbers(
    clusters: list[int], numbers: tuple[str, ...]
) -> None:
    said = too_few([cell(n_clusters=n) for n in clusters], "graph")
    assert bool(said) is bool(numbers)
    assert {*numbers, "graphs"} <= set(said.replace("(", "").replace(";", "").split()) or not said
