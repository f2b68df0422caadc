"""Cells: published values of entries, whether they may rank, and whether they beat chance."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import NormalDist

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from benchmarks.pooled import MAX_MISSING
from benchmarks.rows import Row
from benchmarks.schema import BY_GENERATOR, Card, Selector
from leaderboard.ranking.rank_ranges import MIN_CLUSTERS

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
    best_share: float | None = Field(
        default=None, validation_alias=AliasChoices("best_share", "p_best")
    )
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


def too_few(cells: Iterable[Cell], cluster: str, least: int = MIN_CLUSTERS) -> str:
    """Why metrics are not ordered by the cells of a slice, in a few words; empty where they are."""
    most = max((cell.n_clusters for cell in cells), default=least)
    if most >= least:
        return ""
    return f"too few {cluster}s to order metrics ({most}; at least {least} needed)"


def kept_from_ranking(trust_fault: str, isolation: Iterable[str]) -> str:
    """Why a run has values but no ranks; empty where it may have them."""
    if UNSANDBOXED in isolation:
        return "ran without isolation"
    return trust_fault


def best_first(cells: Iterable[Cell], *, higher_is_better: bool) -> tuple[Cell, ...]:
    """The cells of one slice by rank, so that every tier is in one piece; undefined values last."""
    sign = -1.0 if higher_is_better else 1.0

    def order(cell: Cell) -> tuple[float, float, str]:
        return (
            math.inf if cell.rank is None else cell.rank,
            math.inf if cell.value is None else sign * cell.value,
            cell.entry_id,
        )

    return tuple(sorted(cells, key=order))


def chance_of(card: Card, measure: str) -> float | None:
    """What a metric that guesses gets by a measure; None where the card does not say."""
    named = card.headline.measure if measure == BY_GENERATOR else measure
    if named == card.headline.measure and card.headline_scale is not None:
        return card.headline_scale.chance
    known = card.measures.get(named)
    return known.chance if known else None


def beats_chance(
    low: float | None,
    high: float | None,
    chance: float = 0.0,
    *,
    higher_is_better: bool = True,
    value: float | None = None,
    among: int = 1,
) -> bool:
    """Whether a 95 % interval lies wholly above chance; False where there is no interval.

    Whoever picks from many metrics finds one above chance by luck: `among` widens the interval to
    95 % for all of them together (Bonferroni, by the ratio of normal quantiles, as the intervals
    behind it are not kept at every level).
    """
    worst = low if higher_is_better else high
    if worst is None or not _is_interval(low, high):
        return False
    if among > 1 and value is not None:
        worst = value + (worst - value) * _quantile(among) / _quantile(1)
    return worst > chance if higher_is_better else worst < chance


def is_at_or_below_chance(
    low: float | None, high: float | None, chance: float = 0.0, *, higher_is_better: bool = True
) -> bool:
    """Whether a 95 % interval lies wholly at or below chance; False where there is no interval."""
    best = high if higher_is_better else low
    if best is None or not _is_interval(low, high):
        return False
    return best <= chance if higher_is_better else best >= chance


def cell_beats_chance(card: Card, cell: Cell, among: int = 1) -> bool | None:
    """Whether a value on a board is significantly above chance; None where chance is not known."""
    chance = chance_of(card, cell.measure)
    if chance is None:
        return None
    rises = card.higher_is_better(cell.measure)
    return beats_chance(
        cell.ci_low, cell.ci_high, chance, higher_is_better=rises, value=cell.value, among=among
    )


def cell_at_or_below_chance(card: Card, cell: Cell) -> bool:
    """Whether the interval of a value on a board lies wholly at or below chance."""
    chance, rises = chance_of(card, cell.measure), card.higher_is_better(cell.measure)
    return chance is not None and is_at_or_below_chance(
        cell.ci_low, cell.ci_high, chance, higher_is_better=rises
    )


def _quantile(among: int) -> float:
    """Of the normal distribution, for a two-sided 95 % interval of so many together."""
    return NormalDist().inv_cdf(1 - 0.025 / among)


def _is_interval(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and math.isfinite(low) and math.isfinite(high)
