"""Boards and the snapshot of all of them, as pages and commands use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from benchmarks.schema import Card, Selector
from benchmarks.statistics.resampling import seed_of
from leaderboard.publication.cell_columns import CellColumns, SliceKey, table_of
from leaderboard.publication.entries import Entry
from leaderboard.publication.origins import Origin
from leaderboard.ranking.cells import Cell, best_first


class Board:
    """All values on one benchmark revision.

    Args:
        card: the benchmark.
        cells: its cells; None where they are to be read from a table.
        load: reads that table, once, when a cell is first asked for.
    """

    def __init__(
        self,
        card: Card,
        cells: Sequence[Cell] | None = None,
        load: Callable[[], Any] | None = None,
    ) -> None:
        self.card = card
        self._given = None if cells is None else tuple(cells)
        self.columns = CellColumns(load or self._table)

    @property
    def seed(self) -> int:
        """Seed of its resamples and tests."""
        return seed_of(self.card.name, self.card.revision)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every one; where few are needed, ask for slices."""
        return self.columns.cells() if self._given is None else self._given

    @property
    def keys(self) -> tuple[SliceKey, ...]:
        """The slices that have cells, in the order in which they appear."""
        return self.columns.keys

    def slice(self, selector: Selector, skill: str | None) -> tuple[Cell, ...]:
        """The cells of one ranking: best first, undefined values last."""
        found = self.columns.slice(
            (selector.measure, selector.variant, selector.split, selector.facet, skill)
        )
        return best_first(found, higher_is_better=self.card.higher_is_better(selector.measure))

    def _table(self) -> Any:
        return table_of(self.card.name, self.card.revision, self._given or ())


@dataclass(frozen=True)
class Snapshot:
    """Everything the pages show.

    Attributes:
        built_at: when it was made.
        entries: by id.
        boards: by benchmark.
        built_from: version of the store it was made from; empty where that is not known.
        origins: submission to what of it is shown; empty in snapshots older than this statement.
    """

    built_at: datetime
    entries: Mapping[str, Entry]
    boards: Mapping[str, Board]
    built_from: str = ""
    origins: Mapping[str, Origin] = field(default_factory=dict)
