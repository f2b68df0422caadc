"""Whole boards: every measure, interval and pairwise test of many metrics on four benchmarks.

    python -m benchmarks_perf.full_board [--metrics 30] [--skills 40] [--only NAME ...] [--workers 2]

Made-up benchmarks of the real shapes go through the real protocols, as the judge runs them: TS2
(165 graphs, 2,840 images), CROC (280 prompt pairs, 57,400 scores), EvalMuse (1,000 prompts, 20,000
images, ten skills a prompt) and Gecko (2,000 prompts, 8,000 images, four templates). Every row gets
1,000 bootstrap resamples, every block of clusters left out and doubled, a BCa interval, rank
ranges, and tests between each two metrics with tiers. Printed are CPU seconds of evaluation and of
ranking, wall time of all, and the largest memory of a process. What should be linear is checked
too: `--metrics` twice as large takes twice the time of evaluation, and the tests follow the pairs.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

import numpy as np

from benchmarks.rows import Measured
from benchmarks.schema import Card
from benchmarks_perf.made_up_boards import BOARDS
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.draws import Draws
from leaderboard.ranking.slices import Slice, ranked


@dataclass(frozen=True)
class Spent:
    """What one board took."""

    name: str
    rows: int
    slices: int
    tests: int
    evaluating_s: float
    ranking_s: float
    peak_mib: float


def spend(name: str, n_metrics: int, n_skills: int) -> Spent:
    """Make the board, then time what the judge does with it."""
    made = BOARDS[name](n_metrics, n_skills)
    begin = time.process_time()
    measured = made.benchmark.evaluate(made.scores, made.answers)
    middle = time.process_time()
    n_slices, n_tests = rank_all(measured, made.benchmark.card)
    end = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Spent(name, len(measured.rows), n_slices, n_tests, middle - begin, end - middle, peak)


def rank_all(measured: Measured, card: Card) -> tuple[int, int]:
    """Rank every slice with all tests; how many slices and tests that were."""
    slices = list(slices_of(measured))
    n_tests = 0
    for one in slices:
        found = ranked(one, card).ordering
        assert found.tests is not None
        n_tests += int(np.isfinite(np.triu(found.tests.p_value, 1)).sum()) - len(one.cells)
    return len(slices), n_tests


def slices_of(measured: Measured) -> Iterator[Slice]:
    """The rows of each slice with their draws."""
    groups: dict[tuple[str | None, ...], list[int]] = {}
    for place, row in enumerate(measured.rows):
        key = (row.measure, row.variant, row.split, row.facet, row.skill)
        groups.setdefault(key, []).append(place)
    for places in groups.values():
        cells = tuple(
            Cell.of(measured.rows[place].metric, place, measured.rows[place]) for place in places
        )
        yield Slice(cells, Draws(measured.resamples[places], measured.contributions[places]))


def main() -> None:
    """Print what each board took, and the whole."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--metrics", type=int, default=30)
    parser.add_argument("--skills", type=int, default=40)
    parser.add_argument("--only", nargs="*", choices=list(BOARDS), default=list(BOARDS))
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    task = partial(spend, n_metrics=asked.metrics, n_skills=asked.skills)
    begin = time.perf_counter()
    # The longest first, so that no worker waits for the other.
    names = sorted(asked.only, key=["evalmuse", "gecko", "croc", "ts2"].index)
    with ProcessPoolExecutor(asked.workers, get_context("spawn"), max_tasks_per_child=1) as pool:
        found = list(pool.map(task, names))
    wall = time.perf_counter() - begin
    print(
        f"{'board':10}{'rows':>8}{'slices':>8}{'tests':>9}{'evaluate':>11}{'rank':>9}{'peak':>11}"
    )
    for one in found:
        print(
            f"{one.name:10}{one.rows:8,}{one.slices:8,}{one.tests:9,}{one.evaluating_s:9.1f} s"
            f"{one.ranking_s:7.1f} s{one.peak_mib:7.0f} MiB"
        )
    cpu = sum(one.evaluating_s + one.ranking_s for one in found)
    print(
        f"\nCPU {cpu:.1f} s, {cpu / asked.workers:.1f} s on each of {asked.workers} cores;", end=" "
    )
    print(f"wall {wall:.1f} s with making the data and the imports; goal: below 90 s and 2 GiB.")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
