"""TS2 protocol against a plain evaluation: graph by graph, walk by walk, with scipy.

    python -m benchmarks_perf.ts2_protocol [--data FOLDER] [--rounds 5]

Ours is run in full: all metrics, both variants, all splits, intervals from 1000 resamples. The
plain evaluation computes the per-graph values of both variants for one metric, without intervals;
its time is multiplied by the number of metrics, which is exact for a loop over metrics. It is run
twice: with scipy's `spearmanr` and `ks_2samp` as they come, like the paper's released evaluators,
and lean, without the p-values that those compute and nobody reads. All run alternately in one
process on one thread, and CPU time is compared, so that a busy machine slows all alike. The
per-graph values must agree. Last, the Kolmogorov-Smirnov statistic and Spearman's correlation are
timed alone over all walks; exits with 1 where one of them misses its goal.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import ks_2samp, rankdata, spearmanr

from benchmarks.arrays import FloatArray
from benchmarks.schema import ScoreTable
from benchmarks.scores import read_scores
from benchmarks.statistics.resampling import ResamplingPlan
from benchmarks.ts2.answers import Ts2Answers
from benchmarks.ts2.benchmark import Ts2
from benchmarks.ts2.graph_measures import KEYS, MeasureKey
from benchmarks.ts2.protocol import graph_values, measure
from benchmarks_perf.ts2_statistics import Plain, compare

N_METRICS = 19
"""As many as the published table has; 12 of them are released."""
Sample = tuple[NDArray[np.intp], FloatArray]
"""Levels and scores of the images on one walk."""


@dataclass(frozen=True)
class Statistics:
    """The two statistics of samples from which the measures of a walk are made."""

    spearman: Callable[[FloatArray, FloatArray], float]
    ks: Callable[[FloatArray, FloatArray], float]


def scipy_spearman(x: FloatArray, y: FloatArray) -> float:
    """Spearman correlation with its p-value computed on the way."""
    return float(spearmanr(x, y).statistic)


def scipy_ks(a: FloatArray, b: FloatArray) -> float:
    """Kolmogorov-Smirnov statistic with its p-value computed on the way."""
    return float(ks_2samp(a, b).statistic)


def lean_spearman(x: FloatArray, y: FloatArray) -> float:
    """Spearman correlation."""
    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])


def lean_ks(a: FloatArray, b: FloatArray) -> float:
    """Kolmogorov-Smirnov statistic."""
    steps = np.concatenate([a, b])
    below_a = np.searchsorted(np.sort(a), steps, side="right") / len(a)
    below_b = np.searchsorted(np.sort(b), steps, side="right") / len(b)
    return float(np.abs(below_a - below_b).max())


SCIPY = Statistics(scipy_spearman, scipy_ks)
LEAN = Statistics(lean_spearman, lean_ks)


def plain_measures(
    levels: NDArray[np.intp],
    labels: Sequence[str],
    scores: FloatArray,
    statistics: Statistics = SCIPY,
) -> dict[MeasureKey, float]:
    """Every measure of one metric on one graph, written as the definitions read.

    Args:
        levels: shape (I,), error count of each image.
        labels: length I, node of each image.
        scores: shape (I,), higher is better; NaN where there is no score.
        statistics: how samples are compared.
    """
    paper = list(_walks(levels, labels, scores, roots=2))
    equation = list(_walks(levels, labels, scores, roots=1))
    sizes = np.array([len(y) for _, y in paper], dtype=float)
    scored = bool(np.isfinite(scores).any())
    rank, ks = statistics.spearman, statistics.ks
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


def plain_rank(levels: NDArray[np.intp], labels: Sequence[str], scores: FloatArray) -> float:
    """Rank, `paper`, of one metric on one graph, walk by walk with scipy."""
    walks = list(_walks(levels, labels, scores, roots=2))
    sizes = np.array([len(y) for _, y in walks], dtype=float)
    return _average([-_where_varied(scipy_spearman, *w) for w in walks], sizes * (sizes > 1))


def plain_separation(levels: NDArray[np.intp], labels: Sequence[str], scores: FloatArray) -> float:
    """Separation, `paper`, of one metric on one graph, walk by walk with scipy."""
    walks = list(_walks(levels, labels, scores, roots=2))
    sizes = np.array([len(y) for _, y in walks], dtype=float)
    return _average([_gaps(scipy_ks, *w, adjacent=False) for w in walks], sizes)


PLAIN_STATISTICS: dict[str, Plain] = {
    "Kolmogorov-Smirnov": plain_separation,
    "Spearman": plain_rank,
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


def plain_evaluation(
    scores: FloatArray, answers: Ts2Answers, statistics: Statistics = SCIPY
) -> dict[MeasureKey, FloatArray]:
    """`plain_measures` of one metric (N,) on every graph: arrays of shape (C,)."""
    nodes = answers.nodes
    levels = nodes["level"].to_numpy(dtype=np.intp)
    labels = nodes["label"].to_numpy(dtype=object)
    found = [
        plain_measures(levels[rows], labels[rows].tolist(), scores[rows], statistics)
        for rows in map(nodes.groupby("graph").indices.__getitem__, answers.clusters)
    ]
    return {key: np.array([values[key] for values in found]) for key in KEYS}


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


def _material(data: Path | None) -> tuple[str, ScoreTable, Ts2Answers]:
    if data is None:
        rng = np.random.default_rng(0)
        answers = random_answers(rng)
        return "random graphs", random_scores(rng, answers, N_METRICS), answers
    benchmark = Ts2()
    answers = benchmark.answers(data)
    scores = read_scores(data / "ts2" / "scores.csv", benchmark, answers)
    return "the released graphs and scores", _filled_up(scores), answers


def _filled_up(scores: ScoreTable) -> ScoreTable:
    """As many metrics as the paper has: released ones with noise added stand for the others."""
    rng = np.random.default_rng(0)
    table = scores.overall.copy()
    for k, name in enumerate(scores.metrics[: N_METRICS - len(scores.metrics)]):
        noise = rng.normal(scale=0.1 * table[name].std(), size=len(table))
        table[f"filler{k}"] = np.round(table[name] + noise, 2)
    return ScoreTable(table, directions=scores.directions)


def _seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def _compare(data: Path | None, rounds: int) -> bool:
    title, scores, answers = _material(data)
    plan = ResamplingPlan.for_revision("ts2", "perf", answers.clusters)
    first = scores.oriented()[scores.metrics[0]].to_numpy(dtype=np.float64)
    runs: dict[str, Callable[[], object]] = {
        "plain, scipy": lambda: plain_evaluation(first, answers, SCIPY),
        "plain, no p-values": lambda: plain_evaluation(first, answers, LEAN),
        "ours, per-graph values": lambda: graph_values(scores, answers),
        "ours, rows and intervals": lambda: measure(scores, answers, plan, "ts2", "perf"),
    }
    times = [{name: _seconds(run) for name, run in runs.items()} for _ in range(rounds)]
    seconds = {name: median(round_[name] for round_ in times) for name in runs}
    n_metrics = len(scores.metrics)
    scipy, lean = (n_metrics * seconds.pop(name) for name in ("plain, scipy", "plain, no p-values"))
    print(f"TS2 on {title}: {len(answers.clusters)} graphs, {len(answers.pair_ids)} images")
    print(f"CPU seconds for {n_metrics} metrics, one thread, median of {rounds} rounds")
    print(f"{'':28}{'seconds':>9}{'scipy / ours':>14}{'no p / ours':>14}")
    print(f"{'plain, scipy':28}{scipy:9.3f}   (one metric times {n_metrics})")
    print(f"{'plain, no p-values':28}{lean:9.3f}   (one metric times {n_metrics})")
    for name, ours in seconds.items():
        print(f"{name:28}{ours:9.3f}{scipy / ours:14.0f}{lean / ours:14.0f}")
    print(f"largest difference of a value {_largest_difference(first, scores, answers):.1e}")
    return compare(PLAIN_STATISTICS, first, answers, rounds)


def _largest_difference(first: FloatArray, scores: ScoreTable, answers: Ts2Answers) -> float:
    found, expected = graph_values(scores, answers).values, plain_evaluation(first, answers)
    return max(float(np.nanmax(np.abs(found[key][:, 0] - expected[key]))) for key in KEYS)


def _on_one_thread() -> None:
    """Start again with one BLAS thread: the number is fixed when numpy is loaded."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    if any(os.environ.get(name) != value for name, value in limits.items()):
        command = [sys.executable, "-m", "benchmarks_perf.ts2_protocol", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, **limits})


def main() -> int:
    """Print the tables; 0 where both statistics are as fast as they should be."""
    _on_one_thread()
    parser = argparse.ArgumentParser(description="TS2 protocol against a plain evaluation")
    named = os.environ.get("ASSAY_DATA")
    parser.add_argument("--data", type=Path, default=Path(named) if named else None)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with warnings.catch_warnings():
        # Of p-values for tiny samples, which are discarded.
        warnings.simplefilter("ignore", RuntimeWarning)
        return 0 if _compare(options.data, options.rounds) else 1


if __name__ == "__main__":
    sys.exit(main())
