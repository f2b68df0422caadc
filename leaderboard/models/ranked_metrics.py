"""The metrics that score models: modules on the boards that nothing keeps from judging."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from leaderboard.publication.boards import Snapshot
from leaderboard.publication.entries import Entry
from leaderboard.ranking.cells import kept_from_ranking
from leaderboard.records import Cost, Kind, Status, Submission

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
    def title(self) -> str:
        """Name and version."""
        return f"{self.submission.name} {self.submission.version}".strip()

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
        if submission.template:
            continue  # It would judge none of them.
        entry_id = f"{submission.submission_id}/{submission.metrics[0]}"
        entry = snapshot.entries.get(entry_id)
        if entry is None or _distrusted(entry):
            continue
        pace = _pace(entry.cost.values())
        found.append(RankedMetric(submission, entry_id, pace, tiers.get(entry_id, 0)))
    return tuple(sorted(found, key=lambda one: (-one.worth, one.entry_id)))


def _distrusted(entry: Entry) -> bool:
    faults = [report.why_not for report in entry.trust.values()]
    layers = entry.isolation.values()
    return any(faults) or any(kept_from_ranking("", of_run) for of_run in layers)


def _pace(costs: Iterable[Cost]) -> float | None:
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
