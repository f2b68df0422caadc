"""Cell: a published value of one entry, as boards show and order it."""

from __future__ import annotations

import math
from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

from benchmarks.rows import Row
from benchmarks.schema import Selector
from leaderboard.ranking.rank_ranges import MAX_MISSING, MIN_CLUSTERS

UNSANDBOXED = "unsandboxed"
"""Among the layers of isolation of a run, that there was none: an operator ran their own code."""


class Cell(BaseModel):
    """One value of one entry on one slice of a board."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    entry_id: str
    measure: str
    variant: str | None
    split: str | None
    facet: str | None
    skill: str | None
    value: float | None
    ci_low: float | None
    ci_high: float | None
    ci_method: str | None = None
    n_items: int
    n_clusters: int
    n_missing: int
    note: str
    distrust: str = ""
    """Why it is kept from ranking, by a trust check or for want of isolation; else empty."""
    row: int = -1  # Position among the rows of its run, where its draws are; -1 where it has none
    rank: int | None = None
    rank_low: int | None = None
    rank_high: int | None = None
    p_best: float | None = None
    """Share of the resamples in which it is best of all that are ranked beside it."""
    tier: int | None = None  # Tier by tests corrected over the board; None where none were made

    @property
    def selector(self) -> Selector:
        """What of a board this is, whatever the skill."""
        return Selector(
            measure=self.measure, variant=self.variant, split=self.split, facet=self.facet
        )

    @property
    def orderable(self) -> bool:
        """False where too few clusters lie behind the value to order entries by it."""
        return self.n_clusters >= MIN_CLUSTERS

    @property
    def complete(self) -> bool:
        """False where too many scores are missing for a rank beside those who gave theirs."""
        return self.n_missing <= MAX_MISSING * (self.n_items + self.n_missing)

    @property
    def fit(self) -> bool:
        """Whether it may rank: enough clusters, enough scores, and no failed trust check."""
        return self.orderable and self.complete and not self.distrust

    @property
    def why_unranked(self) -> str:
        """Why it has no rank, in a few words; empty where it has one."""
        if self.rank is not None:
            return ""
        if self.distrust:
            return self.distrust
        if self.value is None:
            return "value undefined"
        return "too many scores missing" if self.orderable else "too few items to order"

    @classmethod
    def of(cls, entry_id: str, place: int, row: Row, distrust: str = "") -> Cell:
        """The cell of a row, without ranks."""
        record = row.to_json()
        known = {name: record[name] for name in cls.model_fields if name in record}
        return cls(entry_id=entry_id, row=place, distrust=distrust, **known)


def too_few(cells: Iterable[Cell], cluster: str) -> str:
    """Why metrics are not ordered by the cells of a slice, in a few words; empty where they are."""
    most = max((cell.n_clusters for cell in cells), default=MIN_CLUSTERS)
    if most >= MIN_CLUSTERS:
        return ""
    return f"too few {cluster}s to order metrics ({most}; at least {MIN_CLUSTERS} needed)"


def kept_from_ranking(trust_fault: str, isolation: Iterable[str]) -> str:
    """Why a run has values but no ranks; empty where it may have them."""
    if UNSANDBOXED in isolation:
        return "ran without isolation"
    return trust_fault


def best_first(cells: Iterable[Cell], *, higher_is_better: bool) -> tuple[Cell, ...]:
    """The cells of one slice by rank range, then rank, then value; undefined values last."""
    sign = -1.0 if higher_is_better else 1.0

    def order(cell: Cell) -> tuple[float, float, float, str]:
        return (
            math.inf if cell.rank_low is None else cell.rank_low,
            math.inf if cell.rank is None else cell.rank,
            math.inf if cell.value is None else sign * cell.value,
            cell.entry_id,
        )

    return tuple(sorted(cells, key=order))
