"""Correlations and agreement against plain evaluations, and a whole board of resamples.

    python -m benchmarks_perf.correlations [--quick] [--rounds 5]

The shape is that of EvalMuse: 1,000 prompts of 20 images, people's mean of three ratings from 1 to
5 with its ties, 30 continuous metrics, all made up. Both sides of a gate run alternately in one
process on one thread, CPU time is compared, and the figure is the median of the ratios of the
rounds. Results are compared first. Plain sides that take minutes run a part of their resamples and
are multiplied up, which is exact for a loop over resamples.

Then the board: flat Pearson, Spearman and Kendall of 30 metrics on all images and on 40 skills of
a quarter of the prompts each, in 1,000 bootstrap resamples and 250 blocks of prompts left out and
doubled; each coefficient in a process of its own, whose peak memory is reported. `--quick` takes
fewer rounds, metrics and skills, and multiplies up. Exits with 1 where a gate fails.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from statistics import median

import numpy as np
from scipy import stats

from benchmarks.arrays import FloatArray
from benchmarks.statistics.correlation import resampled_spearman
from benchmarks.statistics.grouped import Groups, resampled_grouped
from benchmarks.statistics.grouped_pairs import GroupedPairs
from benchmarks.statistics.pairwise import tie_calibrated
from benchmarks_perf.correlation_board import MODULE, board, in_own_process, measure_alone
from benchmarks_perf.made_up_ratings import (
    N_METRICS,
    N_PROMPTS,
    N_RESAMPLES,
    Material,
    bootstrap,
    seconds_of,
)
from benchmarks_perf.plain_correlations import (
    listed_grouped_calibration,
    plain_bootstrap_grouped_kendall,
    plain_bootstrap_spearman,
    plain_grouped_calibration,
)

FLAT_MIB = 200


def _ratio(plain: Callable[[], object], ours: Callable[[], object], rounds: int) -> FloatArray:
    """Median seconds of both sides and median of the ratios, shape (3,), as interleaved."""
    times = [(seconds_of(plain), seconds_of(ours)) for _ in range(rounds)]
    found = [median(a for a, _ in times), median(b for _, b in times)]
    return np.array([*found, median(a / b for a, b in times)])


def _report(gate: str, figures: FloatArray, passed: bool, goal: str) -> bool:
    plain, ours, ratio = figures
    verdict = "yes" if passed else "NO"
    print(f"{gate:46}{plain:12.4f}{ours:12.5f}{ratio:11.1f}  {goal:>8}  {verdict}", flush=True)
    return passed


def grouped_accuracy(data: Material, rounds: int) -> bool:
    """Gate 1: acc_eq with exact calibration per prompt, one metric, the labels' part shared."""
    scores = data.scores.T.copy()
    expected = [
        plain_grouped_calibration(scores[k], data.labels, data.prompts) for k in (3, N_METRICS - 1)
    ]

    def ours() -> list[object]:
        pairs = GroupedPairs.of(data.labels, Groups.of(data.prompts))
        return [pairs.tie_calibrated(column) for column in scores]

    found = GroupedPairs.of(data.labels, Groups.of(data.prompts))
    for k, plain in zip((3, N_METRICS - 1), expected, strict=True):
        best = found.tie_calibrated(scores[k])
        assert abs(best.accuracy - plain.accuracy) < 1e-9
        assert abs(best.threshold - plain.threshold) < 1e-12
    passed = True
    for name, plain_form, goal in (
        ("1 acc_eq by prompt, pair by pair", plain_grouped_calibration, 200.0),
        ("  the same, pairs in numpy lists", listed_grouped_calibration, 0.0),
    ):
        figures = _ratio(
            lambda form=plain_form: form(scores[3], data.labels, data.prompts),  # type: ignore[misc]
            ours,
            rounds,
        )
        figures *= [1.0, 1.0 / N_METRICS, N_METRICS]
        text = f">= {goal:.0f}" if goal else "-"
        passed &= _report(name, figures, bool(figures[2] >= goal), text)
    return passed


def flat_accuracy(data: Material, rounds: int) -> bool:
    """Gate 2: the flat exact calibration against scipy's tau-b of the same vectors."""
    scores = data.scores[:, 10].copy()
    figures = _ratio(
        lambda: tie_calibrated(scores, data.labels),
        lambda: stats.kendalltau(scores, data.labels),
        rounds,
    )
    passed = bool(figures[2] <= 500)
    _report("2 acc_eq flat (left) against tau-b (right)", figures, passed, "<= 500")
    mib = in_own_process("flat")[1]
    print(f"{'  its memory above the start, MiB':46}{mib:24.0f}{'':13}{'< 200':>8}  ", end="")
    print("yes" if mib < FLAT_MIB else "NO")
    return passed and mib < FLAT_MIB


def cluster_bootstrap(data: Material, rounds: int) -> bool:
    """Gate 7: flat Spearman, and Kendall by prompt, in 1,000 resamples of the prompts."""
    counts, items = bootstrap(), data.items
    x, y = data.scores[:, 10].copy(), data.labels
    draws = [np.repeat(np.arange(N_PROMPTS), row.astype(int)) for row in counts]
    groups = Groups.of(data.prompts)
    part = draws[:20]
    rho = resampled_spearman(x, y, counts, data.prompts)
    tau = resampled_grouped("krcc", x, y, groups, counts)
    assert np.abs(rho[:20] - plain_bootstrap_spearman(x, y, items, part)).max() < 1e-12
    assert np.abs(tau[:1] - plain_bootstrap_grouped_kendall(x, y, items, part[:1])).max() < 1e-12
    table = data.scores
    passed = True
    for name, plain, times, ours, metrics, goal in (
        (
            "7 bootstrap, Spearman flat, one metric",
            lambda: plain_bootstrap_spearman(x, y, items, part),
            N_RESAMPLES / len(part),
            lambda: resampled_spearman(x, y, counts, data.prompts),
            1,
            10,
        ),
        (
            "  the same, of 10 metrics together, each",
            lambda: plain_bootstrap_spearman(x, y, items, part),
            N_RESAMPLES / len(part),
            lambda: resampled_spearman(table[:, :10], y, counts, data.prompts),
            10,
            10,
        ),
        (
            "7 bootstrap, Kendall by prompt, one metric",
            lambda: plain_bootstrap_grouped_kendall(x, y, items, part[:1]),
            N_RESAMPLES,
            lambda: resampled_grouped("krcc", x, y, groups, counts),
            1,
            2000,
        ),
    ):
        figures = _ratio(plain, ours, rounds) * [times, 1.0 / metrics, times * metrics]
        passed &= _report(name, figures, bool(figures[2] >= goal), f">= {goal}")
    return passed


def _on_one_thread() -> None:
    """Start again with one BLAS thread: the number is fixed when numpy is loaded."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    if any(os.environ.get(name) != value for name, value in limits.items()):
        command = [sys.executable, "-m", MODULE, *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, **limits})


def main() -> int:
    """Print the tables; 0 where every gate holds."""
    _on_one_thread()
    parser = argparse.ArgumentParser(description="Correlations against plain evaluations")
    parser.add_argument("--rounds", type=int, default=0, help="5, or 3 if quick")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        measure_alone(options.only, options.quick)
        return 0
    rounds = options.rounds or (3 if options.quick else 5)
    data = Material.made_up()
    print(f"CPU seconds for one metric on one thread, median of {rounds} rounds, interleaved")
    print(f"{'gate':46}{'plain':>12}{'ours':>12}{'ratio':>11}  {'goal':>8}  holds")
    gates = (grouped_accuracy, flat_accuracy, cluster_bootstrap)
    verdicts = [gate(data, rounds) for gate in gates]
    return 0 if board(options.quick) and all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
