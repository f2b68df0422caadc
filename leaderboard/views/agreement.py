"""Agreement of compared metrics, cluster by cluster."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from benchmarks.comparison import plural
from benchmarks.schema import Card
from leaderboard.publication.item_scores import ItemReader
from leaderboard.publication.reader import View
from leaderboard.views.comparison import (
    MOST_PAIRS,
    ClusterReader,
    ClusterValues,
    Opponents,
    PairScoreReader,
)
from leaderboard.views.examples import answers_are_public

MOST_AGREEING = 12  # Metrics of the table of agreement: those compared, then the best of the board
MOST_CLUSTERS = 10  # Clusters that are listed where two metrics disagree
MOST_POINTS = 2000  # Points of the scatter plot; the clusters that are listed are always drawn
Missing = Literal["", "withheld", "no_clusters", "several_skills"]


@dataclass(frozen=True)
class Behind:
    """Reads what lies behind the values of a comparison."""

    clusters: ClusterReader  # the value of every cluster
    items: ItemReader  # the cases that clusters are in
    scores: PairScoreReader  # those of pairs, for measures without values of clusters
    # the cards of this installation; what one of them withholds is not shown either
    here: Mapping[str, Card]
    # submission to those of its metrics whose smaller scores are better
    lower: Callable[[], Mapping[str, Sequence[str]]]


@dataclass(frozen=True)
class ClusterGap:
    """A cluster on which two metrics differ."""

    cluster: str  # its id
    case: str  # id of the first example in it; empty where a benchmark shows none
    a: float  # value of the first metric
    b: float  # of the second

    @property
    def gap(self) -> float:
        """Value of the first less that of the second."""
        return self.a - self.b


@dataclass(frozen=True)
class ClusterComparison:
    """Two metrics on every cluster that both have a value on."""

    missing: Missing  # why there is nothing to show; empty where there is
    cluster: str  # what a cluster is, as `graph`
    n_clusters: int = 0  # how many both have
    points: tuple[tuple[float, float], ...] = ()  # values of the two, as many as are drawn
    # the clusters on which they differ most, the greatest difference first
    gaps: tuple[ClusterGap, ...] = ()


def compare_clusters(pair: Opponents, view: View, behind: Behind) -> ClusterComparison:
    """The first two metrics on every cluster."""
    choice, card = pair.choice, pair.choice.board.card
    if len(choice.skills) > 1:
        return ClusterComparison("several_skills", card.cluster)
    if not answers_are_public(card, behind.here):
        return ClusterComparison("withheld", card.cluster)
    cells = {cell.entry_id: cell for cell in choice.slices()[0]}
    wanted = [entry for entry in (pair.a, pair.b) if entry]
    found = behind.clusters.values(card, [cells[entry] for entry in wanted], view.version)
    if found is None:
        return ClusterComparison("no_clusters", card.cluster)
    two = found.of(*wanted)
    gaps = two.values[:, 0] - two.values[:, 1]
    # Stable, so that equal gaps keep the order of the data and a link shows the same list again.
    places = np.argsort(-np.abs(gaps), kind="stable")[:MOST_CLUSTERS]
    cases = _first_cases(card, behind)
    step = max(1, len(two.clusters) // MOST_POINTS)
    return ClusterComparison(
        missing="",
        cluster=card.cluster,
        n_clusters=len(two.clusters),
        points=tuple((float(a), float(b)) for a, b in two.values[::step]),
        gaps=tuple(
            ClusterGap(
                two.clusters[place],
                cases.get(two.clusters[place], ""),
                float(two.values[place, 0]),
                float(two.values[place, 1]),
            )
            for place in places
            if gaps[place] != 0.0
        ),
    )


def _first_cases(card: Card, behind: Behind) -> dict[str, str]:
    """Cluster to the first of its cases; empty where a benchmark shows none."""
    found = behind.items.cases(card)
    if found is None:
        return {}
    clusters = (found.clusters[place] for place in found.cluster_of)
    first: dict[str, str] = {}
    for cluster, case in zip(clusters, found.comparisons.case_ids, strict=True):
        first.setdefault(str(cluster), str(case))
    return first


@dataclass(frozen=True)
class Agreement:
    """Kendall's tau-b between each two of some metrics."""

    missing: Missing  # why there is none; empty where there is
    cluster: str  # what a cluster is, as `graph`
    entries: tuple[str, ...] = ()  # entry ids, those compared first
    # by row and column; None where one of the two is constant, or on the diagonal
    taus: tuple[tuple[float | None, ...], ...] = ()
    over: str = ""  # what it is computed over, with its number
    # whether that is the scores of pairs, since the measure has no value of a cluster
    of_scores: bool = False
    n_chosen: int = 0  # how many of the metrics are compared; the others are the best of the board

    @property
    def most_pairs(self) -> int:
        """Pairs that are looked at where scores are compared."""
        return MOST_PAIRS


def agreement(pair: Opponents, view: View, behind: Behind) -> Agreement:
    """How much alike the compared metrics, and the best of the board, order its clusters."""
    choice, card = pair.choice, pair.choice.board.card
    if len(choice.skills) > 1:
        return Agreement("several_skills", card.cluster)
    if not answers_are_public(card, behind.here):
        return Agreement("withheld", card.cluster)
    wanted = tuple(dict.fromkeys((*pair.chosen, *pair.options)))[:MOST_AGREEING]
    cells = {cell.entry_id: cell for cell in choice.slices()[0]}
    found = behind.clusters.values(card, [cells[entry] for entry in wanted], view.version)
    of_scores = found is None
    if found is None:
        entries = [view.entries[entry] for entry in wanted]
        found = behind.scores.values(card, entries, behind.lower())
    if found is None:
        return Agreement("no_clusters", card.cluster)
    return Agreement(
        missing="",
        cluster=card.cluster,
        entries=found.entries,
        taus=_taus(found),
        over=plural("pair of an image and a prompt" if of_scores else card.cluster,
                    len(found.clusters)),
        of_scores=of_scores,
        n_chosen=sum(entry in found.entries for entry in pair.chosen),
    )  # fmt: skip


def _taus(found: ClusterValues) -> tuple[tuple[float | None, ...], ...]:
    return tuple(
        tuple(
            None if row == column or not math.isfinite(tau) else float(tau)
            for column, tau in enumerate(line)
        )
        for row, line in enumerate(found.taus())
    )
