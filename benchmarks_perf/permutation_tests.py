"""PERM-BOTH and pair swaps for one pair of metrics, against plain tests draw by draw.

    python -m benchmarks_perf.permutation_tests [--quick] [--rounds 5]

1,000 prompts x 20 images, gold the mean of three ratings on 1..5, 1,000 draws. A plain test swaps,
builds both hybrids and hands them to scipy, so its time is linear in the draws: a few are run and
multiplied by (K + 1) / (k + 1). All sides run alternately in one process on one thread, and CPU
time is compared. P-values have to be within three standard deviations of what two drawn tests may
differ by, from a plain test of 400 draws (`--quick`: 100).

Where the evaluator mt-metrics-eval is installed (only for these benchmarks, at commit 544e0fc; how
is said in `mt_metrics_eval_peer`), its `PermutationSigDiff` and `PairwisePermutationSigDiff` run
beside the plain tests: the gates hold for the faster of both, and its hybrids and p-values are
compared as in `mt_metrics_eval_agreement`.
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
from benchmarks_perf.mt_metrics_eval_agreement import permutations
from benchmarks_perf.mt_metrics_eval_peer import Board, Evaluator
from benchmarks_perf.permutation_peers import PlainTest, plain_correlation_test, plain_pair_swaps

N_PROMPTS, N_IMAGES, N_DRAWS = 1000, 20, 1000
PROMPTS = np.repeat(np.arange(N_PROMPTS), N_IMAGES)


@dataclass(frozen=True)
class Gate:
    """A test of ours, the same test draw by draw, and how much faster ours has to be.

    Attributes:
        name: what is tested.
        ours: gives the result.
        plain: gives the two-sided p-value from so many draws.
        package: runs so many draws of mt-metrics-eval; None where that is not installed.
        ratio: least ratio of times.
        timed_draws: draws of the plain test that are timed.
        checked: whether the plain p-value is compared, too.
    """

    name: str
    ours: Callable[[], PermutationTests]
    plain: PlainTest
    package: Callable[[int], object] | None
    ratio: float
    timed_draws: int
    checked: bool = True


def board(n_metrics: int, noise: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """Scores (n, M) that follow the gold (n,) about equally well."""
    rng = np.random.default_rng(0)
    gold = rng.integers(1, 6, (N_PROMPTS * N_IMAGES, 3)).mean(axis=1)
    return gold[:, None] + noise * rng.normal(size=(gold.size, n_metrics)), gold


def gates(peer: Evaluator | None) -> list[Gate]:
    """Gates 3, 4 and 5 of the performance anchors."""
    scores, gold = board(2)
    tied = np.round(scores * 10.0)
    sizes = np.full(N_PROMPTS, N_IMAGES)

    def correlation(
        name: str, statistic: Statistic, x: FloatArray, ratio: float, *, by_prompt: bool = False
    ) -> Gate:
        groups = PROMPTS if by_prompt else None
        width = N_IMAGES if by_prompt else gold.size
        rated = Board(x, gold, sizes if by_prompt else None)
        return Gate(
            name,
            lambda: perm_both(x, gold, statistic, groups=groups, n_draws=N_DRAWS),
            plain_correlation_test(statistic, x, gold, width),
            (lambda draws: peer.swapped(rated, statistic, draws)) if peer else None,
            ratio,
            timed_draws=0 if by_prompt else 5,
            checked=not by_prompt,
        )

    pairs = ItemPairs(gold, np.arange(0, gold.size + 1, N_IMAGES))
    limits = [pairs.threshold(column) for column in scores.T]
    rated = Board(scores, gold, sizes)
    return [
        correlation("Pearson", "pearson", scores, 40),
        correlation("Spearman", "spearman", scores, 300),
        correlation("Kendall", "kendall", scores, 200),
        correlation("Kendall by prompt", "kendall", scores, 5000, by_prompt=True),
        Gate(
            "accuracy, pair swaps",
            lambda: pair_swaps(scores, gold, groups=PROMPTS),
            plain_pair_swaps(scores, gold, limits, N_IMAGES),
            (lambda draws: peer.swapped_pairs(rated, draws, limits=(limits[0], limits[1])))
            if peer and peer.swaps_pairs
            else None,
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


def projected(run: Callable[[int], object], draws: int) -> float:
    """CPU seconds of all draws of the package, from those of none and of a few."""
    fixed = seconds(lambda: run(0))
    return fixed + max(seconds(lambda: run(draws)) - fixed, 0.0) / draws * N_DRAWS


@dataclass(frozen=True)
class Round:
    """CPU seconds of ours, of the plain test and of the package; NaN where it is not there."""

    ours: float
    plain: float
    package: float

    @classmethod
    def of(cls, gate: Gate) -> Round:
        """Time all sides, one after the other."""
        draws = gate.timed_draws
        plain = seconds(lambda: gate.plain(draws)) * (N_DRAWS + 1) / (draws + 1)
        package = projected(gate.package, max(draws, 1)) if gate.package else float("nan")
        return cls(seconds(gate.ours), plain, package)


def compare(peer: Evaluator | None, rounds: int, checked_draws: int) -> bool:
    """Print the table; whether all gates hold."""
    tests = gates(peer)
    times: list[list[Round]] = [[] for _ in tests]
    for _ in range(rounds):
        for gate, found in zip(tests, times, strict=True):
            found.append(Round.of(gate))
    print(f"CPU seconds on one thread for {N_DRAWS} draws, median of {rounds} rounds, interleaved")
    print(
        f"{'':24}{'plain':>10}{'package':>10}{'ours':>9}{'to plain':>10}{'to package':>11}"
        f"{'gate':>7}{'p plain':>10}{'p ours':>9}"
    )
    verdicts = [_row(gate, found, checked_draws) for gate, found in zip(tests, times, strict=True)]
    return all(verdicts)


def _row(gate: Gate, found: list[Round], checked_draws: int) -> bool:
    ratio = median(one.plain / one.ours for one in found)
    to_package = median(one.package / one.ours for one in found)
    p = float(gate.ours().p_values[0, 1])
    peer = gate.plain(checked_draws) if gate.checked else float("nan")
    spread = 3.0 * np.sqrt(max(p * (1 - p), 1e-3) * (1 / checked_draws + 1 / N_DRAWS))
    slower = not (ratio >= gate.ratio) or to_package < gate.ratio
    good = not slower and not abs(p - peer) > spread
    print(
        f"{gate.name:24}{median(one.plain for one in found):10.2f}"
        f"{median(one.package for one in found):10.2f}{median(one.ours for one in found):9.4f}"
        f"{ratio:10.0f}{to_package:11.0f}{gate.ratio:7.0f}{peer:10.4f}{p:9.4f}"
        f"  {'' if good else 'FAILED'}",
        flush=True,
    )
    return good


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
        peer, draws = Evaluator.installed(), 100 if options.quick else 400
        good = compare(peer, options.rounds, draws)
        if peer is not None:
            good &= permutations(peer, draws)
        return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
