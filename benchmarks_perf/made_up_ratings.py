"""Made-up images of the shape of EvalMuse: scores of metrics, and people's mean ratings with ties."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.arrays import FloatArray, IntArray

N_PROMPTS, N_IMAGES, N_METRICS = 1000, 20, 30
N_SKILLS, N_BLOCKS, N_RESAMPLES = 40, 250, 1000


@dataclass(frozen=True)
class Material:
    """Scores (n, M), people's mean ratings (n,) and prompts (n,) of made-up images."""

    scores: FloatArray
    labels: FloatArray
    prompts: IntArray

    @classmethod
    def made_up(cls) -> Material:
        """Metrics from weak to good, and three ratings an image."""
        rng = np.random.default_rng(0)
        quality = rng.normal(size=(N_PROMPTS * N_IMAGES, 1))
        ratings = np.clip(np.round(3.0 + quality + rng.normal(size=(len(quality), 3))), 1, 5)
        scores = quality * np.linspace(0.2, 2.0, N_METRICS) + rng.normal(
            size=(len(quality), N_METRICS)
        )
        return cls(scores, ratings.mean(axis=1), np.repeat(np.arange(N_PROMPTS), N_IMAGES))

    @property
    def items(self) -> list[IntArray]:
        """The images of each prompt."""
        return np.split(np.arange(self.prompts.size), N_PROMPTS)


def bootstrap() -> FloatArray:
    """Multiplicities of the prompts, (B, C)."""
    even = np.full(N_PROMPTS, 1.0 / N_PROMPTS)
    drawn = np.random.default_rng(1).multinomial(N_PROMPTS, even, N_RESAMPLES)
    return drawn.astype(np.float64)


def all_draws() -> FloatArray:
    """Bootstrap resamples, then each block of prompts left out, then each doubled."""
    block = np.random.default_rng(2).permutation(N_PROMPTS) % N_BLOCKS
    inside = block == np.arange(N_BLOCKS)[:, None]
    return np.vstack([bootstrap(), 1.0 - inside, 1.0 + inside])


def skills() -> list[IntArray]:
    """Overlapping quarters of the prompts."""
    rng = np.random.default_rng(3)
    return [np.sort(rng.permutation(N_PROMPTS)[: N_PROMPTS // 4]) for _ in range(N_SKILLS)]


def seconds_of(run: Callable[[], object]) -> float:
    """CPU seconds of the process."""
    start = time.process_time()
    run()
    return time.process_time() - start
