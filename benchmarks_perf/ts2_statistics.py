"""The two statistics of TS2 alone, over all walks of all graphs, against scipy walk by walk.

One metric on both sides. The plan of a graph's walks is made once and not timed: it serves every
metric. See `benchmarks_perf.ts2_protocol`, which prints this.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median

import numpy as np

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.ts2.answers import Ts2Answers
from benchmarks.ts2.graph_measures import rank_by_midranks, separation
from benchmarks.ts2.walks import PAPER, GraphWalks, graph_walks

Plain = Callable[[IntArray, list[str], FloatArray], float]
"""Value of one graph from levels (I,), nodes (I,) and scores (I,) of its images."""

GOALS = {"Kolmogorov-Smirnov": (50.0, 1e-12), "Spearman": (5.0, 1e-8)}
"""Least ratio of time, and largest difference of a value."""


@dataclass(frozen=True)
class PlannedGraph:
    """A graph's images, the scores of one metric, and its walks."""

    levels: IntArray
    labels: list[str]
    scores: FloatArray
    walks: GraphWalks


def planned_graphs(scores: FloatArray, answers: Ts2Answers) -> list[PlannedGraph]:
    """The graphs with the scores (N,) of one metric; images without a score stay out of walks."""
    nodes = answers.nodes
    levels = nodes["level"].to_numpy(dtype=np.intp)
    labels = nodes["label"].to_numpy(dtype=object)
    graphs = []
    for rows in map(nodes.groupby("graph").indices.__getitem__, answers.clusters):
        own, names = levels[rows], labels[rows].tolist()
        walks = graph_walks(own, names, np.isfinite(scores[rows]), PAPER)
        graphs.append(PlannedGraph(own, names, scores[rows], walks))
    return graphs


def separations(graphs: list[PlannedGraph]) -> FloatArray:
    """Mean Kolmogorov-Smirnov statistic of every graph."""
    found = []
    for graph in graphs:
        at_most = (graph.scores[:, None] <= graph.scores).astype(np.float64)
        found.append(separation(graph.walks, at_most[:, :, None])[0])
    return np.array(found)


def ranks(graphs: list[PlannedGraph]) -> FloatArray:
    """Mean negated Spearman correlation of every graph."""
    found = []
    for graph in graphs:
        filled = np.nan_to_num(graph.scores)
        balance = np.sign(filled - filled[:, None])[:, :, None]
        found.append(rank_by_midranks(graph.walks, balance, skip_single=True)[0])
    return np.array(found)


def compare(
    plain: Mapping[str, Plain], scores: FloatArray, answers: Ts2Answers, rounds: int
) -> bool:
    """Print both ratios; whether they and the values hold.

    Args:
        plain: by the names of `GOALS`.
        scores: shape (N,), of one metric, higher is better.
        answers: the graphs.
        rounds: how often both sides run in turn.
    """
    graphs = planned_graphs(scores, answers)
    print(f"\nStatistics of one metric over all walks, walks planned once, {rounds} rounds")
    print(f"{'':20}{'scipy s':>10}{'ours s':>10}{'ratio':>8}{'goal':>8}{'difference':>12}")
    passed = True
    for (name, (goal, tolerance)), ours in zip(GOALS.items(), (separations, ranks), strict=True):

        def by_walk(of_graph: Plain = plain[name]) -> FloatArray:
            return np.array([of_graph(g.levels, g.labels, g.scores) for g in graphs])

        times = [(_seconds(by_walk), _seconds(partial(ours, graphs))) for _ in range(rounds)]
        ratio = median(a / b for a, b in times)
        difference = float(np.nanmax(np.abs(by_walk() - ours(graphs))))
        holds = ratio >= goal and difference <= tolerance
        passed &= holds
        theirs, mine = median(a for a, _ in times), median(b for _, b in times)
        print(
            f"{name:20}{theirs:10.3f}{mine:10.4f}{ratio:8.1f}{f'>= {goal:.0f}':>8}"
            f"{difference:12.1e}  {'yes' if holds else 'NO'}"
        )
    return passed


def _seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start
