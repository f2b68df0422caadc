"""Do tie calibration and permutation tests agree with mt-metrics-eval on the same data?

    python -m benchmarks_perf.mt_metrics_eval_agreement [--draws 300] [--large]

The package, at commit 544e0fc, is installed for this benchmark only; how is said in
`mt_metrics_eval_peer`. On made-up boards with ties of people, of metrics and of both:

- accuracy (acc23) and tau (23) at its threshold of highest value, `KendallWithTiesOpt` over all
  pairs, flat and by prompt, must be the same to 1e-9 and the threshold to 1e-12; at threshold 0
  `KendallVariants`, too. It adds values up as it goes through the pairs: where several thresholds
  are equally good, its rounding decides by prompt, so that then ours has to be the smallest of
  them, and its own must be as good to 1e-12. How often that was is in the table.
- differences of hybrids under the same swaps must be the same to 1e-9, and p-values within three
  standard deviations of two drawn tests: see `mt_metrics_eval_swaps`, `mt_metrics_eval_p_values`.

Exits with 1 where anything differs by more, with 2 where the package is not installed.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TextIO

import numpy as np

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.grouped import Groups
from benchmarks.statistics.grouped_pairs import GroupedPairs
from benchmarks.statistics.pairwise import Calibrated, pairwise_accuracy, tau_23, tie_calibrated
from benchmarks.statistics.permutation.right_pairs import ItemPairs
from benchmarks_perf.mt_metrics_eval_p_values import p_values
from benchmarks_perf.mt_metrics_eval_peer import HOW_TO_INSTALL, Board, Evaluator
from benchmarks_perf.mt_metrics_eval_swaps import SAME_HYBRIDS, same_swaps

SAME_VALUE, SAME_THRESHOLD = 1e-9, 1e-12
ITEMS_FLAT, N_PROMPTS, N_IMAGES, N_LARGE = 200, 60, 12, 2200


@dataclass(frozen=True)
class Difference:
    """Largest differences of one kind of board.

    Attributes:
        value: of the accuracy or tau.
        threshold: of the threshold, where the best one is unique up to rounding.
        drawn: thresholds that differ between equally good ones.
        boards: how many metrics were looked at.
    """

    value: float
    threshold: float
    drawn: int
    boards: int

    @property
    def agree(self) -> bool:
        """Whether all is within the limits."""
        return self.value <= SAME_VALUE and self.threshold <= SAME_THRESHOLD


def gold_of(kind: str, n_items: int, rng: np.random.Generator) -> FloatArray:
    """People's ratings: means of three from 1 to 5, yes or no, or without any ties."""
    if kind == "mean of 3":
        return np.asarray(rng.integers(1, 6, (n_items, 3)).mean(axis=1), np.float64)
    if kind == "0 or 1":
        return rng.integers(0, 2, n_items).astype(np.float64)
    return rng.permutation(n_items) / n_items


def metrics_of(gold: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Scores (n, 7): good, weak, opposite, of 2 decimals, of 5 levels, constant, and float32."""
    z = (gold - gold.mean()) / gold.std()
    noise = rng.normal(size=(7, gold.size))
    columns = [
        z + 0.3 * noise[0],
        z + 3.0 * noise[1],
        0.3 * noise[2] - z,
        np.round(z + 0.5 * noise[3], 2),
        np.round(z + 0.7 * noise[4]),
        np.full(gold.size, 0.25),
        (z + noise[6]).astype(np.float32).astype(np.float64),
    ]
    return np.stack(columns, axis=1)


def boards(kind: str, where: str) -> Iterator[Board]:
    """Pools or prompts with seven metrics, from two seeds."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        sizes: IntArray | None = None
        n_items = ITEMS_FLAT
        if where != "flat":
            sizes = np.full(N_PROMPTS, N_IMAGES)
            if "uneven" in where:
                sizes = rng.integers(2, N_IMAGES + 1, N_PROMPTS)
                sizes[0] = N_IMAGES
            n_items = int(sizes.sum())
        gold = gold_of(kind, n_items, rng)
        yield Board(metrics_of(gold, rng), gold, sizes)


def compared(peer: Evaluator, board: Board, variant: str) -> Difference:
    """All metrics of a board."""
    best, value_at = _ours(board)
    value, threshold, drawn = 0.0, 0.0, 0
    for metric in range(board.scores.shape[1]):
        found, theirs = best(metric), peer.calibrated(board, metric, variant)
        ours = _as(variant, found.accuracy)
        value = max(value, abs(ours - theirs.accuracy))
        plain = peer.at_threshold(board, metric, variant, 0.0)
        value = max(value, abs(_as(variant, value_at(metric, 0.0)) - plain))
        distance = abs(found.threshold - theirs.threshold)
        as_good = abs(value_at(metric, theirs.threshold) - found.accuracy) <= SAME_THRESHOLD
        if distance > SAME_THRESHOLD and as_good and found.threshold < theirs.threshold:
            drawn += 1
        else:
            threshold = max(threshold, distance)
        value = max(value, _other_forms(board, metric, found))
    return Difference(value, threshold, drawn, board.scores.shape[1])


def _as(variant: str, accuracy: float) -> float:
    return 2.0 * accuracy - 1.0 if variant == "23" else accuracy


def _ours(board: Board) -> tuple[Callable[[int], Calibrated], Callable[[int, float], float]]:
    """Calibration of a metric, and its accuracy at a threshold."""
    columns = np.ascontiguousarray(board.scores.T)
    if board.groups is None:
        return (
            lambda metric: tie_calibrated(columns[metric], board.gold),
            lambda metric, limit: pairwise_accuracy(columns[metric], board.gold, limit),
        )
    pairs = GroupedPairs.of(board.gold, Groups.of(board.groups))
    return (
        lambda metric: pairs.tie_calibrated(columns[metric]),
        lambda metric, limit: float(np.mean(pairs.accuracy(columns[metric], limit))),
    )


def _other_forms(board: Board, metric: int, found: Calibrated) -> float:
    """How far the permutation tests' own calibration, and the flat tau, are from `found`."""
    scores = np.ascontiguousarray(board.scores[:, metric])
    if board.sizes is None:
        plain = pairwise_accuracy(scores, board.gold)
        return abs(tau_23(scores, board.gold) - _as("23", plain))
    pairs = ItemPairs(board.gold, board.bounds)
    limit = pairs.threshold(scores)
    value = float(pairs.accuracies(scores, limit).mean())
    return max(abs(value - found.accuracy), abs(limit - found.threshold))


def _worst(found: list[Difference]) -> Difference:
    return Difference(
        max(one.value for one in found),
        max(one.threshold for one in found),
        sum(one.drawn for one in found),
        sum(one.boards for one in found),
    )


def calibration(peer: Evaluator, *, large: bool, out: TextIO = sys.stdout) -> bool:
    """Print largest differences of accuracy, tau and threshold; whether all agree."""
    head = f"{'calibrated on':40}{'variant':>8}{'value':>10}{'threshold':>11}{'equally good':>14}"
    print(head, file=out)
    passed = True
    for kind in ("mean of 3", "0 or 1", "no ties"):
        for where in ("flat", "by prompt", "by uneven prompts"):
            for variant in ("acc23", "23"):
                worst = _worst([compared(peer, b, variant) for b in boards(kind, where)])
                passed &= _row(f"{kind}, {where}", variant, worst, out)
    if large:
        rng = np.random.default_rng(0)
        gold = gold_of("mean of 3", N_LARGE, rng)
        board = Board(metrics_of(gold, rng)[:, [1, 3]], gold)
        found = compared(peer, board, "acc23")
        passed &= _row(f"mean of 3, flat, {N_LARGE} items", "acc23", found, out)
    return passed


def _row(name: str, variant: str, found: Difference, out: TextIO) -> bool:
    text = f"{name:40}{variant:>8}{found.value:10.1e}{found.threshold:11.1e}"
    counts = f"{found.drawn} of {found.boards}"
    print(f"{text}{counts:>14}  {'' if found.agree else 'DIFFERS'}", file=out, flush=True)
    return found.agree


def permutations(peer: Evaluator, n_draws: int, out: TextIO = sys.stdout) -> bool:
    """Print largest differences of hybrids, and p-values; whether all agree."""
    print(f"\n{'same swaps':40}{'largest difference':>20}", file=out)
    passed = True
    for name, difference in same_swaps(peer):
        good = difference <= SAME_HYBRIDS
        passed &= good
        print(f"{name:40}{difference:20.1e}  {'' if good else 'DIFFERS'}", file=out, flush=True)
    print(
        f"\np-values from {n_draws} draws of the peer; 'doubled' is its own one-sided one", file=out
    )
    print(
        f"{'':40}{'peer':>8}{'doubled':>9}{'ours':>8}{'apart':>8}{'3 sd':>8}{'rounded off':>13}",
        file=out,
    )
    for found in p_values(peer, n_draws):
        passed &= found.agree
        figures = f"{found.peer:8.4f}{found.doubled:9.4f}{found.ours:8.4f}"
        apart = f"{abs(found.peer - found.ours):8.4f}{found.allowed:8.4f}{found.rounded_off:13}"
        verdict = "" if found.agree else "DIFFERS"
        note = verdict if found.compared else "other scores swapped"
        print(f"{found.name:40}{figures}{apart}  {note}", file=out, flush=True)
    return passed


def main() -> int:
    """Print the tables; 0 where all agree."""
    parser = argparse.ArgumentParser(description="Agreement with mt-metrics-eval")
    parser.add_argument("--draws", type=int, default=300, help="draws of the peer's tests")
    parser.add_argument(
        "--large", action="store_true", help=f"{N_LARGE} items in one pool, too: 2 GB of memory"
    )
    options = parser.parse_args()
    peer = Evaluator.installed()
    if peer is None:
        print(HOW_TO_INSTALL, file=sys.stderr)
        return 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of hybrids that are constant within a prompt
        agree = calibration(peer, large=options.large)
        agree &= permutations(peer, options.draws)
    print(f"\nagreement: {'yes' if agree else 'NO'}")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
