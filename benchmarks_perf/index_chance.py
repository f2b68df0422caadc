"""What metrics that guess reach on the headline of a benchmark, by its own protocol.

    python -m benchmarks_perf.index_chance BENCHMARK ... [--data FOLDER] [--draws 200] [--seed 0]

Each draw is a metric whose scores are independent of everything, uniform in 0..1 and as good as
never tied. Printed are the mean of the headline over the draws, its standard error, the spread of
single draws and the largest of them. The means are the `chance` of the cards' scales; an index
that took another figure would give a guess more or less than nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.arrays import FloatArray
from benchmarks.registry import find, load_registry
from benchmarks.schema import Answers, Benchmark, ScoreTable

AT_ONCE = 20
"""Metrics per table, so that the memory a protocol needs for one table stays small."""


def guesses(answers: Answers, draws: int, rng: np.random.Generator) -> ScoreTable:
    """Scores of metrics that guess, uniform in 0..1, one column per draw."""
    scores = rng.random((len(answers.pair_ids), draws))
    names = [f"guess {i}" for i in range(draws)]
    return ScoreTable(pd.DataFrame(scores, index=list(answers.pair_ids), columns=names))


def headlines(benchmark: Benchmark, answers: Answers, table: ScoreTable) -> FloatArray:
    """The headline of every metric of the table, shape (metrics,)."""
    card = benchmark.card
    rows = benchmark.measure(table, answers, benchmark.plan(answers, n_resamples=1)).rows
    found = [row.value for row in rows if row.skill is None and card.headline.matches(row)]
    return np.array(found, np.float64)


def guessed(benchmark: Benchmark, data: Path | None, draws: int, seed: int) -> FloatArray:
    """Headlines of so many guessing metrics, shape (draws,)."""
    answers = benchmark.answers(data)
    rng = np.random.default_rng(seed)
    sizes = [min(AT_ONCE, draws - start) for start in range(0, draws, AT_ONCE)]
    parts = [headlines(benchmark, answers, guesses(answers, size, rng)) for size in sizes]
    return np.concatenate(parts)


def main() -> int:
    """Print one line per benchmark; 0 where every one of them could be measured."""
    parser = argparse.ArgumentParser(description="What guessing metrics reach on a headline")
    named = os.environ.get("ASSAY_DATA")
    parser.add_argument("benchmarks", nargs="+")
    parser.add_argument("--data", type=Path, default=Path(named) if named else None)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    registry = load_registry()
    print(f"{'benchmark':16}{'draws':>7}{'mean':>11}{'error':>10}{'spread':>10}{'largest':>11}")
    for name in options.benchmarks:
        found = guessed(find(registry, name), options.data, options.draws, options.seed)
        spread = float(found.std(ddof=1))
        error = spread / np.sqrt(found.size)
        print(f"{name:16}{found.size:7}{found.mean():11.6f}{error:10.6f}", end="")
        print(f"{spread:10.6f}{found.max():11.6f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
