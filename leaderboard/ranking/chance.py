"""Comparison of values with chance: the one rule of pages, tables and judges."""

from __future__ import annotations

import math
from statistics import NormalDist

from benchmarks.schema import Card
from leaderboard.ranking.cells import Cell


def chance_of(card: Card, measure: str) -> float | None:
    """What a metric that guesses gets by a measure; None where the card does not say."""
    if measure == card.headline.measure and card.headline_scale is not None:
        return card.headline_scale.chance
    known = card.measures.get(measure)
    return known.chance if known else None


def beats_chance(
    low: float | None,
    high: float | None,
    chance: float = 0.0,
    *,
    higher_is_better: bool = True,
    value: float | None = None,
    among: int = 1,
) -> bool:
    """Whether a 95 % interval lies wholly above chance; False where there is no interval.

    Whoever picks from many metrics finds one above chance by luck: `among` widens the interval to
    95 % for all of them together (Bonferroni, by the ratio of normal quantiles, as the intervals
    behind it are not kept at every level).
    """
    worst = low if higher_is_better else high
    if worst is None or not _is_interval(low, high):
        return False
    if among > 1 and value is not None:
        worst = value + (worst - value) * _quantile(among) / _quantile(1)
    return worst > chance if higher_is_better else worst < chance


def is_at_or_below_chance(
    low: float | None, high: float | None, chance: float = 0.0, *, higher_is_better: bool = True
) -> bool:
    """Whether a 95 % interval lies wholly at or below chance; False where there is no interval."""
    best = high if higher_is_better else low
    if best is None or not _is_interval(low, high):
        return False
    return best <= chance if higher_is_better else best >= chance


def cell_beats_chance(card: Card, cell: Cell, among: int = 1) -> bool | None:
    """Whether a value on a board is significantly above chance; None where chance is not known."""
    chance = chance_of(card, cell.measure)
    if chance is None:
        return None
    rises = card.higher_is_better(cell.measure)
    return beats_chance(
        cell.ci_low, cell.ci_high, chance, higher_is_better=rises, value=cell.value, among=among
    )


def _quantile(among: int) -> float:
    """Of the normal distribution, for a two-sided 95 % interval of so many together."""
    return NormalDist().inv_cdf(1 - 0.025 / among)


def _is_interval(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and math.isfinite(low) and math.isfinite(high)
