"""The value of every cluster behind published values, read for the metrics that are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.arrays import FloatArray
from benchmarks.parquet import parquet_file
from benchmarks.schema import Card
from benchmarks.statistics.correlation import kendall
from leaderboard.pages.items.reading import Kept
from leaderboard.ranking.cells import Cell
from leaderboard.store.interface import NotFoundError, Repository

_KEPT_BYTES = 48 << 20


@dataclass(frozen=True)
class ClusterValues:
    """The values of some metrics on the clusters of one slice.

    Attributes:
        entries: entry ids.
        clusters: ids of every cluster that any of them has a value on.
        values: shape (clusters, entries); NaN where a metric has none.
    """

    entries: tuple[str, ...]
    clusters: tuple[str, ...]
    values: FloatArray

    def of(self, *entries: str) -> ClusterValues:
        """Those of some of the entries, on clusters on which all of these have a value."""
        columns = self.values[:, [self.entries.index(entry) for entry in entries]]
        both = np.isfinite(columns).all(axis=1)
        clusters = tuple(np.array(self.clusters, object)[both])
        return ClusterValues(entries, clusters, columns[both])

    def taus(self) -> FloatArray:
        """Kendall's tau-b between each two metrics over the clusters that both have.

        NaN where one of them is constant there.
        """
        found = np.eye(len(self.entries))
        for i, j in combinations(range(len(self.entries)), 2):
            both = np.isfinite(self.values[:, [i, j]]).all(axis=1)
            tau = kendall(self.values[both, i], self.values[both, j])
            found[i, j] = found[j, i] = tau
        return found


class ClusterReader:
    """Reads the clusters of runs, and keeps what was read for the next look.

    Args:
        public: where runs are published.
    """

    def __init__(self, public: Repository) -> None:
        self._public = public
        self._kept = Kept(_KEPT_BYTES)

    def values(self, card: Card, cells: Sequence[Cell], version: str) -> ClusterValues | None:
        """The clusters behind the cells of one slice.

        Args:
            card: the benchmark.
            cells: of different entries.
            version: of the snapshot they are from.

        Returns:
            The values of those that have any; None where fewer than two do: a measure that is no
            mean over clusters has none, and where answers are not public none are published.
        """
        if not card.answers_public:
            return None
        found = {cell.entry_id: self._of(card, cell, version) for cell in cells if cell.row >= 0}
        known = {entry: own for entry, own in found.items() if own}
        if len(known) < 2:
            return None
        clusters = tuple(dict.fromkeys(name for own in known.values() for name in own))
        values = np.array(
            [[own.get(name, np.nan) for own in known.values()] for name in clusters], np.float64
        )
        return ClusterValues(tuple(known), clusters, values)

    def _of(self, card: Card, cell: Cell, version: str) -> dict[str, float]:
        submission = cell.entry_id.rpartition("/")[0]
        path = f"results/{submission}/{card.name}.clusters.parquet"
        found: dict[str, float] = self._kept.get(
            (version, path, cell.row),
            lambda: self._read(path, cell.row),
            lambda own: 64 + sum(len(name) + 120 for name in own),
        )
        return found

    def _read(self, path: str, row: int) -> dict[str, float]:
        try:
            file = parquet_file(self._public.read(path))
        except NotFoundError:
            return {}
        if not {"row", "cluster", "value"} <= set(file.schema_arrow.names):
            return {}
        table: Any = file.read(columns=["row", "cluster", "value"], use_threads=False)
        own = table.filter(table["row"].to_numpy() == row)
        clusters = map(str, own["cluster"].to_pylist())
        return dict(zip(clusters, own["value"].to_numpy().tolist(), strict=True))
