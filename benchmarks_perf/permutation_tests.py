"""PERM-BOTH and pair swaps for one pair of metrics, against plain tests draw by draw.

    python -m benchmarks_perf.permutation_tests [--quick] [--rounds 5]

1,000 prompts x 20 images, gold the mean of three ratings on 1..5, 1,000 draws. A plain test swaps,
builds both hybrids and hands them to scipy, so its time is linear in the draws: a few are run and
multiplied by (K + 1) / (k + 1). Both sides run alternately in one process on one thread, and CPU
time is compared. Before that the p-values are: within three standard deviations of what two drawn
tests may differ by, from a plain test of 400 draws (`--quick`: 100).

The plain tests, and how to install another peer, are in `permutation_peers`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np

from benchmarks.arrays import FloatArray
from benchmarks.statistics.permutation.pair_nulls import Statistic
from benchmarks.statistics.permutation.pair_swaps import pair_swaps
from benchmarks.statistics.permutation.perm_both import perm_both
from benchmarks.statistics.permutation.result import PermutationTests
from benchmarks.statistics.permutation.right_pairs import ItemPairs
from benchmarks_perf.permutation_peers import (
    PlainTest,
    evaluator,
    evaluator_test,
    plain_correlation_test,
    plain_pair_swaps,
)

N_PROMPTS, N_IMAGES, N_DRAWS = 1000, 20, 1000
PROMPTS = np.repeat(np.arange(N_PROMPTS), N_IMAGES)


@dataclass(frozen=True)
class Gate:
    """A test of ours, the same test draw by draw, and how much faster ours has to be.

    Attributes:
        name: what is tested.
        ours: gives the result.
        plain: gives the two-sided p-value from so many draws.
        ratio: least ratio of times.
        timed_draws: draws of the plain test that are timed.
        checked: whether the plain p-value is compared, too.
    """

    name: str
    ours: Callable[[], PermutationTests]
    plain: PlainTest
    ratio: float
    timed_draws: int
    checked: bool = True


def board(n_metrics: int, noise: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """Scores (n, M) that follow the gold (n,) about equally well."""
    rng = np.random.default_rng(0)
    gold = rng.integers(1, 6, (N_PROMPTS * N_IMAGES, 3)).mean(axis=1)
    return gold[:, None] + noise * rng.normal(size=(gold.size, n_metrics)), gold


def gates() -> list[Gate]:
    """Gates 3, 4 and 5 of the performance anchors."""
    scores, gold = board(2)
    tied = np.round(scores * 10.0)
    module = evaluator()

    def correlation(
        name: str, statistic: Statistic, x: FloatArray, ratio: float, *, by_prompt: bool = False
    ) -> Gate:
        groups = PROMPTS if by_prompt else None
        width = N_IMAGES if by_prompt else gold.size
        plain = plain_correlation_test(statistic, x, gold, width)
        if module is not None:
            plain = evaluator_test(module, statistic, x, gold, width)
        return Gate(
            name,
            lambda: perm_both(x, gold, statistic, groups=groups, n_draws=N_DRAWS),
            plain,
            ratio,
            timed_draws=0 if by_prompt else 5,
            checked=not by_prompt,
        )

    pairs = ItemPairs(gold, np.arange(0, gold.size + 1, N_IMAGES))
    limits = [pairs.threshold(column) for column in scores.T]
    return [
        correlation("Pearson", "pearson", scores, 40),
        correlation("Spearman", "spearman", scores, 300),
        correlation("Kendall", "kendall", scores, 200),
        correlation("Kendall by prompt", "kendall", scores, 5000, by_prompt=True),
        Gate(
            "accuracy, pair swaps",
            lambda: pair_swaps(scores, gold, groups=PROMPTS),
            plain_pair_swaps(scores, gold, limits, N_IMAGES),
            3000,
            timed_draws=3,
        ),
        correlation(f"Spearman, {np.unique(tied).size} levels", "spearman", tied, 8),
    ]


def seconds(run: Callable[[], object]) -> float:
    """CPU seconds of this process."""
    start = time.process_time()
    run()
    return time.process_time() - start


def compare(rounds: int, checked_draws: int) -> bool:
    """Print the table; whether all gates hold."""
    tests = gates()
    times: list[list[tuple[float, float]]] = [[] for _ in tests]
    for _ in range(rounds):
        for gate, found in zip(tests, times, strict=True):
            draws = gate.timed_draws
            plain = seconds(lambda g=gate, k=draws: g.plain(k)) * (N_DRAWS + 1) / (draws + 1)  # type: ignore[misc]
            found.append((seconds(gate.ours), plain))
    print(f"CPU seconds on one thread for {N_DRAWS} draws, median of {rounds} rounds, interleaved")
    print(f"{'':24}{'plain':>10}{'ours':>9}{'ratio':>9}{'gate':>7}{'p plain':>10}{'p ours':>9}")
    passed = True
    for gate, found in zip(tests, times, strict=True):
        ratio = median(plain / ours for ours, plain in found)
        ours, plain = median(pair[0] for pair in found), median(pair[1] for pair in found)
        p = float(gate.ours().p_values[0, 1])
        peer = gate.plain(checked_draws) if gate.checked else float("nan")
        spread = 3.0 * np.sqrt(max(p * (1 - p), 1e-3) * (1 / checked_draws + 1 / N_DRAWS))
        good = ratio >= gate.ratio and not abs(p - peer) > spread
        passed &= good
        print(
            f"{gate.name:24}{plain:10.2f}{ours:9.4f}{ratio:9.0f}{gate.ratio:7.0f}"
            f"{peer:10.4f}{p:9.4f}  {'' if good else 'FAILED'}"
        )
    return passed


def on_one_thread(module: str) -> None:
    """Start again with one BLAS thread: the number is fixed when numpy is loaded."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    if any(os.environ.get(name) != value for name, value in limits.items()):
        command = [sys.executable, "-m", module, *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, **limits})


def main() -> int:
    """Print the table; 0 where all gates hold."""
    on_one_thread("benchmarks_perf.permutation_tests")
    parser = argparse.ArgumentParser(description="Permutation tests against plain ones")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="fewer draws to compare p-values")
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of hybrids that are constant within a prompt
        return 0 if compare(options.rounds, 100 if options.quick else 400) else 1


if __name__ == "__main__":
    sys.exit(main())
