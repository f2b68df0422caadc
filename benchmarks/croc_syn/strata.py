"""Outcomes summed per cluster inside strata: the smallest parts that any row is made of.

A stratum is what shares mode, text model, top-level property and length. Sums of strata give every
larger part, so each cluster is multiplied with the resampling plan once per direction and metric.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.croc.contrasts import DIRECTIONS
from benchmarks.croc_syn.answers import CrocSynAnswers
from benchmarks.croc_syn.groups import Grouping, compare
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan

_BLOCK = 64  # resamples whose counts are gathered at once: bounds the memory


@dataclass(frozen=True)
class Stratum:
    """Sums over the groups of one stratum, for D directions and M metrics.

    Attributes:
        mode: key of MODES.
        text_model: key of TEXT_MODELS.
        skill: top-level property, or empty.
        length: one of `croc.lengths.LENGTHS`.
        members: shape (c,), positions of its clusters.
        right: shape (c, D, M), successful groups of each cluster.
        used: shape (c, D, M), groups of each cluster that are not left out.
        missing: shape (D, M), score cells without a score.
        n_groups: groups, left out or not.
        chance: sum over the groups of n / (n + 1) for a group with n images.
        drawn_right: shape (B, D, M), successful groups in each resample.
        drawn_used: shape (B, D, M), groups in each resample.
    """

    mode: str
    text_model: str
    skill: str
    length: str
    members: IntArray
    right: FloatArray
    used: FloatArray
    missing: IntArray
    n_groups: int
    chance: float
    drawn_right: FloatArray
    drawn_used: FloatArray


def strata_of(
    scores: ScoreTable, answers: CrocSynAnswers, plan: ResamplingPlan
) -> tuple[Stratum, ...]:
    """Compare all groups and sum them up.

    Args:
        scores: must hold every pair id of the answers.
        answers: G groups in C clusters.
        plan: resamples the clusters of the answers, in their order or any other.

    Raises:
        KeyError: a pair id has no row in `scores`, or a cluster is not in the plan.
    """
    grouping = Grouping.of(answers.prompts["group"].to_numpy(np.intp))
    groups = answers.prompts.iloc[grouping.first]
    shape = (len(groups), len(DIRECTIONS), len(scores.metrics))
    right = np.empty(shape, np.float32)
    missing = np.empty(shape, np.int32)
    for metric, direction, found in compare(scores, answers, grouping):
        right[:, direction, metric] = found.right
        missing[:, direction, metric] = found.missing
    n_images = grouping.sizes * answers.images_per_prompt
    in_plan = plan.positions(answers.clusters)
    clusters = groups["cluster"].to_numpy(np.intp)
    return tuple(
        _stratum(
            key,
            clusters[chosen],
            _Groups(right[chosen], missing[chosen], n_images[chosen]),
            _Draws(plan, in_plan),
        )
        for key, chosen in _positions(groups, ["mode", "text_model", "skill", "length"])
    )


@dataclass(frozen=True)
class _Groups:
    """Outcomes `right` and `missing` (g, D, M) and images `n_images` (g,) of some groups."""

    right: NDArray[np.float32]
    missing: NDArray[np.int32]
    n_images: IntArray


@dataclass(frozen=True)
class _Draws:
    """The plan, and where each cluster of the answers stands in it."""

    plan: ResamplingPlan
    in_plan: IntArray

    def sums(self, members: IntArray, parts: list[FloatArray]) -> list[FloatArray]:
        """Sums of (c, D, M) over clusters, each as often as it was drawn: shapes (B, D, M)."""
        columns = self.in_plan[members]
        flat = np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)
        drawn = np.concatenate(
            [
                np.take(self.plan.counts[begin : begin + _BLOCK], columns, axis=1) @ flat
                for begin in range(0, self.plan.n_resamples, _BLOCK)
            ]
        )
        shape = (self.plan.n_resamples, *parts[0].shape[1:])
        return [part.reshape(shape) for part in np.split(drawn, len(parts), axis=1)]


def _positions(groups: pd.DataFrame, keys: list[str]) -> list[tuple[tuple[str, ...], IntArray]]:
    found: dict[Any, Any] = dict(
        groups.reset_index(drop=True).groupby(keys, observed=True, sort=False).indices
    )
    return [(tuple(map(str, key)), np.asarray(rows, np.intp)) for key, rows in found.items()]


def _stratum(key: tuple[str, ...], clusters: IntArray, groups: _Groups, draws: _Draws) -> Stratum:
    members, code = np.unique(clusters, return_inverse=True)
    used = np.isfinite(groups.right)
    sums = [
        _sum_by(code, len(members), np.where(used, groups.right, 0.0)),
        _sum_by(code, len(members), used.astype(np.float64)),
    ]
    drawn_right, drawn_used = draws.sums(members, sums)
    mode, text_model, skill, length = key
    return Stratum(
        mode=mode,
        text_model=text_model,
        skill=skill,
        length=length,
        members=members,
        right=sums[0],
        used=sums[1],
        missing=groups.missing.sum(axis=0, dtype=np.intp),
        n_groups=len(groups.right),
        chance=float((groups.n_images / (groups.n_images + 1)).sum()),
        drawn_right=drawn_right,
        drawn_used=drawn_used,
    )


def _sum_by(code: IntArray, n: int, values: FloatArray) -> FloatArray:
    """Sums of `values` (g, D, M) over the rows of each code: shape (n, D, M)."""
    flat = values.reshape(len(values), -1).astype(np.float64)
    columns = [np.bincount(code, flat[:, i], n) for i in range(flat.shape[1])]
    summed = np.stack(columns, axis=1).reshape(n, *values.shape[1:])
    return summed.astype(np.float64)
