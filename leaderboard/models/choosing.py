"""Choosing the best of n images of a prompt by one metric: what it gains under the other qualified ones."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from benchmarks.arrays import FloatArray, unit_of
from benchmarks.rated_images import MOST
from benchmarks.schema import Card
from benchmarks.statistics.best_of_n import GainCurve, expected_gains, gain_curve, mean_curve
from leaderboard.models.board_types import BoardQuery, Judge
from leaderboard.models.reading import ModelReader
from leaderboard.models.selection import Selection, selection
from leaderboard.publication.entries import Identity
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.publication.reader import View


class Reason(StrEnum):
    """Why nothing is gained under a metric, nor lost."""

    ALIKE = "alike"  # it scores all images of a choice alike
    NO_COMMON_SCORES = "no common scores"  # no choice has all scores, of it and of what chooses


@dataclass(frozen=True)
class NoGain:
    """That there is no gain under a metric."""

    reason: Reason
    n_missing: int  # choices without all these scores


@dataclass(frozen=True, eq=False)
class OtherGain:
    """The gain under one other metric."""

    judge: Judge  # a qualified metric
    curve: GainCurve | NoGain  # in its standard deviations within prompts


@dataclass(frozen=True, eq=False)
class ModelImagesGain:
    """What choosing among the images of models by one metric gains, on one prompt set.

    Choices are among the images that a model drew of a prompt with its seeds.
    """

    card: Card  # the prompt set
    entry_id: str  # the metric
    own: GainCurve | NoGain  # under itself, in its own standard deviations
    others: tuple[OtherGain, ...]  # the qualified metrics, those with the most behind them first
    mean: GainCurve | None  # over the others that have one; None without any
    n_models: int  # whose images are chosen among
    n_few: int  # further models with too few seeds for the largest size


def model_images_gain(
    reader: ModelReader, view: View, prompt_set: str, entry_ids: Collection[str]
) -> ModelImagesGain | None:
    """The gain of a metric, which has these entries; None where it scored no model with two seeds."""
    if reader.prompts(prompt_set) is None:
        return None
    chosen = selection(reader, view, BoardQuery(prompt_set))
    entry_id = next((one for one in entry_ids if one in chosen.metrics), None)
    if entry_id is None:
        return None
    found: ModelImagesGain | None = reader.memory.of_view(view).further.of(
        ("choosing", entry_id, chosen.state), lambda: _made(chosen, entry_id)
    )
    return found


def _made(chosen: Selection, entry_id: str) -> ModelImagesGain | None:
    several = [one for one in chosen.entries if _scored(one, entry_id) and _seeds(one)[1:]]
    if not several:
        return None
    numbers = sorted((len(_seeds(one)) for one in several), reverse=True)
    sizes = tuple(range(1, min(MOST, numbers[(len(numbers) - 1) // 2]) + 1))
    models = sorted(
        (one for one in several if len(_seeds(one)) >= len(sizes)), key=lambda one: len(_seeds(one))
    )
    work = _Gains(chosen, tuple(models), sizes, entry_id)
    others = tuple(
        OtherGain(judge, work.under(judge.entry_id)) for judge in _others(chosen, entry_id)
    )
    known = [one.curve for one in others if isinstance(one.curve, GainCurve)]
    return ModelImagesGain(
        card=chosen.prompt_set.card,
        entry_id=entry_id,
        own=work.under(entry_id),
        others=others,
        mean=mean_curve(known) if known else None,
        n_models=len(models),
        n_few=len(several) - len(models),
    )


def _scored(entry: ModelEntry, judge: str) -> bool:
    run = entry.judges.get(judge)
    return run is not None and not run.failed


def _seeds(entry: ModelEntry) -> list[int]:
    return sorted(set(entry.images.seeds))


def _others(chosen: Selection, entry_id: str) -> list[Judge]:
    """The qualified metrics that are another than this one, by submission, name and scores."""
    trusted = [one for one in chosen.judges(None) if one.trusted]
    of = chosen.view.entries
    own, digest = Identity.of(of[entry_id]), chosen.columns(entry_id).digest
    kept = set(chosen.distinct(trusted))
    return [
        one
        for one in trusted
        if one.entry_id in kept
        and of[one.entry_id].submission_id != of[entry_id].submission_id
        and Identity.of(of[one.entry_id]) != own
        and chosen.columns(one.entry_id).digest != digest
    ]


@dataclass(frozen=True)
class _Gains:
    """Gains of choosing among the images of models by one metric."""

    chosen: Selection
    models: Sequence[ModelEntry]  # those of equally many seeds side by side
    sizes: Sequence[int]
    entry_id: str

    def under(self, judge: str) -> GainCurve | NoGain:
        """In standard deviations of another metric's scores within prompts."""
        ids = self.chosen.slices.ids
        scores, values = self._tables(self.entry_id), self._tables(judge)
        unit = unit_of(*values)
        values = [table / unit for table in values]
        gains = np.concatenate([
            expected_gains(own, other, self.sizes)
            for own, other in zip(scores, values, strict=True)
        ])  # fmt: skip
        missing = np.isnan(gains).any(axis=1)
        if missing.all():
            return NoGain(Reason.NO_COMMON_SCORES, len(gains))
        spread = _within(values)
        if not spread:
            return NoGain(Reason.ALIKE, int(missing.sum()))
        cluster_of = np.tile(np.arange(len(ids)), len(self.models))
        return gain_curve(gains / spread, self.sizes, cluster_of, self.chosen.plan)

    def _tables(self, judge: str) -> list[FloatArray]:
        """Shape (models x P, S) for each number S of seeds; NaN where there is no score."""
        by_number: dict[int, list[FloatArray]] = {}
        for entry in self.models:
            table = self._of_model(entry, judge)
            by_number.setdefault(table.shape[1], []).append(table)
        return [np.concatenate(of) for of in by_number.values()]

    def _of_model(self, entry: ModelEntry, judge: str) -> FloatArray:
        ids, seeds = self.chosen.slices.ids, _seeds(entry)
        table = np.full((len(ids), len(seeds)), np.nan)
        found = self.chosen.reader.scores.of(entry, judge, ids)
        for seed, scores in zip(found.seeds, found.scores, strict=True) if found else ():
            table[:, seeds.index(seed)] = scores
        return table


def _within(tables: Sequence[FloatArray]) -> float:
    """Root of the mean variance (n - 1) over images of one prompt and model with all their scores."""
    variances = []
    for table in tables:
        whole = table[np.isfinite(table).all(axis=1)]
        # Rounding gives equal scores a variance above zero.
        differ = whole.max(axis=1) > whole.min(axis=1)
        variances.append(np.where(differ, whole.var(axis=1, ddof=1), 0.0))
    return math.sqrt(float(np.concatenate(variances).mean()))
