"""The rows a protocol computes: one named measure of one metric on one slice of a benchmark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


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
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON values: NaN becomes null, since JSON knows no NaN."""
        return {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in asdict(self).items()
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Row:
        """The inverse of `to_json`. Unknown fields are an error (TypeError)."""
        numbers = {"value", "ci_low", "ci_high"}
        filled: dict[str, Any] = {
            key: math.nan if key in numbers and value is None else value
            for key, value in record.items()
        }
        return cls(**filled)


ROW_FIELDS: tuple[str, ...] = tuple(f.name for f in fields(Row))


@dataclass(frozen=True)
class Measured:
    """What a protocol returns for all metrics of one score table.

    Attributes:
        rows: the measures; intervals are filled in from `resamples`.
        resamples: shape (len(rows), B), the value of each row in each bootstrap resample of the
            benchmark's plan; NaN rows where a measure has no interval.
        clusters: the per-cluster values behind the rows, columns `row` (index into `rows`),
            `cluster` (id), `value`; only for measures that are means of cluster values.
    """

    rows: tuple[Row, ...]
    resamples: NDArray[np.float32]
    clusters: pd.DataFrame = field(
        default_factory=lambda: pd.DataFrame({"row": [], "cluster": [], "value": []})
    )


class MeasuredBuilder:
    """Collects rows one after the other and stacks them into a `Measured`."""

    def __init__(self, n_resamples: int) -> None:
        self._n_resamples = n_resamples
        self._rows: list[Row] = []
        self._resamples: list[NDArray[np.float32]] = []
        self._clusters: list[pd.DataFrame] = []

    def add(
        self,
        row: Row,
        resamples: FloatArray | None = None,
        clusters: Sequence[str] | None = None,
        cluster_values: FloatArray | None = None,
    ) -> None:
        """Append one row.

        Args:
            row: the row; its `ci_low` and `ci_high` are replaced by the 2.5 % and 97.5 %
                quantiles of `resamples` where those are given.
            resamples: shape (B,), the row's value in each resample.
            clusters: ids of the clusters behind the row, with
            cluster_values: their values, same length.
        """
        if resamples is None:
            resamples = np.full(self._n_resamples, np.nan)
        else:
            low, high = percentile_interval(resamples)
            row = replace(row, ci_low=low, ci_high=high)
        if clusters is not None and cluster_values is not None:
            self._clusters.append(
                pd.DataFrame(
                    {"row": len(self._rows), "cluster": list(clusters), "value": cluster_values}
                )
            )
        self._rows.append(row)
        self._resamples.append(resamples.astype(np.float32))

    def build(self) -> Measured:
        """Everything added so far."""
        shape = (len(self._rows), self._n_resamples)
        stacked = np.stack(self._resamples) if self._rows else np.empty(shape, np.float32)
        if not self._clusters:
            return Measured(tuple(self._rows), stacked)
        return Measured(tuple(self._rows), stacked, pd.concat(self._clusters, ignore_index=True))


def percentile_interval(resamples: FloatArray, level: float = 0.95) -> tuple[float, float]:
    """Percentile bootstrap interval; (NaN, NaN) unless at least half the resamples are defined."""
    finite = resamples[np.isfinite(resamples)]
    if finite.size * 2 < resamples.size or finite.size == 0:
        return math.nan, math.nan
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(finite, [tail, 1.0 - tail])
    return float(low), float(high)
