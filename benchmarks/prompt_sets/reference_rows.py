"""Figures of models from elsewhere, with the ranks that follow from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from benchmarks.published.cells import printed_digits, printed_figure
from benchmarks.statistics.seeds import competition_ranks

ALL = "all"
"""Name of the column over all prompts."""


@dataclass(frozen=True, slots=True)
class ReferenceRow:
    """One figure of a model.

    Attributes:
        model: as its source names it.
        metric: that gave it, or `human`.
        value: in the unit of our rows: 91.18 of a metric that is printed times 100 is 0.9118.
        printed: the figure with the digits it is shown with.
        split: part of the set; None: all of it.
        skill: key of the set's card; None: all prompts.
        facet: rating template or gold; None where there is one only.
        seed: of the images; None where it is not said, or over several.
        rank: among the models of the table in this column: 1 + how many are printed with more.
        printed_rank: where the source prints one.
    """

    model: str
    metric: str
    value: float
    printed: str
    split: str | None = None
    skill: str | None = None
    facet: str | None = None
    seed: int | None = None
    rank: int = 0
    printed_rank: int | None = None

    @property
    def place(self) -> tuple[str, str | None, str | None, str | None, int | None]:
        """The column it stands in: what all rows that are ranked together share."""
        return self.metric, self.split, self.skill, self.facet, self.seed

    @property
    def column(self) -> str:
        """Name of that column, e.g. `fga-blip2 counting`, `vqascore seed 42`."""
        seed = None if self.seed is None else f"seed {self.seed}"
        named = [part for part in (self.split, self.skill, self.facet, seed) if part is not None]
        return " ".join((self.metric, *(named or [ALL])))


def ranked(rows: Iterable[ReferenceRow]) -> tuple[ReferenceRow, ...]:
    """The rows in their order, each with its competition rank on the digits shown.

    A column is ranked in the unit it is shown in, so that what prints alike ties (EvalMuse-40K,
    Table 10).
    """
    rows = tuple(rows)
    columns: dict[object, list[int]] = {}
    for position, row in enumerate(rows):
        columns.setdefault(row.place, []).append(position)
    ranks: dict[int, int] = {}
    for positions in columns.values():
        shown = [rows[position].printed for position in positions]
        decimals = max(map(printed_digits, shown))
        found = competition_ranks([float(printed_figure(one)) for one in shown], decimals)
        ranks |= dict(zip(positions, map(int, found), strict=True))
    return tuple(replace(row, rank=ranks[position]) for position, row in enumerate(rows))
