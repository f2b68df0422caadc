"""The TS2 protocol against a plain evaluation: graph by graph, walk by walk, with scipy.

The plain evaluation computes the per-graph values of both variants for one metric, without
intervals; its time is multiplied by the number of metrics, which is exact for a loop over metrics.
It runs scipy's `spearmanr` and `ks_2samp` as they come, with p-values that nobody reads, like the
paper's released evaluators.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise, product
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import ks_2samp, rankdata, spearmanr

from benchmarks.arrays import FloatArray
from benchmarks.schema import ScoreTable
from benchmarks.scores import read_scores
from benchmarks.statistics.resampling import ResamplingPlan
from benchmarks.ts2.load import Ts2Answers
from benchmarks.ts2.measures import (
    KEYS,
    MeasureKey,
)
from benchmarks.ts2.protocol import Ts2, graph_values
from benchmarks_perf.measuring import Figure, interleaved

N_METRICS = 19
"""As many as the published table has; 12 of them are released."""
Sample = tuple[NDArray[np.intp], FloatArray]
"""Levels and scores of the images on one walk."""


def ts2_protocol(rounds: int = 2, data: Path | None = None) -> Iterator[Figure]:
    """All metrics, variants and splits, with intervals from 1,000 resamples."""
    scores, answers = _material(data)
    plan = ResamplingPlan.for_revision("ts2", "perf", answers.clusters)
    first = scores.oriented()[scores.metrics[0]].to_numpy(dtype=np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of p-values of tiny samples
        found, expected = graph_values(scores, answers).values, plain_evaluation(first, answers)
        apart = max(float(np.nanmax(np.abs(found[key][:, 0] - expected[key]))) for key in KEYS)
        yield Figure("values of one graph, largest difference", apart, at_most=1e-8)
        sides = {
            "scipy": lambda: plain_evaluation(first, answers),
            "values": lambda: graph_values(scores, answers),
            "rows": lambda: Ts2().measure(scores, answers, plan),
        }
        times = interleaved(sides, rounds)
    times = times.scaled("scipy", len(scores.metrics))
    yield times.compared("values by graph", "scipy", "values", at_least=100)
    yield times.compared("rows with intervals", "scipy", "rows", at_least=100)


def _spearman(x: FloatArray, y: FloatArray) -> float:
    return float(spearmanr(x, y).statistic)


def _ks(a: FloatArray, b: FloatArray) -> float:
    return float(ks_2samp(a, b).statistic)


def plain_measures(
    levels: NDArray[np.intp],
    labels: Sequence[str],
    scores: FloatArray,
) -> dict[MeasureKey, float]:
    """Every measure of one metric on one graph, written as the definitions read.

    `levels` (I,): error count of each image. `scores` (I,): higher is better; NaN where there is no
    score.
    """
    paper = list(_walks(levels, labels, scores, roots=2))
    equation = list(_walks(levels, labels, scores, roots=1))
    sizes = np.array([len(y) for _, y in paper], dtype=float)
    scored = bool(np.isfinite(scores).any())
    rank, ks = _spearman, _ks
    return {
        ("rank", "paper"): _average([-_where_varied(rank, *w) for w in paper], sizes * (sizes > 1)),
        ("sep", "paper"): _average([_gaps(ks, *w, adjacent=False) for w in paper], sizes),
        ("delta", "paper"): _average([_drop(*w) for w in paper], sizes),
        ("rank", "equation"): _average(
            [-_where_varied(_lower_ranks, *w) for w in equation], scored
        ),
        ("sep", "equation"): _average([_gaps(ks, *w, adjacent=True) for w in equation], scored),
        ("delta", "equation"): _average([_drop(*w) for w in equation], scored),
        ("rank_midrank", "equation"): _average(
            [-_where_varied(rank, *w) for w in equation], scored
        ),
    }


def _walks(
    levels: NDArray[np.intp], labels: Sequence[str], scores: FloatArray, roots: int
) -> Iterator[Sample]:
    names = np.array(labels, dtype=object)
    nodes = [
        [
            np.flatnonzero((levels == level) & (names == n))
            for n in sorted(set(names[levels == level]))
        ]
        for level in np.unique(levels)
    ]
    for walk in product(*[nodes[0]] * (roots - 1), *nodes):
        images = np.concatenate(walk)
        images = images[np.isfinite(scores[images])]
        yield levels[images], scores[images]


def _average(values: Sequence[float], weights: FloatArray | bool) -> float:
    kept = np.broadcast_to(np.asarray(weights, dtype=float), (len(values),))
    return float(np.average(values, weights=kept)) if kept.sum() > 0 else float("nan")


def _where_varied(
    correlation: Callable[[FloatArray, FloatArray], float], x: NDArray[np.intp], y: FloatArray
) -> float:
    if len(set(x.tolist())) < 2 or len(set(y.tolist())) < 2:
        return 0.0
    return correlation(x.astype(np.float64), y)


def _lower_ranks(x: FloatArray, y: FloatArray) -> float:
    return float(np.corrcoef(rankdata(x, "min"), rankdata(y, "min"))[0, 1])


def _gaps(
    ks: Callable[[FloatArray, FloatArray], float],
    x: NDArray[np.intp],
    y: FloatArray,
    *,
    adjacent: bool,
) -> float:
    groups = [y[x == level] for level in np.unique(x)]
    found = [ks(a, b) for a, b in (pairwise(groups) if adjacent else combinations(groups, 2))]
    return float(np.mean(found)) if found else 0.0


def _drop(x: NDArray[np.intp], y: FloatArray) -> float:
    means = [y[x == level].mean() for level in np.unique(x)]
    return float(np.mean([a - b for a, b in pairwise(means)])) if len(means) > 1 else 0.0


def plain_evaluation(scores: FloatArray, answers: Ts2Answers) -> dict[MeasureKey, FloatArray]:
    """`plain_measures` of one metric (N,) on every graph: arrays of shape (C,)."""
    found = [
        plain_measures(levels, labels.tolist(), own)
        for levels, labels, own in _graphs(scores, answers)
    ]
    return {key: np.array([values[key] for values in found]) for key in KEYS}


def _graphs(
    scores: FloatArray, answers: Ts2Answers
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.object_], FloatArray]]:
    """Levels, nodes and scores of the images of each graph."""
    nodes = answers.nodes
    levels = nodes["level"].to_numpy(dtype=np.intp)
    labels = nodes["label"].to_numpy(dtype=object)
    for rows in map(nodes.groupby("graph").indices.__getitem__, answers.clusters):
        yield levels[rows], labels[rows], scores[rows]


def random_answers(rng: np.random.Generator, n_graphs: int = 165) -> Ts2Answers:
    """Graphs of about the size of those of TS2: 2 to 4 levels of 1 to 3 nodes of 1 to 6 images."""
    rows: list[tuple[str, str, str, int, str, str]] = []
    for graph in range(n_graphs):
        split = ("synth", "nat", "real")[graph * 3 // n_graphs]
        for level in range(int(rng.integers(2, 5))):
            for node in "abc"[: int(rng.integers(1, 4 if level else 3))]:
                for _ in range(int(rng.integers(1, 7))):
                    pair_id = f"{graph:03d}-{len(rows)}"
                    rows.append((pair_id, str(graph), f"{level}{node}", level, split, ""))
    names = ["pair_id", "graph", "label", "level", "split", "skill"]
    nodes = pd.DataFrame(rows, columns=names)
    return Ts2Answers(tuple(nodes["pair_id"]), tuple(map(str, range(n_graphs))), nodes)


def random_scores(rng: np.random.Generator, answers: Ts2Answers, n_metrics: int) -> ScoreTable:
    """Scores with two decimals, hence ties, that fall with the error count to varying degrees."""
    level = answers.nodes["level"].to_numpy(dtype=np.float64)[:, None]
    noise = rng.normal(size=(len(level), n_metrics))
    table = np.round(noise - level * np.linspace(0, 1, n_metrics), 2)
    names = [f"metric{k}" for k in range(n_metrics)]
    return ScoreTable(pd.DataFrame(table, index=list(answers.pair_ids), columns=names))


def _material(data: Path | None) -> tuple[ScoreTable, Ts2Answers]:
    """The released graphs and scores from a folder of data, or random ones."""
    if data is None:
        rng = np.random.default_rng(0)
        answers = random_answers(rng)
        return random_scores(rng, answers, N_METRICS), answers
    benchmark = Ts2()
    answers = benchmark.answers(data)
    scores = read_scores(data / "ts2" / "scores.csv", benchmark, answers)
    return _filled_up(scores), answers


def _filled_up(scores: ScoreTable) -> ScoreTable:
    """As many metrics as the paper has: released ones with noise added stand for the others."""
    rng = np.random.default_rng(0)
    table = scores.overall.copy()
    for k, name in enumerate(scores.metrics[: N_METRICS - len(scores.metrics)]):
        noise = rng.normal(scale=0.1 * table[name].std(), size=len(table))
        table[f"filler{k}"] = np.round(table[name] + noise, 2)
    return ScoreTable(table, directions=scores.directions)
