"""Paired tests between each two of 30 metrics on 10,000 prompts against loops over scipy.

    python -m benchmarks_perf.paired_tests [--rounds 7]

Both sides run alternately in one process on one thread, CPU time is compared, for continuous scores
and for ratings with many ties. Scipy's Wilcoxon runs on 30 of the 435 pairs and its time is
multiplied; our time for it holds the dominance counts too. Results must agree to 1e-10. The whole
of `paired_many` with 1,000 resamples is timed beside them.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import combinations
from statistics import median

import numpy as np
from scipy import stats

from benchmarks.arrays import FloatArray
from benchmarks.statistics.paired import dominance
from benchmarks.statistics.paired_many import (
    PairedMany,
    paired_many,
    rank_statistics,
    t_statistics,
)
from benchmarks.statistics.resampling import ResamplingPlan

N_PROMPTS, N_METRICS, N_TIMED = 10_000, 30, 30
LIMIT_T, LIMIT_WILCOXON = 100.0, 1.5
PAIRS = list(combinations(range(N_METRICS), 2))
SOME = PAIRS[:: len(PAIRS) // N_TIMED][:N_TIMED]
_FACTOR = len(PAIRS) / N_TIMED


def scores(*, ties: bool) -> FloatArray:
    """Made-up metrics that see the same prompts: shape (prompts, metrics)."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=(N_PROMPTS, 1))
    drawn = common + rng.normal(size=(N_PROMPTS, N_METRICS)) + rng.normal(0, 0.02, N_METRICS)
    return np.round(drawn) if ties else drawn


def t_loop(values: FloatArray) -> FloatArray:
    """Statistics and p-values of scipy, one pair after the other."""
    by_metric = np.ascontiguousarray(values.T)
    return np.array([stats.ttest_rel(by_metric[a], by_metric[b]) for a, b in PAIRS])


def wilcoxon_loop(values: FloatArray) -> FloatArray:
    """The same of Wilcoxon's test, for some of the pairs."""
    by_metric = np.ascontiguousarray(values.T)
    return np.array([stats.wilcoxon(by_metric[a], by_metric[b]) for a, b in SOME])


def dominance_loop(values: FloatArray) -> FloatArray:
    """Shares of wins and losses, one pair after the other."""
    by_metric = np.ascontiguousarray(values.T)
    return np.array([dominance(by_metric[a], by_metric[b]) for a, b in PAIRS])


def _seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def _agree(values: FloatArray, found: PairedMany) -> bool:
    def ours(pairs: list[tuple[int, int]], *matrices: FloatArray) -> FloatArray:
        return np.array([[matrix[pair] for matrix in matrices] for pair in pairs])

    near = partial(np.allclose, rtol=1e-10, atol=1e-12)
    return (
        near(t_loop(values), ours(PAIRS, found.t, found.t_p))
        and near(wilcoxon_loop(values), ours(SOME, found.wilcoxon_w, found.wilcoxon_p))
        and np.array_equal(dominance_loop(values), ours(PAIRS, found.dominance, found.dominance.T))
    )


def _compare(name: str, values: FloatArray, rounds: int) -> bool:
    counts = ResamplingPlan(tuple(map(str, range(N_PROMPTS))), seed=0).counts
    runs: dict[str, Callable[[], object]] = {
        "t loop": partial(t_loop, values),
        "t": partial(t_statistics, values),
        "wilcoxon loop": partial(wilcoxon_loop, values),
        "ranks": partial(rank_statistics, values),
        "dominance loop": partial(dominance_loop, values),
        "all": partial(paired_many, values, counts),
    }
    for run in runs.values():
        run()
    times = [{key: _seconds(run) for key, run in runs.items()} for _ in range(rounds)]
    for time_of in times:
        time_of["wilcoxon loop"] *= _FACTOR
        time_of["rank loops"] = time_of["wilcoxon loop"] + time_of["dominance loop"]
    rows = [
        ("paired t", "t loop", "t", LIMIT_T),
        ("Wilcoxon", "wilcoxon loop", "ranks", LIMIT_WILCOXON),
        ("Wilcoxon and dominance", "rank loops", "ranks", LIMIT_WILCOXON),
    ]
    good = _agree(values, paired_many(values))
    print(f"{name}: same results to 1e-10: {'yes' if good else 'NO'}")
    for label, loop, one, limit in rows:
        theirs, ours = median(t[loop] for t in times), median(t[one] for t in times)
        ratio = median(t[loop] / t[one] for t in times)
        good &= ratio >= limit
        gate = f"(at least {limit:g}: {'yes' if ratio >= limit else 'NO'})"
        print(f"  {label:24}{1e3 * theirs:9.1f} ms{1e3 * ours:9.2f} ms{ratio:8.1f} x  {gate}")
    whole = median(t["all"] for t in times)
    print(f"  everything with 1,000 resamples {1e3 * whole:.0f} ms")
    return good


def _on_one_thread() -> None:
    """Start again with one BLAS thread: the number is fixed when numpy is loaded."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    if any(os.environ.get(name) != value for name, value in limits.items()):
        command = [sys.executable, "-m", "benchmarks_perf.paired_tests", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, **limits})


def main() -> int:
    """Print the table; 0 where results agree and the ratios reach their limits."""
    _on_one_thread()
    parser = argparse.ArgumentParser(description="Paired tests of all pairs against scipy loops")
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    print(f"{len(PAIRS)} pairs, {N_PROMPTS} prompts, CPU time on one thread: loop, ours, ratio")
    good = [
        _compare(name, scores(ties=ties), rounds)
        for name, ties in (("continuous scores", False), ("ratings with ties", True))
    ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
