"""The grid of metrics and generations: what is scored, what is not, and what that will cost.

A new set of generations is scored by every ranked metric; a new metric scores every set that is on
the boards. Both are cells of one grid. A cell costs what is known before it is begun: images, texts
and seconds, less what need not be scored again because another set holds the very same image of
the same prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from leaderboard.publication.entries import Entry
from leaderboard.publication.model_entries import ModelEntry, ModelTrack
from leaderboard.publication.snapshot import Snapshot
from leaderboard.ranking.cells import kept_from_ranking
from leaderboard.records import Cost, ImagesSeen, JudgeRun, Kind, Status, Submission

_TYPICAL_S = 0.5
"""Of an image, where nobody measured it: between a dual encoder and a large VLM on one GPU."""


@dataclass(frozen=True)
class RankedMetric:
    """A metric whose code can be run on images."""

    submission: Submission  # its whole record
    entry_id: str  # `<submission>/<metric>`
    seconds_per_pair: float | None  # measured over its runs; None where nobody did
    # boards on whose headline it stands in the first tier: how much its word is likely to
    # count
    first_tiers: int

    @property
    def metric(self) -> str:
        """Its name on the boards."""
        return self.entry_id.rpartition("/")[2]

    @property
    def title(self) -> str:
        """Name and version."""
        return f"{self.metric} {self.submission.version}".strip()

    def expected_s(self, pairs: int) -> float:
        """Seconds that so many pairs are likely to take."""
        each = _TYPICAL_S if self.seconds_per_pair is None else self.seconds_per_pair
        return each * pairs

    @property
    def worth(self) -> float:
        """What its scores are worth by the second they take: what has more is scored first."""
        return (1.0 + self.first_tiers) / max(self.expected_s(1), 1e-6)


def ranked_metrics(
    snapshot: Snapshot | None, statuses: Iterable[Status]
) -> tuple[RankedMetric, ...]:
    """The metrics that score models, those of most worth by the second first."""
    if snapshot is None:
        return ()
    tiers = _first_tiers(snapshot)
    found: list[RankedMetric] = []
    for status in statuses:
        submission = status.submission
        if not status.on_boards or submission.kind is not Kind.METRIC or submission.private:
            continue
        if submission.template or submission.method == "compare":
            continue  # It would judge none of them.
        for metric in submission.metrics:
            entry_id = f"{submission.submission_id}/{metric}"
            entry = snapshot.entries.get(entry_id)
            if entry is None or _distrusted(entry):
                continue
            pace = _seconds_per_pair(entry.cost.values())
            found.append(RankedMetric(submission, entry_id, pace, tiers.get(entry_id, 0)))
    return tuple(sorted(found, key=lambda one: (-one.worth, one.entry_id)))


def _distrusted(entry: Entry) -> bool:
    faults = [report.why_not for report in entry.trust.values()]
    layers = entry.isolation.values()
    return any(faults) or any(kept_from_ranking("", of_run) for of_run in layers)


def _seconds_per_pair(costs: Iterable[Cost]) -> float | None:
    """Seconds by the pair over all runs."""
    measured = [(cost.seconds, cost.pairs) for cost in costs if cost.pairs]
    pairs = sum(n for _, n in measured)
    return sum(s for s, _ in measured) / pairs if pairs else None


def _first_tiers(snapshot: Snapshot) -> dict[str, int]:
    found: dict[str, int] = {}
    for board in snapshot.boards.values():
        for cell in board.slice(board.card.headline, None):
            if cell.tier == 1:
                found[cell.entry_id] = found.get(cell.entry_id, 0) + 1
    return found


PERTURBED = 200  # Images of a set that are scored again after the one-pixel change, at most


@dataclass(frozen=True)
class GridCell:
    """One metric on one set of generations."""

    entry: ModelEntry  # the generations
    metric: RankedMetric
    run: JudgeRun | None  # what it gave; None: it has not scored them
    images: int  # to be scored, those after the one-pixel change included; 0 where it is done
    seconds: float  # it is likely to take

    @property
    def done(self) -> bool:
        """Whether nothing is to be done: it scored them, or could not."""
        return self.run is not None

    @property
    def worth(self) -> float:
        """What it is worth by the second."""
        return 0.0 if self.done else self.metric.worth


def grid(track: ModelTrack, metrics: Sequence[RankedMetric]) -> tuple[GridCell, ...]:
    """Every cell, what is worth most by the second first, then what is done."""
    cells = [_cell(entry, metric) for entry in track.entries.values() for metric in metrics]
    return tuple(
        sorted(cells, key=lambda c: (c.done, -c.worth, c.entry.submission_id, c.metric.entry_id))
    )


def missing(judges: Mapping[str, JudgeRun], metrics: Iterable[RankedMetric]) -> list[RankedMetric]:
    """The metrics that have not scored a set, in their order."""
    return [one for one in metrics if one.entry_id not in judges]


def images_to_score(images: ImagesSeen) -> int:
    """How many images a metric is asked about."""
    prompts = images.wanted // max(len(images.seeds), 1)
    return images.present + min(PERTURBED, prompts, images.present)


def _cell(entry: ModelEntry, metric: RankedMetric) -> GridCell:
    run = entry.judges.get(metric.entry_id)
    images = 0 if run is not None else images_to_score(entry.images)
    return GridCell(entry, metric, run, images, metric.expected_s(images))
