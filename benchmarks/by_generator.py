"""Validity by generator: the headline of a benchmark on the images of one model at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.pooled import PooledImages, Ties
from benchmarks.rows import MeasuredBuilder, Row
from benchmarks.schema import BY_GENERATOR
from benchmarks.statistics.resampling import ResamplingPlan


def named_generators(generators: ArrayLike, inside: BoolArray | None = None) -> list[str]:
    """The generators of some images, (n,), each once in their order; an empty name is none."""
    names = np.asarray(generators, object)
    chosen = names if inside is None else names[inside]
    return [name for name in dict.fromkeys(chosen) if isinstance(name, str) and name]


@dataclass(frozen=True)
class GeneratedImages:
    """Rated images of a benchmark, n of them, with who made each."""

    ratings: FloatArray  # shape (n,), NaN where nobody rated
    clusters: IntArray  # shape (n,), position of each image's cluster in the plan
    generators: Sequence[str]  # of each; empty where it is not known
    plan: ResamplingPlan
    inside: BoolArray | None = None  # shape (n,), those of the headline's split; None: all

    def add_rows(
        self,
        builder: MeasuredBuilder,
        row: Row,
        scores: FloatArray,
        measure: str,
        *,
        kind: type[PooledImages] = PooledImages,
        ties: Ties = "calibrated",
        unit: float = 1.0,
        complete: bool = False,
        drop: bool = False,
    ) -> None:
        """Rows of one metric: `measure` over all images of each generator, pooled over prompts.

        `row`: with benchmark, revision, variant and metric; `scores` (n,), higher is better; `kind`,
        `ties`, `unit`: as the headline is computed; `complete`: whether a generator with a missing
        score has no value; `drop`: whether images without a score are left out, however few.
        """
        names = np.asarray(self.generators, object)
        for name in named_generators(self.generators, self.inside):
            members = np.asarray(names == name, bool)
            if self.inside is not None:
                members &= self.inside
            given = scores if drop else None
            pool = kind.of(scores, self.ratings, self.clusters, self.plan, members, filled=given)
            of_one = pool.counted(replace(row, measure=BY_GENERATOR, facet=name))
            if complete and pool.n_missing:
                withheld = f"withheld: images without a score: {pool.n_missing}"
                builder.add(replace(of_one, value=math.nan, note=withheld), members=pool.members)
                continue
            found = pool.estimate(measure, ties, unit)
            filled = replace(of_one, value=found.value, note=found.note)
            builder.add(filled, found.resamples, members=pool.members)
