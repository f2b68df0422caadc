"""Published run: the input of boards and entries."""

from __future__ import annotations

from dataclasses import dataclass

from leaderboard.ranking.cells import Cell, kept_from_ranking
from leaderboard.ranking.draws import Draws
from leaderboard.records import RunResult, Submission


@dataclass(frozen=True)
class RowOfRun:
    """One row of one run."""

    entry_id: str
    row: int


@dataclass(frozen=True)
class Published:
    """One published run, as the snapshot is built from it.

    Attributes:
        submission: what was submitted.
        result: its rows.
        draws: of its rows, in their order; None before they are read.
    """

    submission: Submission
    result: RunResult
    draws: Draws | None = None

    @property
    def distrust(self) -> str:
        """Why it is kept from ranking; empty where nothing keeps it."""
        fault = self.result.trust.why_not if self.result.trust else ""
        return kept_from_ranking(fault, self.result.isolation)

    def values(self) -> tuple[RowOfRun, ...]:
        """Its rows, as `read_draws` asks for them."""
        entry_ids = (f"{self.submission.submission_id}/{row['metric']}" for row in self.result.rows)
        return tuple(RowOfRun(entry_id, row) for row, entry_id in enumerate(entry_ids))

    def cells(self) -> tuple[Cell, ...]:
        """Its rows as cells without ranks, in their order."""
        return tuple(
            Cell.of(f"{self.submission.submission_id}/{row.metric}", place, row, self.distrust)
            for place, row in enumerate(self.result.as_rows())
        )
