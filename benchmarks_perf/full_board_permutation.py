"""A whole board of permutation tests against the one matrix product that it cannot do without.

    python -m benchmarks_perf.full_board_permutation [--quick] [--rounds 3]

30 metrics, all 435 pairs, Spearman with item swaps and 1,000 draws, on all 20,000 items and on 40
overlapping skills of 25 % of the prompts each. The machine's limit is the product of coefficients
and signs, 2 x 435 x 1,000 x items flops in single precision: a product of that size is timed
between the sets, on one thread and by CPU time like the rest. `--quick` takes 8 skills, and two
rounds. Required is at most 12 times the product; the goals are 4 and 3 times.
"""

from __future__ import annotations

import argparse
import sys
from statistics import median

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray
from benchmarks.statistics.permutation.perm_both import perm_both
from benchmarks_perf.permutation_tests import (
    N_DRAWS,
    N_PROMPTS,
    PROMPTS,
    board,
    on_one_thread,
    seconds,
)

N_METRICS, N_SKILLS, SHARE = 30, 40, 0.25
REQUIRED, GOALS = 12.0, (4.0, 3.0)


def skills(n_skills: int) -> list[BoolArray]:
    """Item masks: everything, then skills, each with its share of the prompts."""
    rng = np.random.default_rng(2)
    chosen = [rng.permutation(N_PROMPTS)[: int(SHARE * N_PROMPTS)] for _ in range(n_skills)]
    return [np.ones(PROMPTS.size, np.bool_), *(np.isin(PROMPTS, prompts) for prompts in chosen)]


def one_round(scores: FloatArray, gold: FloatArray, sets: list[BoolArray]) -> tuple[float, float]:
    """CPU seconds of all tests, and of the products alone."""
    ours = product = 0.0
    rng = np.random.default_rng(3)
    n_pairs = N_METRICS * (N_METRICS - 1) // 2
    for items in sets:
        n_items = int(items.sum())
        rows = rng.normal(size=(n_pairs, n_items)).astype(np.float32)
        signs = rng.choice(np.array([-1, 1], np.float32), (n_items, N_DRAWS))
        product += seconds(lambda a=rows, b=signs: a @ b)  # type: ignore[misc]
        part, labels = scores[items], gold[items]
        ours += seconds(lambda x=part, y=labels: perm_both(x, y, "spearman", n_draws=N_DRAWS))  # type: ignore[misc]
    return ours, product


def main() -> int:
    """Print the table; 0 where the board stays within the required ratio."""
    on_one_thread("benchmarks_perf.full_board_permutation")
    parser = argparse.ArgumentParser(description="A board of permutation tests")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="fewer skills and rounds")
    options = parser.parse_args()
    rounds = min(options.rounds, 2) if options.quick else options.rounds
    scores, gold = board(N_METRICS)
    sets = skills(8 if options.quick else N_SKILLS)
    found = [one_round(scores, gold, sets) for _ in range(rounds)]
    ours, product = (median(pair[k] for pair in found) for k in (0, 1))
    ratio = median(ours / product for ours, product in found)
    flops = 2 * 435 * N_DRAWS * sum(int(items.sum()) for items in sets)
    print(f"435 pairs, {len(sets)} sets, {N_DRAWS} draws; CPU seconds, median of {rounds} rounds")
    print(f"tests {ours:.2f}, product alone {product:.2f} ({flops / product / 1e9:.0f} GFLOP/s)")
    print(f"times the product: {ratio:.2f} (required {REQUIRED:.0f}", end="")
    print("".join(f", goal {goal:.0f}: {'yes' if ratio <= goal else 'no'}" for goal in GOALS) + ")")
    return 0 if ratio <= REQUIRED else 1


if __name__ == "__main__":
    sys.exit(main())
