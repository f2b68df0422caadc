"""The one prebuilt file that every page reads: all boards with ranks and rank ranges.

It is rebuilt in the same commit that publishes a result, so a page never shows half of one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from benchmarks.rows import Row
from benchmarks.schema import Card, Selector
from leaderboard.ranking import MAX_MISSING, MIN_CLUSTERS, rank_ranges
from leaderboard.records import Cost, Kind, RunResult, Submission
from leaderboard.store.interface import NotFoundError, Repository

PATH = "snapshot.json"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Entry(_Model):
    """One metric of one submission, as the boards show it."""

    entry_id: str
    """`<submission_id>/<metric>`."""
    submission_id: str
    metric: str
    version: str = ""
    kind: Kind
    submitter: str
    description: str = ""
    trained_on: tuple[str, ...] = ()
    isolation: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Benchmark to the layers in force while it was scored."""
    cost: dict[str, Cost] = Field(default_factory=dict)
    """Benchmark to what the run used; absent where no code was run."""
    received_at: AwareDatetime
    published_at: AwareDatetime


class Cell(_Model):
    """One value of one entry on one slice of a board."""

    entry_id: str
    measure: str
    variant: str | None
    split: str | None
    facet: str | None
    skill: str | None
    value: float | None
    ci_low: float | None
    ci_high: float | None
    n_items: int
    n_clusters: int
    n_missing: int
    note: str
    rank: int | None = None
    rank_low: int | None = None
    rank_high: int | None = None

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
    def why_unranked(self) -> str:
        """Why it has no rank, in a few words; empty where it has one."""
        if self.rank is not None:
            return ""
        if self.value is None:
            return "value undefined"
        return "too many scores missing" if self.orderable else "too few items to order"


class Board(_Model):
    """All values on one benchmark revision."""

    card: Card
    cells: tuple[Cell, ...]

    def slice(self, selector: Selector, skill: str | None) -> tuple[Cell, ...]:
        """The cells of one ranking: best first, undefined values last."""
        found = [c for c in self.cells if c.selector == selector and c.skill == skill]
        return best_first(found, higher_is_better=self.card.higher_is_better(selector.measure))


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


class Snapshot(_Model):
    """Everything the pages show."""

    schema_version: Literal[1] = 1
    built_at: AwareDatetime
    entries: dict[str, Entry]
    boards: dict[str, Board]


def read_snapshot(repository: Repository) -> Snapshot | None:
    """The published snapshot; None while nothing was published."""
    try:
        return Snapshot.model_validate_json(repository.read(PATH))
    except NotFoundError:
        return None


@dataclass(frozen=True)
class Published:
    """One published run, as the snapshot is built from it.

    Attributes:
        submission: what was submitted.
        result: its rows.
        resamples: shape (len(result.rows), B).
    """

    submission: Submission
    result: RunResult
    resamples: NDArray[np.float32]


def build_snapshot(
    runs: Iterable[Published], cards: Mapping[str, Card], built_at: datetime
) -> Snapshot:
    """All boards from all published runs.

    Runs of a benchmark that has no card here, or of another revision of it, are left out: a
    board never mixes revisions.
    """
    current = [
        run
        for run in runs
        if run.result.benchmark in cards
        and run.result.revision == cards[run.result.benchmark].revision
    ]
    boards = {
        name: Board(
            card=card, cells=_cells([r for r in current if r.result.benchmark == name], card)
        )
        for name, card in cards.items()
    }
    return Snapshot(built_at=built_at, entries=_entries(current), boards=boards)


def _entries(runs: Sequence[Published]) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    for submission in {r.submission.submission_id: r.submission for r in runs}.values():
        own = [r.result for r in runs if r.submission.submission_id == submission.submission_id]
        for metric in submission.metrics:
            entry_id = f"{submission.submission_id}/{metric}"
            entries[entry_id] = Entry(
                entry_id=entry_id,
                submission_id=submission.submission_id,
                metric=metric,
                version=submission.version,
                kind=submission.kind,
                submitter=submission.submitter,
                description=submission.description,
                trained_on=submission.trained_on,
                isolation={r.benchmark: r.isolation for r in own},
                cost={r.benchmark: r.cost for r in own if r.cost is not None},
                received_at=submission.received_at,
                published_at=max(r.judged_at for r in own),
            )
    return entries


@dataclass(frozen=True)
class _Drawn:
    entry_id: str
    row: Row
    resamples: NDArray[np.float32]


def _cells(runs: Sequence[Published], card: Card) -> tuple[Cell, ...]:
    slices: dict[tuple[str | None, ...], list[_Drawn]] = {}
    for run in runs:
        for row, draws in zip(run.result.as_rows(), run.resamples, strict=True):
            key = (row.measure, row.variant, row.split, row.facet, row.skill)
            entry_id = f"{run.submission.submission_id}/{row.metric}"
            slices.setdefault(key, []).append(_Drawn(entry_id, row, draws))
    return tuple(cell for drawn in slices.values() for cell in _ranked(drawn, card))


def _ranked(drawn: Sequence[_Drawn], card: Card) -> list[Cell]:
    """The cells of one slice. Only those that may have a rank take part in the ranking."""
    cells = [_cell(one) for one in drawn]
    able = [i for i, cell in enumerate(cells) if cell.orderable and cell.complete]
    if not able:
        return cells
    places = rank_ranges(
        np.array([drawn[i].row.value for i in able]),
        np.stack([drawn[i].resamples for i in able]),
        higher_is_better=card.higher_is_better(drawn[0].row.measure),
    )
    for i, place in zip(able, places, strict=True):
        if place is not None:
            ranks = {"rank": place.rank, "rank_low": place.low, "rank_high": place.high}
            cells[i] = cells[i].model_copy(update=ranks)
    return cells


def _cell(one: _Drawn) -> Cell:
    row = one.row.to_json()
    return Cell(entry_id=one.entry_id, **{k: row[k] for k in Cell.model_fields if k in row})
