"""The index over benchmarks against a plain pandas loop, as a visitor moves a weight.

    python -m benchmarks_perf.index_speed [--metrics 200] [--benchmarks 16] [--rounds 5]

200 metrics on 16 benchmarks with 1,000 resamples each; a tenth of them lack some. Both sides
start from rescaled headlines with their resamples, as they are after a page has been opened. The
plain form averages each metric's resamples with pandas, benchmark by benchmark, and takes its
interval; then it ranks the metrics with full coverage in each resample. Ours works out all that,
the common index, P(best), and Borda's count with its interval and ranks besides. CPU seconds on
one thread, sides interleaved, median of per-round ratios; values, intervals and ranks must agree.
Preparation, once per page and not per weight, is timed apart.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import TypeVar

import numpy as np
import pandas as pd

from benchmarks.schema import Scale
from leaderboard.ranking.index import Comparison, Headlines

N_RESAMPLES = 1000
PATCHY = 0.1
"""Share of the metrics that lack benchmarks, about a third of them each."""
LIMIT_SECONDS = 0.1
_T = TypeVar("_T")


def made_up(n_metrics: int, n_benchmarks: int) -> list[Headlines]:
    """Headlines around the worth of each metric; a few metrics lack some benchmarks."""
    rng = np.random.default_rng(0)
    worth = rng.random(n_metrics)
    scale = Scale(chance=0.2, ceiling=0.8, ceiling_is="made up", source="made up")
    patchy = rng.random(n_metrics) < PATCHY
    boards = []
    for k in range(n_benchmarks):
        has = np.flatnonzero(~patchy | (rng.random(n_metrics) < 2 / 3))
        values = worth[has] + 0.1 * rng.normal(size=has.size)
        resamples = values[:, None] + 0.05 * rng.normal(size=(has.size, N_RESAMPLES))
        names = tuple(f"metric {i:03}" for i in has)
        boards.append(Headlines(f"benchmark {k:02}", scale, names, values, resamples))
    return boards


def prepared(boards: list[Headlines]) -> dict[str, tuple[pd.Series, pd.DataFrame]]:
    """Rescaled headlines and their resamples for the plain form."""
    found = {}
    for board in boards:
        length = board.scale.ceiling - board.scale.chance
        values = (pd.Series(board.values, list(board.metrics)) - board.scale.chance) / length
        resamples = pd.DataFrame(board.resamples, list(board.metrics))
        found[board.benchmark] = values, (resamples - board.scale.chance) / length
    return found


def plain(
    tables: dict[str, tuple[pd.Series, pd.DataFrame]], weights: dict[str, float]
) -> pd.DataFrame:
    """Value, interval, rank and range of each metric, as the definition reads."""
    rows, draws = {}, {}
    for metric in sorted({name for values, _ in tables.values() for name in values.index}):
        there = [name for name, (values, _) in tables.items() if metric in values.index]
        total = sum(weights[name] for name in there)
        value = sum(weights[name] * tables[name][0][metric] for name in there) / total
        drawn = sum(weights[name] * tables[name][1].loc[metric] for name in there) / total
        rows[metric] = [value, *drawn.quantile([0.025, 0.975])]
        if len(there) == len(tables):
            draws[metric] = drawn
    table = pd.DataFrame(rows, index=["value", "low", "high"]).T
    ranks = pd.DataFrame(draws).rank(axis=1, method="min", ascending=False)
    table["rank"] = table.loc[list(draws), "value"].rank(method="min", ascending=False)
    table["best"] = ranks.quantile(0.025, interpolation="nearest")
    table["worst"] = ranks.quantile(0.975, interpolation="nearest")
    return table


def ours(comparison: Comparison, weights: dict[str, float]) -> pd.DataFrame:
    """The same columns from `Comparison.standings`."""
    columns = ["value", "low", "high", "rank", "best", "worst"]
    rows = {s.metric: [*s.index, *(s.rank or [np.nan] * 3)] for s in comparison.standings(weights)}
    return pd.DataFrame(rows, index=columns).T.sort_index()


def _timed(run: Callable[[], _T]) -> tuple[float, _T]:
    start = time.process_time()
    found = run()
    return time.process_time() - start, found


def _on_one_thread() -> None:
    """Start again with one BLAS thread: the number is fixed when numpy is loaded."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    if any(os.environ.get(name) != value for name, value in limits.items()):
        command = [sys.executable, "-m", "benchmarks_perf.index_speed", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, **limits})


def main() -> int:
    """Print the table; 0 where both sides agree and ours is fast enough."""
    _on_one_thread()
    parser = argparse.ArgumentParser(description="The index against a plain pandas loop")
    parser.add_argument("--metrics", type=int, default=200)
    parser.add_argument("--benchmarks", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    boards = made_up(options.metrics, options.benchmarks)
    once, comparison = _timed(lambda: Comparison(boards))
    tables = prepared(boards)
    rng = np.random.default_rng(1)
    times, agree = [], True
    for _ in range(options.rounds):
        weights = {board.benchmark: float(rng.random()) for board in boards}
        slow, expected = _timed(lambda w=weights: plain(tables, w))  # type: ignore[misc]
        fast, found = _timed(lambda w=weights: ours(comparison, w))  # type: ignore[misc]
        times.append((slow, fast))
        agree &= bool(np.allclose(expected, found, rtol=0, atol=1e-9, equal_nan=True))
    seconds, ratio = median(fast for _, fast in times), median(slow / fast for slow, fast in times)
    print(f"CPU seconds on one thread, median of {options.rounds} rounds, interleaved")
    print(f"once per page                 {once:8.3f}")
    print(f"plain pandas, per weight      {median(slow for slow, _ in times):8.3f}")
    print(f"ours, per weight              {seconds:8.3f}")
    print(f"ratio                         {ratio:8.1f}")
    print(f"same values, intervals, ranks: {'yes' if agree else 'NO'}")
    quick = seconds < LIMIT_SECONDS
    print(f"below {LIMIT_SECONDS} s: {'yes' if quick else 'NO'}")
    return 0 if agree and quick else 1


if __name__ == "__main__":
    sys.exit(main())
