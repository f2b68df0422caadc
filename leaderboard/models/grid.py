"""The grid of metrics and generations: what is scored, what is not, and what that will cost.

A new set of generations is scored by every ranked metric; a new metric scores every set that is on
the boards. Both are cells of one grid. A cell costs what is known before it is begun: images, texts
and seconds, less what need not be scored again because another set holds the very same image of
the same prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from leaderboard.models.ranked_metrics import RankedMetric
from leaderboard.publication.model_entries import ModelEntry, ModelTrack
from leaderboard.records import ImagesSeen, JudgeRun

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
