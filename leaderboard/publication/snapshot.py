"""The one prebuilt file that every page reads: all boards with ranks and rank ranges.

It is rebuilt in the same commit that publishes a result, so a page never shows half of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from benchmarks.schema import Card, Selector
from benchmarks.statistics.resampling import seed_of
from leaderboard.ranking.cells import Cell, best_first, kept_from_ranking
from leaderboard.ranking.draws import Draws, stacked
from leaderboard.ranking.slices import Slice, ranked
from leaderboard.records import Cost, Findings, Kind, Provenance, RunResult, Submission
from leaderboard.store.interface import NotFoundError, Repository
from leaderboard.trust import TrustReport

PATH = "snapshot.json"
EXAMPLES_SHOWN = 5
"""Items named beside the counts of what was found about a run's items."""


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
    account: str = ""
    """Key of the account behind the signature; empty where it is older than accounts."""
    description: str = ""
    trained_on: tuple[str, ...] = ()
    isolation: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Benchmark to the layers in force while it was scored."""
    cost: dict[str, Cost] = Field(default_factory=dict)
    """Benchmark to what the run used; absent where no code was run."""
    findings: dict[str, Findings] = Field(default_factory=dict)
    """Benchmark to what was found about its items, with a few by name."""
    trust: dict[str, TrustReport] = Field(default_factory=dict)
    """Benchmark to what the scorer was put through there; absent where no code was run."""
    provenance: dict[str, Provenance] = Field(default_factory=dict)
    """Benchmark to what its figures are computed again from."""
    same_content_as: tuple[str, ...] = ()
    """Earlier submissions by others with the very same content: a flag, not a verdict."""
    same_scores_as: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Benchmark to submissions by others with the very same scores, likewise; absent if none."""
    received_at: AwareDatetime
    published_at: AwareDatetime


class Board(_Model):
    """All values on one benchmark revision."""

    card: Card
    cells: tuple[Cell, ...]

    @property
    def seed(self) -> int:
        """Seed of its resamples and tests."""
        return seed_of(self.card.name, self.card.revision)

    def slice(self, selector: Selector, skill: str | None) -> tuple[Cell, ...]:
        """The cells of one ranking: best first, undefined values last."""
        found = [c for c in self.cells if c.selector == selector and c.skill == skill]
        return best_first(found, higher_is_better=self.card.higher_is_better(selector.measure))


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
                account=submission.account,
                description=submission.description,
                trained_on=submission.trained_on,
                isolation={r.benchmark: r.isolation for r in own},
                cost={r.benchmark: r.cost for r in own if r.cost is not None},
                findings={r.benchmark: _in_short(r.findings) for r in own if r.findings},
                trust={r.benchmark: r.trust for r in own if r.trust is not None},
                provenance={r.benchmark: r.provenance for r in own},
                same_content_as=submission.same_content_as,
                same_scores_as={r.benchmark: r.same_scores_as for r in own if r.same_scores_as},
                received_at=submission.received_at,
                published_at=max(r.judged_at for r in own),
            )
    return entries


def _in_short(findings: Findings) -> Findings:
    """With few enough examples for a file that every page reads; the result has more."""
    return findings.model_copy(update={"examples": findings.examples[:EXAMPLES_SHOWN]})


def _cells(runs: Sequence[Published], card: Card) -> tuple[Cell, ...]:
    """Every value, ranked within its slice; tests are made for the headline alone.

    What else somebody looks at is tested then: all slices of all boards would take minutes.
    """
    slices: dict[tuple[str | None, ...], list[tuple[Published, Cell]]] = {}
    for run in runs:
        for place, row in enumerate(run.result.as_rows()):
            key = (row.measure, row.variant, row.split, row.facet, row.skill)
            cell = Cell.of(f"{run.submission.submission_id}/{row.metric}", place, row, run.distrust)
            slices.setdefault(key, []).append((run, cell))
    return tuple(cell for of_slice in slices.values() for cell in _ranked(of_slice, card))


def _ranked(of_slice: Sequence[tuple[Published, Cell]], card: Card) -> tuple[Cell, ...]:
    cells = tuple(cell for _, cell in of_slice)
    headline = cells[0].selector == card.headline and cells[0].skill is None
    behind = [(run.draws, cell.row) for run, cell in of_slice]
    draws = Draws(
        resamples=stacked([d.resamples[row] if d else None for d, row in behind]),
        contributions=stacked(
            [d.contributions[row] if d and headline else None for d, row in behind]
        ),
    )
    return ranked(Slice(cells, draws), card, tested=headline).cells
