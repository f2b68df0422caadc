"""Pairs of metrics: every tested difference of a ranking and its corrected p-value."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from leaderboard.ranking.rank_ranges import LEVEL
from leaderboard.ranking.slices import Ranked

MOST_METRICS = 30
"""More rows and columns than this cannot be read; the tests count in the correction all the same."""


class Pair(NamedTuple):
    """One test, as the matrix and its CSV show it."""

    a: str  # entry that stands higher on the board
    b: str  # the other
    difference: float  # value of a less that of b
    p_value: float  # two-sided, 0..1
    p_holm: float  # after Holm's correction over all pairs of the ranking
    n_units: int  # blocks of clusters in which the two differ
    n_patterns: int  # patterns of signs behind the p-value; 0 where it is an upper bound
    exact: bool  # whether those are all patterns

    @property
    def significant(self) -> bool:
        """Whether the two differ at 5 % of all tests of the ranking together."""
        return self.p_holm < LEVEL


def tested_places(
    ranked: Ranked,
    most: int | None = MOST_METRICS,
    among: Collection[str] | None = None,
) -> list[int]:
    """Places of the metrics that were tested, in board order, the first `most` of them."""
    tested = np.flatnonzero(np.isfinite(ranked.ordering.corrected).any(axis=1)).tolist()
    looked_at = [p for p in tested if among is None or ranked.cells[p].entry_id in among]
    return looked_at[:most]


def pairs(
    ranked: Ranked,
    most: int | None = MOST_METRICS,
    among: Collection[str] | None = None,
) -> tuple[Pair, ...]:
    """The tests between the first metrics of a ranking, in board order."""
    tests = ranked.ordering.tests
    places = np.array(tested_places(ranked, most, among), np.intp)
    if tests is None or len(places) < 2:
        return ()
    first, second = (places[side] for side in np.triu_indices(len(places), 1))
    columns = (
        tests.difference,
        tests.p_value,
        ranked.ordering.corrected,
        tests.n_units,
        tests.n_patterns,
        tests.exact,
    )
    names = [cell.entry_id for cell in ranked.cells]
    return tuple(
        Pair(names[a], names[b], *values)
        for a, b, *values in zip(
            first.tolist(),
            second.tolist(),
            *(column[first, second].tolist() for column in columns),
            strict=True,
        )
    )
