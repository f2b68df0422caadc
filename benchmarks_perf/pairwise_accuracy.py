"""Pairwise accuracy with tie calibration against a plain look at all pairs.

    python -m benchmarks_perf.pairwise_accuracy [--data FOLDER] [--rounds 5]

The plain form lists the differences of all pairs at once, sorts them and adds up what each one
gains; its memory grows with the pairs, so it is run on 3,000 images. Both run alternately in one
process on one thread, CPU time is compared, and both must give the same accuracy and threshold.
Then all 9,600 images of GenAI-Bench are calibrated and resampled 1,000 times by prompt, for three
kinds of scores, each in a process of its own, whose peak memory must stay below 1 GiB. Scipy's
tau-b of the same vectors is the yardstick of time. Without data, ratings are made up.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from scipy import stats

from benchmarks.arrays import FloatArray
from benchmarks.statistics.pairwise import Calibrated, tie_calibrated
from benchmarks.statistics.pairwise_resampled import PairForms
from benchmarks.statistics.resampling import ResamplingPlan

N_PROMPTS, N_MODELS = 1600, 6
N_PLAIN = 3000
LIMIT_MIB = 1024
NOISE = {"good metric": 0.3, "weak metric": 1.0, "good metric, 2 decimals": 0.3}


def ratings(data: Path | None) -> FloatArray:
    """Mean ratings of 1,600 x 6 images: the released ones, or made up."""
    if data is None:
        drawn = np.random.default_rng(0).integers(1, 6, (N_PROMPTS * N_MODELS, 3))
        return np.asarray(drawn.mean(axis=1), np.float64)
    from benchmarks.genai_bench.benchmark import CARD_1600, GenAiBench  # noqa: PLC0415

    return GenAiBench(CARD_1600).answers(data).labels


def scores_of(kind: str, labels: FloatArray) -> FloatArray:
    """Scores of a made-up metric, float64 unless the kind says otherwise."""
    noisy: FloatArray = labels + NOISE[kind] * np.random.default_rng(1).normal(size=labels.size)
    return np.round(noisy, 2) if "decimals" in kind else noisy


def plain_calibration(scores: FloatArray, labels: FloatArray) -> Calibrated:
    """All pairs at once, as the definition reads."""
    i, j = np.triu_indices(scores.size, 1)
    difference, order = scores[j] - scores[i], np.sign(labels[j] - labels[i])
    concordant = np.sign(difference) * order > 0
    gain = (order == 0).astype(np.int64) - concordant
    distance = np.abs(difference)
    by_distance = np.argsort(distance, kind="stable")
    distance = np.append(0.0, distance[by_distance])
    right = np.append(concordant.sum(), concordant.sum() + np.cumsum(gain[by_distance]))
    last = np.append(distance[1:] != distance[:-1], True)
    best = int(np.argmax(np.where(last, right, -1)))
    return Calibrated(float(right[best] / i.size), float(distance[best]))


def _seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def _compare(data: Path | None, rounds: int) -> bool:
    labels = ratings(data)
    small = np.random.default_rng(2).choice(labels.size, N_PLAIN, replace=False)
    print(f"CPU seconds on one thread, median of {rounds} rounds, interleaved")
    print(f"{'':26}{'plain 3,000':>12}{'ours 3,000':>12}{'ratio':>8}{'ours 9,600':>12}{'tau-b':>8}")
    agree = True
    for kind in NOISE:
        scores = scores_of(kind, labels)
        runs: dict[str, Callable[[], object]] = {
            "plain": partial(plain_calibration, scores[small], labels[small]),
            "ours": partial(tie_calibrated, scores[small], labels[small]),
            "whole": partial(tie_calibrated, scores, labels),
            "tau": partial(stats.kendalltau, scores, labels),
        }
        times = [{name: _seconds(run) for name, run in runs.items()} for _ in range(rounds)]
        plain, ours, whole, tau = (median(t[name] for t in times) for name in runs)
        ratio = median(t["plain"] / t["ours"] for t in times)
        agree &= runs["plain"]() == runs["ours"]()
        print(f"{kind:26}{plain:12.3f}{ours:12.3f}{ratio:8.1f}{whole:12.3f}{tau:8.4f}")
    print(f"same accuracy and threshold: {'yes' if agree else 'NO'}")
    return agree


def _measure_memory(data: Path | None, kind: str) -> None:
    """In a process of its own: print seconds and the peak of memory in MiB."""
    labels = ratings(data)
    scores = scores_of(kind, labels)
    prompts = np.repeat(np.arange(N_PROMPTS), N_MODELS)
    plan = ResamplingPlan(tuple(map(str, range(N_PROMPTS))), seed=0)
    start = time.process_time()
    best = tie_calibrated(scores, labels)
    calibrated = time.process_time() - start
    forms = PairForms.of(scores, labels, prompts, N_PROMPTS, best.threshold)
    forms.drawn(plan.counts)
    resampled = time.process_time() - start - calibrated
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(calibrated, resampled, peak)


def _memory(options: argparse.Namespace) -> bool:
    print(f"\n9,600 images, 46 million pairs, 1,000 resamples of {N_PROMPTS} prompts")
    print(f"{'':26}{'calibrate s':>12}{'resample s':>12}{'peak MiB':>10}")
    largest = 0.0
    for kind in NOISE:
        command = [sys.executable, "-m", "benchmarks_perf.pairwise_accuracy", "--memory", kind]
        if options.data:
            command += ["--data", str(options.data)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        calibrated, resampled, peak = map(float, done.stdout.split())
        print(f"{kind:26}{calibrated:12.3f}{resampled:12.3f}{peak:10.0f}")
        largest = max(largest, peak)
    within = largest < LIMIT_MIB
    print(f"peak below {LIMIT_MIB} MiB: {'yes' if within else 'NO'}")
    return within


def _on_one_thread() -> None:
    """Start again with one BLAS thread: the number is fixed when numpy is loaded."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    if any(os.environ.get(name) != value for name, value in limits.items()):
        command = [sys.executable, "-m", "benchmarks_perf.pairwise_accuracy", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, **limits})


def main() -> int:
    """Print the tables; 0 where both verdicts are yes."""
    _on_one_thread()
    parser = argparse.ArgumentParser(description="Pairwise accuracy against a plain evaluation")
    named = os.environ.get("ASSAY_DATA")
    parser.add_argument("--data", type=Path, default=Path(named) if named else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", choices=list(NOISE), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        _measure_memory(options.data, options.memory)
        return 0
    agree = _compare(options.data, options.rounds)
    return 0 if _memory(options) and agree else 1


if __name__ == "__main__":
    sys.exit(main())
