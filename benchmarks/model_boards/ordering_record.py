"""A metric's record at ordering models: how many pairs of models it relates as people do (Gecko).

Two models are related by Wilcoxon's signed-rank test on their values of the same prompts, p < 0.001
two-sided: better, worse, or no significant difference. A metric is right about a pair where its
relation is that of the people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from benchmarks.arrays import FloatArray
from benchmarks.statistics.ordering import GECKO_LEVEL, Relation, relation

_DIGITS = 9
"""Mean ratings are fractions such as 13/3. Their differences are rounded to this many digits, so
that equal ones are ties in the test and not two floats side by side."""


@dataclass(frozen=True)
class PairRelation:
    """Two models, by people and by a metric.

    Attributes:
        first: one model.
        second: the other.
        people: 1 where people find the first better, -1 the second, 0 no significant difference.
        metric: likewise by the metric; None where no prompt of both has its scores.
        n_prompts: with ratings and scores of both.
    """

    first: str
    second: str
    people: Relation
    metric: Relation | None
    n_prompts: int


@dataclass(frozen=True)
class OrderingRecord:
    """All pairs of models that people rated on the same prompts.

    Attributes:
        pairs: each once, in the order of the models.
        level: below which a p-value is significant.
    """

    pairs: tuple[PairRelation, ...]
    level: float = GECKO_LEVEL

    @property
    def right(self) -> int:
        """Pairs that the metric relates as people do; one without scores is wrong."""
        return sum(pair.people == pair.metric for pair in self.pairs)

    @property
    def reversed(self) -> int:
        """Pairs that the metric orders significantly, and against the people's significant order."""
        return sum(pair.people * (pair.metric or 0) == -1 for pair in self.pairs)


def ordering_record(
    people: FloatArray, metric: FloatArray, models: Sequence[str], level: float = GECKO_LEVEL
) -> OrderingRecord:
    """Compare a metric's relations with the people's.

    Args:
        people: shape (P, M), mean rating of each prompt's image of each model; NaN where there is
            none.
        metric: shape (P, M), its scores, higher is better; NaN likewise.
        models: names, length M.
        level: of both tests.

    Raises:
        ValueError: the shapes differ.
    """
    if people.shape != metric.shape or people.shape[1:] != (len(models),):
        raise ValueError(f"ratings {people.shape}, scores {metric.shape}, {len(models)} models")
    pairs = []
    for a, b in combinations(range(len(models)), 2):
        rated = _differences(people, a, b)
        rated_prompts = np.isfinite(rated)
        if not rated_prompts.any():
            continue
        scored = np.where(rated_prompts, metric[:, a] - metric[:, b], np.nan)
        there = np.isfinite(scored)
        pairs.append(
            PairRelation(
                models[a],
                models[b],
                _related(rated, level),
                _related(scored, level) if there.any() else None,
                int(there.sum()),
            )
        )
    return OrderingRecord(tuple(pairs), level)


def _differences(values: FloatArray, a: int, b: int) -> FloatArray:
    return np.asarray(np.round(values[:, a] - values[:, b], _DIGITS))


def _related(differences: FloatArray, level: float) -> Relation:
    return relation(differences, np.zeros_like(differences), level)
