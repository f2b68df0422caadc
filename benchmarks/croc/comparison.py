"""How alike metrics are on CROC: for pages that compare several of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from benchmarks.croc.contrasts import DIRECTIONS
from benchmarks.rows import Row
from benchmarks.statistics.correlation import kendall


def cell_accuracies(rows: Iterable[Row]) -> pd.DataFrame:
    """The accuracies behind the published cells: each category in each direction.

    Args:
        rows: of any number of metrics on one benchmark; other measures are passed over.

    Returns:
        One row per (skill, direction), 32 for CROC_hum, one column per metric; NaN where a metric
        has no such value.

    Raises:
        ValueError: a metric has two values for one cell, or the rows are of several benchmarks.
    """
    chosen = [
        row
        for row in rows
        if row.measure == "accuracy" and row.split is None and row.skill is not None
    ]
    sources = {(row.benchmark, row.revision) for row in chosen}
    if len(sources) > 1:
        raise ValueError(f"rows of several benchmarks cannot be compared: {sorted(sources)}")
    cells: dict[str, dict[tuple[str, str], float]] = {}
    for row in chosen:
        if row.facet not in DIRECTIONS:
            continue
        key = (str(row.skill), row.facet)
        if key in cells.setdefault(row.metric, {}):
            raise ValueError(f"{row.metric} has two accuracies for {key}")
        cells[row.metric][key] = row.value
    table = pd.DataFrame({metric: pd.Series(values) for metric, values in cells.items()})
    table.index = table.index.set_names(["skill", "facet"]) if len(table) else table.index
    return table


def between_metrics(rows: Iterable[Row]) -> pd.DataFrame:
    """Kendall's tau-b between metrics over the accuracies per category and direction (Figure 10).

    Args:
        rows: as for `cell_accuracies`.

    Returns:
        A symmetric matrix with metrics on both axes; a couple is compared on the cells that both
        have, NaN where one of them is constant there or fewer than two cells are left.

    Raises:
        ValueError: as for `cell_accuracies`.
    """
    table = cell_accuracies(rows)
    values = table.to_numpy(np.float64)
    matrix = np.full((values.shape[1], values.shape[1]), np.nan)
    for i in range(len(matrix)):
        for j in range(i, len(matrix)):
            both = np.isfinite(values[:, i]) & np.isfinite(values[:, j])
            matrix[i, j] = matrix[j, i] = kendall(values[both, i], values[both, j])
    return pd.DataFrame(matrix, index=table.columns, columns=table.columns)
