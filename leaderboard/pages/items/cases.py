"""The cases of a benchmark, indexed for looking at one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.cases import BETWEEN_SKILLS, Comparisons
from benchmarks.statistics.resampling import ResamplingPlan


@dataclass(frozen=True)
class CaseSet:
    """All cases of one revision of a benchmark.

    Attributes:
        benchmark: registry name.
        revision: of its data.
        frame: one row for each pair of a case; see `benchmarks.cases.SCHEMA`.
        comparisons: what a metric has to get right.
    """

    benchmark: str
    revision: str
    frame: pd.DataFrame
    comparisons: Comparisons

    @classmethod
    def of(cls, benchmark: str, revision: str, frame: pd.DataFrame) -> CaseSet:
        """Index the cases of a file."""
        return cls(benchmark, revision, frame, Comparisons.of(frame))

    @cached_property
    def has_prompts(self) -> bool:
        """Whether any prompt is known: released answers come without."""
        return bool((self.frame["prompt"] != "").any())

    @property
    def size(self) -> int:
        """How many cases there are."""
        return len(self.comparisons.case_ids)

    @property
    def bytes(self) -> int:
        """About how much memory it takes, with all that is worked out from it."""
        own = int(self.frame.memory_usage(deep=True).sum())
        return own + 16 * len(self.comparisons.better) + 8 * 1000 * len(self.clusters)

    @cached_property
    def case_of_comparison(self) -> IntArray:
        """Shape (k,): case of each comparison."""
        found: IntArray = self.comparisons.of_row[self.comparisons.better]
        return found

    @cached_property
    def compared(self) -> IntArray:
        """Shape (C,): comparisons of each case, scored or not."""
        return np.bincount(self.case_of_comparison, minlength=self.size)

    @cached_property
    def _first(self) -> pd.DataFrame:
        """The first row of each case, in their order."""
        return self.frame.drop_duplicates("case_id")

    @cached_property
    def clusters(self) -> tuple[str, ...]:
        """Every cluster, in the order of their first case."""
        return tuple(dict.fromkeys(self._first["cluster"].astype(str)))

    @cached_property
    def cluster_of(self) -> IntArray:
        """Shape (C,): cluster of each case, as its place in `clusters`."""
        place = {name: k for k, name in enumerate(self.clusters)}
        return np.array([place[name] for name in self._first["cluster"].astype(str)], np.intp)

    @cached_property
    def plan(self) -> ResamplingPlan:
        """Resamples the clusters, the same for every metric."""
        return ResamplingPlan.for_revision(self.benchmark, self.revision, self.clusters)

    @cached_property
    def skills(self) -> tuple[tuple[str, ...], ...]:
        """Of each case."""
        return tuple(map(_parts, self._first["skills"].astype(str)))

    @cached_property
    def splits(self) -> tuple[tuple[str, ...], ...]:
        """Of each case."""
        return tuple(map(_parts, self._first["split"].astype(str)))

    @cached_property
    def every_skill(self) -> tuple[str, ...]:
        """The skills that some case has."""
        return tuple(dict.fromkeys(skill for of in self.skills for skill in of))

    @cached_property
    def every_split(self) -> tuple[str, ...]:
        """The splits that some case is in."""
        return tuple(dict.fromkeys(split for of in self.splits for split in of))

    def within(self, skill: str, split: str) -> BoolArray:
        """Shape (C,): which cases have the skill and are in the split; empty means any."""
        return np.array(
            [
                (not skill or skill in skills) and (not split or split in splits)
                for skills, splits in zip(self.skills, self.splits, strict=True)
            ],
            bool,
        )

    def rows_of(self, case: int) -> IntArray:
        """The rows of a case, in their order."""
        return np.flatnonzero(self.comparisons.of_row == case)

    def place(self, case_id: str) -> int:
        """Position of a case that exists."""
        return self.comparisons.case_ids.index(case_id)


@dataclass(frozen=True)
class Standing:
    """How one metric does on every case.

    Attributes:
        entry_id: the metric.
        score: shape (n,), of each row, larger for a better match; NaN is missing.
        outcome: shape (k,), of each comparison: 1 right, 0 wrong, a half for equal scores.
        n_compared: shape (C,).
        n_right: shape (C,).
        share: shape (C,), NaN where nothing is compared.
        n_missing: shape (C,), pairs without a score.
    """

    entry_id: str
    score: FloatArray
    outcome: FloatArray
    n_compared: IntArray
    n_right: FloatArray
    share: FloatArray
    n_missing: IntArray

    @classmethod
    def of(cls, entry_id: str, cases: CaseSet, score: FloatArray) -> Standing:
        """Compare the scores of a metric."""
        found = cases.comparisons.agreement(score)
        columns = {
            name: found[name].to_numpy() for name in ("n_compared", "n_right", "share", "n_missing")
        }
        return cls(entry_id, score, cases.comparisons.right(score), **columns)


def _parts(joined: str) -> tuple[str, ...]:
    return tuple(part for part in joined.split(BETWEEN_SKILLS) if part)
