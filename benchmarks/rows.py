"""Rows of a protocol: one named measure of one metric on one slice of a benchmark."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.statistics.intervals import percentile


@dataclass(frozen=True, slots=True)
class Row:
    """One value with its interval. Names are the papers', in lower case; unused fields are None.

    Attributes:
        benchmark: registry name of the benchmark, e.g. `ts2`.
        revision: pinned revision of the benchmark's data.
        metric: name of the metric under test.
        measure: the meta-metric, e.g. `rank`, `srcc`, `accuracy`.
        split: part of the benchmark, e.g. `all`, `synth`; None where there is only one.
        skill: skill or `skill:sub-skill`; None means all skills.
        variant: `paper`, `equation`, `code`, or `assay` for a summary no paper defines.
        facet: direction, annotation template or accumulation, e.g. `forward_text`, `WL`.
        value: the estimate; NaN where it is undefined (then `note` says why).
        n_items: pairs (or elements, comparisons) behind the value.
        n_clusters: clusters behind the value (prompt pairs, graphs, prompts).
        n_missing: pairs of this slice for which the metric gave no score.
        ci_low: lower end of the 95 % interval from the cluster bootstrap.
        ci_high: upper end of the same interval.
        ci_method: `bca` (bias-corrected and accelerated, expanded for few clusters) or
            `percentile`; None without interval.
        percentile_low: lower end of the percentile interval from the same resamples.
        percentile_high: its upper end.
        seed: seed of the resampling plan; None before `inference.infer` has filled it in.
        n_resamples: bootstrap resamples behind the interval.
        plan: hash of the plan: clusters, seed, numbers of resamples and of blocks.
        versions: of the packages the figures depend on, e.g. `numpy 2.4.6, scipy 1.17.1`.
        note: what a reader must know about this value; empty as a rule.
    """

    benchmark: str
    revision: str
    metric: str
    measure: str
    value: float
    split: str | None = None
    skill: str | None = None
    variant: str | None = None
    facet: str | None = None
    n_items: int = 0
    n_clusters: int = 0
    n_missing: int = 0
    ci_low: float = math.nan
    ci_high: float = math.nan
    ci_method: str | None = None
    percentile_low: float = math.nan
    percentile_high: float = math.nan
    seed: int | None = None
    n_resamples: int = 0
    plan: str | None = None
    versions: str | None = None
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values: NaN becomes null, since JSON knows no NaN."""
        # All fields are plain values, so nothing need be copied deeply, as `asdict` would.
        values = ((one.name, getattr(self, one.name)) for one in fields(self))
        return {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in values
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Row:
        """The inverse of `to_json`. Unknown fields are an error (TypeError)."""
        numbers = {"value", "ci_low", "ci_high", "percentile_low", "percentile_high"}
        filled: dict[str, Any] = {
            key: math.nan if key in numbers and value is None else value
            for key, value in record.items()
        }
        return cls(**filled)


ONE_CLUSTER = "no interval: there is one cluster only"


def notes(*parts: str) -> str:
    """The parts that say something, one after the other, for `Row.note`."""
    return "; ".join(part for part in parts if part)


@dataclass(frozen=True)
class PooledSample:
    """What one metric says of all rated images of a slice: what a pooled correlation is made of.

    Attributes:
        scores: shape (n,), higher is better; NaN where the metric gave none.
        ratings: shape (n,), finite.
        clusters: shape (n,), position of each image's cluster in the plan.
    """

    scores: FloatArray
    ratings: FloatArray
    clusters: IntArray


def _no_values() -> pd.DataFrame:
    return pd.DataFrame({"row": [], "cluster": [], "value": []})


@dataclass(frozen=True)
class Measured:
    """What a protocol returns for all metrics of one score table.

    Attributes:
        rows: the measures; intervals are filled in from `resamples`.
        resamples: shape (len(rows), B), the value of each row in each bootstrap resample of the
            benchmark's plan; NaN rows where a measure has no interval.
        clusters: the per-cluster values behind the rows, columns `row` (index into `rows`),
            `cluster` (id), `value`; only for measures that are means of cluster values.
        members: per row the positions in the plan of the clusters of its slice, whether or not
            the metric scored them; None: all clusters of the plan.
        contributions: shape (len(rows), G), what each block of clusters adds to each row's value
            (see `statistics.influence`); G is 0 before `inference.infer` has filled it in.
        pools: row index to what makes the sample behind the row, for rows that are the
            correlation of one pool; a sample is made when it is asked for, none is held.
    """

    rows: tuple[Row, ...]
    resamples: NDArray[np.floating]
    clusters: pd.DataFrame = field(default_factory=_no_values)
    members: tuple[IntArray | None, ...] = ()
    contributions: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    pools: Mapping[int, Callable[[], PooledSample]] = field(default_factory=dict)


class MeasuredBuilder:
    """Collects rows one after the other; intervals and tables are made once, at the end."""

    def __init__(self, n_resamples: int) -> None:
        self._n_resamples = n_resamples
        self._rows: list[Row] = []
        self._resamples: list[FloatArray] = []
        self._members: list[IntArray | None] = []
        self._clusters: list[tuple[int, Sequence[str], FloatArray]] = []
        self._pools: dict[int, Callable[[], PooledSample]] = {}

    def add(
        self,
        row: Row,
        resamples: FloatArray | None = None,
        clusters: Sequence[str] | None = None,
        cluster_values: FloatArray | None = None,
        *,
        members: IntArray | None = None,
        pool: Callable[[], PooledSample] | None = None,
    ) -> None:
        """Append one row.

        Args:
            row: the row; `build` replaces its `ci_low` and `ci_high` by the 2.5 % and 97.5 %
                quantiles of `resamples`.
            resamples: shape (B,), the row's value in each resample; None where it has none. One
                cluster drawn again and again says nothing, so such a row gets no interval.
            clusters: ids of the clusters behind the row, with
            cluster_values: their values, same length.
            members: positions in the plan of the clusters of the row's slice, repeats allowed,
                whether or not this metric scored them; None: all clusters of the plan.
            pool: makes the sample of a row that is the correlation of one pool, defined or not.
                It lives as long as what `build` gives, so it should hold references only.
        """
        if pool is not None:
            self._pools[len(self._rows)] = pool
        if clusters is not None and cluster_values is not None:
            self._clusters.append((len(self._rows), clusters, cluster_values))
        if row.n_clusters == 1 and resamples is not None:
            row, resamples = replace(row, note=notes(row.note, ONE_CLUSTER)), None
        self._rows.append(row)
        self._members.append(members)
        self._resamples.append(
            np.full(self._n_resamples, np.nan) if resamples is None else resamples
        )

    def build(self) -> Measured:
        """Everything added so far."""
        if not self._rows:
            return Measured((), np.empty((0, self._n_resamples)))
        stacked = np.stack(self._resamples)
        rows = tuple(
            row if math.isnan(low) else replace(row, ci_low=float(low), ci_high=float(high))
            for row, low, high in zip(self._rows, *percentile(stacked).ends, strict=True)
        )
        return Measured(
            rows, stacked, self._cluster_table(), tuple(self._members), pools=dict(self._pools)
        )

    def _cluster_table(self) -> pd.DataFrame:
        if not self._clusters:
            return _no_values()
        numbers, ids, values = zip(*self._clusters, strict=True)
        return pd.DataFrame(
            {
                "row": np.repeat(numbers, [len(v) for v in values]),
                "cluster": [cluster for group in ids for cluster in group],
                "value": np.concatenate(values),
            }
        )


def withheld(measured: Measured, which: BoolArray, why: str) -> Measured:
    """The same without the values of some rows, shape (rows,), before `infer`; a note says why."""
    if not which.any():
        return measured
    rows = tuple(
        replace(row, value=math.nan, ci_low=math.nan, ci_high=math.nan, note=why) if out else row
        for row, out in zip(measured.rows, which, strict=True)
    )
    resamples = np.where(which[:, None], np.nan, measured.resamples)
    gone = set(np.flatnonzero(which).tolist())
    return replace(
        measured,
        rows=rows,
        resamples=resamples,
        clusters=measured.clusters[~measured.clusters["row"].isin(gone)].reset_index(drop=True),
        pools={row: pool for row, pool in measured.pools.items() if row not in gone},
    )


def concatenate(parts: Iterable[Measured]) -> Measured:
    """The rows of several, one after the other; all come from one plan, before `infer`."""
    every = [part for part in parts if part.rows]
    if len(every) <= 1:
        return next(iter(every), Measured((), np.empty((0, 0))))
    starts = np.cumsum([0, *(len(part.rows) for part in every)]).tolist()
    tables = [
        part.clusters.assign(row=part.clusters["row"] + start)
        for part, start in zip(every, starts, strict=False)
        if len(part.clusters)
    ]
    return Measured(
        rows=tuple(row for part in every for row in part.rows),
        resamples=np.vstack([part.resamples for part in every]),
        clusters=pd.concat(tables or [every[0].clusters], ignore_index=True),
        members=tuple(m for part in every for m in part.members or (None,) * len(part.rows)),
        pools={
            start + row: pool
            for part, start in zip(every, starts, strict=False)
            for row, pool in part.pools.items()
        },
    )
