"""From a protocol's values in all draws to what is published: intervals and contributions."""

from __future__ import annotations

import hashlib
import math
import platform
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import version

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray
from benchmarks.rows import Measured, Row, notes
from benchmarks.statistics import intervals
from benchmarks.statistics.intervals import Intervals, PerturbedPlan
from benchmarks.statistics.resampling import mean_of_defined

FIGURES_DEPEND_ON = ("numpy", "pandas", "scipy")
FEW_DEFINED = "no interval: the value is undefined in more than half of the resamples"
NOT_COMPARED = "no paired test: without one of the clusters the value is undefined"
IN_STEPS = "no paired test: single clusters do not account for how far the value varies"
_LEAST_EXPLAINED = 0.25
"""Share of the resamples' variance."""
_ROUNDING = 1e-9
"""Resamples that vary by less than this share of their size are equal but for rounding."""
_METHODS = {True: "bca", False: "percentile"}


def infer(
    measured: Measured,
    plan: PerturbedPlan,
    in_steps: Collection[str] = (),
    uncorrected: Collection[str] = (),
) -> Measured:
    """Intervals and contributions of every row, from one run of the protocol over all draws.

    `measured`: what the protocol computed with `plan`: `resamples` has shape (R, B + 2 G); `plan`:
    bootstrap resamples, then each block of clusters left out, then taken twice; `in_steps`:
    measures without influences; see `MeasureInfo.in_steps`; `uncorrected`: those with percentile
    intervals.
    Returns: The rows with BCa intervals, expanded for their number of clusters (percentile ones
    where BCa is undefined or not wanted, see `intervals.bca`), the percentile ends beside them, and seed, numbers
    and hash of the plan; a note says why a value has no interval or cannot be compared, where the
    protocol has not withheld its draws; `resamples` of shape (R, B), in single precision, as they
    are published; `contributions` of shape (R, G).
    """
    resamples, without, twice = plan.split(np.asarray(measured.resamples, np.float64))
    if plan.bootstrap is None or not measured.rows:
        return replace(measured, resamples=resamples.astype(np.float32))
    values = np.array([row.value for row in measured.rows])
    members = _members(measured, plan)
    shares = intervals.contributions(values, without, twice, members)
    moved = intervals.influence(shares, values, members)
    known = np.array([row.measure in in_steps for row in measured.rows], bool)
    stepping = known | _unexplained(moved, resamples)
    shares[stepping] = moved[stepping] = np.nan
    n_clusters = np.array([row.n_clusters for row in measured.rows])
    acceleration = intervals.acceleration(moved)
    acceleration[[row.measure in uncorrected for row in measured.rows]] = np.nan
    bca = intervals.bca(values, resamples, acceleration, n_clusters=n_clusters).around(values)
    rows = _filled(measured.rows, bca, intervals.percentile(resamples), plan)
    return replace(
        measured,
        rows=_explained(rows, resamples, shares, stepping),
        resamples=resamples.astype(np.float32),
        contributions=shares,
    )


def plan_hash(plan: PerturbedPlan) -> str:
    """Twelve hexadecimal digits that name the clusters, the seed and the numbers of draws."""
    drawn = plan.bootstrap.n_resamples if plan.bootstrap else 0
    content = "\n".join([*plan.clusters, f"{plan.seed} {drawn} {plan.n_blocks}"])
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def versions(*more: str) -> dict[str, str]:
    """Versions of what the figures depend on."""
    packages = (*FIGURES_DEPEND_ON, *more)
    return {"python": platform.python_version()} | {name: _installed(name) for name in packages}


@cache
def _installed(name: str) -> str:
    """Read once: reading all takes as long as judging a small run."""
    return version(name)


def _members(measured: Measured, plan: PerturbedPlan) -> BoolArray:
    """Shape (R, G): blocks that hold clusters of each row's slice."""
    found: dict[int, BoolArray] = {}
    of_rows = measured.members or (None,) * len(measured.rows)
    for one in of_rows:
        if id(one) not in found:  # the metrics of a slice share one array
            found[id(one)] = plan.blocks_with(one)
    return np.stack([found[id(one)] for one in of_rows])


def _filled(
    rows: Sequence[Row], bca: Intervals, percentile: Intervals, plan: PerturbedPlan
) -> tuple[Row, ...]:
    drawn = plan.bootstrap.n_resamples if plan.bootstrap else 0
    name = plan_hash(plan)
    built_with = ", ".join(f"{key} {value}" for key, value in versions().items())
    named = (
        replace(row, seed=plan.seed, n_resamples=drawn, plan=name, versions=built_with)
        for row in rows
    )
    return tuple(
        replace(
            row,
            ci_low=_number(bca.low[i]),
            ci_high=_number(bca.high[i]),
            ci_method=None if math.isnan(bca.low[i]) else _METHODS[bool(bca.defined[i])],
            percentile_low=_number(percentile.low[i]),
            percentile_high=_number(percentile.high[i]),
        )
        for i, row in enumerate(named)
    )


def _number(end: np.float64) -> float:
    """As a number of its own; one object for NaN, so that equal rows are equal."""
    return math.nan if math.isnan(end) else float(end)


def _unexplained(moved: FloatArray, resamples: FloatArray) -> BoolArray:
    """Shape (R,): rows whose influences do not account for how much their resamples vary.

    The sum of the squared influences estimates the variance that the resamples have. Where it is
    far smaller the value moves in steps, and flipping influences would find differences everywhere.
    """
    with np.errstate(invalid="ignore"):
        mean = mean_of_defined(resamples, axis=1)[:, None]
        centred = resamples - mean
        variance = mean_of_defined(centred**2, axis=1)
        varies = variance > (_ROUNDING * np.abs(centred + mean).max(axis=1, initial=0.0)) ** 2
        found = np.square(moved).sum(axis=1) < _LEAST_EXPLAINED * variance
    return np.asarray(found & varies, bool)


def _explained(
    rows: Sequence[Row], resamples: FloatArray, shares: FloatArray, stepping: BoolArray
) -> tuple[Row, ...]:
    """The rows with what their values lack; what a protocol withheld it has explained itself."""
    drawn = np.atleast_1d(np.isfinite(resamples).any(axis=1))
    compared = np.atleast_1d(np.isfinite(shares).all(axis=1))
    return tuple(
        row
        if math.isnan(row.value) or not drawn[i]
        else replace(
            row,
            note=notes(
                row.note,
                FEW_DEFINED if math.isnan(row.ci_low) else "",
                "" if compared[i] else IN_STEPS if stepping[i] else NOT_COMPARED,
            ),
        )
        for i, row in enumerate(rows)
    )
