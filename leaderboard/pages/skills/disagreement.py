"""Disagreement between benchmarks on a skill: pairs of metrics they order oppositely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from leaderboard.pages.shown.identities import Identity
from leaderboard.pages.skills.base import SkillsBase

MOST_METRICS = 20
"""The first of the list: whom a visitor would choose among."""
_ENDS = (0.025, 0.975)


@dataclass(frozen=True)
class Opposed:
    """Two metrics that two parts order in opposite ways, each beyond its resampling error.

    Attributes:
        one: above the other by `by_first`.
        other: above `one` by `by_second`.
        by_first: a part.
        by_second: a part.
    """

    one: Identity
    other: Identity
    by_first: str
    by_second: str


@dataclass(frozen=True)
class Disagreement:
    """How often parts contradict each other.

    Attributes:
        opposed: the pairs that do, one entry for each pair of metrics.
        n_pairs: pairs of metrics that two parts both order beyond resampling error.
    """

    opposed: tuple[Opposed, ...]
    n_pairs: int


def disagreement(
    base: SkillsBase, parts: Sequence[str], metrics: Sequence[Identity]
) -> Disagreement:
    """Compare the orders of the parts, pair of metrics by pair.

    A part orders two metrics where the 95 % percentile interval of their difference, over its joint
    resamples, leaves out 0. These are intervals of single differences, corrected for nothing: the
    count says where to look and proves no single case.

    Args:
        base: the parts.
        parts: those with a weight.
        metrics: in the order of the list; the first `MOST_METRICS` are compared.
    """
    shown = tuple(metrics)[:MOST_METRICS]
    signs = {name: _signs(base, name, shown) for name in parts if name in base.draws}
    opposed, n_pairs = [], 0
    for i, j in combinations(range(len(shown)), 2):
        ordered = [(name, sign[i, j]) for name, sign in signs.items() if sign[i, j]]
        n_pairs += len(ordered) > 1
        above = [name for name, sign in ordered if sign > 0]
        below = [name for name, sign in ordered if sign < 0]
        if above and below:
            opposed.append(Opposed(shown[i], shown[j], above[0], below[0]))
    return Disagreement(tuple(opposed), n_pairs)


def _signs(base: SkillsBase, name: str, metrics: Sequence[Identity]) -> NDArray[np.int8]:
    """Shape (n, n): 1 where the row is above the column beyond error, -1 below, 0 undecided."""
    who, drawn = base.draws[name]
    place: Mapping[Identity, int] = {one: i for i, one in enumerate(who)}
    there = [(k, place[one]) for k, one in enumerate(metrics) if one in place]
    found = np.zeros((len(metrics), len(metrics)), np.int8)
    for (k, row), (m, other) in combinations(there, 2):
        gap = drawn[row] - drawn[other]
        gap = gap[np.isfinite(gap)]
        if not gap.size:
            continue
        low, high = np.quantile(gap, _ENDS)
        found[k, m] = 1 if low > 0 else -1 if high < 0 else 0
        found[m, k] = -found[k, m]
    return found
