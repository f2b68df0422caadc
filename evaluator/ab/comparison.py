"""Outcome of a comparison of two folders: by skill, by metric, and the prompts that differ most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray
from benchmarks.statistics.better_or_tied import (
    MARGIN,
    MIN_PROMPTS,
    Outcome,
    PairedOutcome,
    corrected,
    joint_outcome,
    paired_outcome,
)
from evaluator.ab.images import DrawnImages


@dataclass(frozen=True)
class MetricScores:
    """What one metric gave the images of both models."""

    name: str
    title: str
    higher_is_better: bool
    values: FloatArray  # shape (P, 2), mean over the images of a prompt; NaN where one has none
    skills: frozenset[str | None] | None = None  # that it judges; None: all
    unscored: tuple[int, int] = (0, 0)  # images of either model without a score

    @property
    def rising(self) -> FloatArray:
        """The same, turned so that higher is better."""
        return self.values if self.higher_is_better else -self.values

    def judges(self, skill: str | None) -> bool:
        """Whether it judges a skill; None stands for all prompts."""
        return self.skills is None or skill in self.skills


@dataclass(frozen=True)
class SkillOutcome:
    """What is said of one skill."""

    skill: str | None  # key; None: all prompts
    n_prompts: int
    by_metric: Mapping[str, PairedOutcome]  # corrected over all skills and metrics

    @property
    def outcome(self) -> Outcome:
        """Of the second model, by all metrics that judge the skill."""
        return joint_outcome(one.outcome for one in self.by_metric.values())

    @property
    def too_few(self) -> bool:
        """Whether there are too few prompts for any test."""
        return self.n_prompts < MIN_PROMPTS

    @property
    def contradicted(self) -> bool:
        """Whether one metric says better and another worse."""
        said = {one.outcome for one in self.by_metric.values()}
        return {Outcome.BETTER, Outcome.WORSE} <= said

    @property
    def n_to_decide(self) -> int | None:
        """Prompts that would decide: by the metric that needs fewest for a difference, or all for a tie.

        None where it is decided, or no such number is known.
        """
        if self.outcome is not Outcome.UNDECIDED or self.contradicted:
            return None
        metrics = self.by_metric.values()
        differ = [one.n_to_differ for one in metrics]
        tie = [0 if one.outcome is Outcome.TIED else one.n_to_tie for one in metrics]
        ways = [n for n in differ if n is not None]
        if all(n is not None for n in tie):
            ways.append(max(n or 0 for n in tie))
        return min(ways, default=None)


@dataclass(frozen=True)
class Comparison:
    """Two folders of images on the same prompts."""

    first: str  # name of the one that is compared with
    second: str  # name of the one that is judged
    drawn: DrawnImages
    metrics: tuple[MetricScores, ...]
    margin: float = MARGIN
    sub_skills: bool = False  # whether `color:simple` and the like are compared too

    @cached_property
    def skills(self) -> tuple[SkillOutcome, ...]:
        """All prompts first, then each skill that some metric judges, in alphabetical order."""
        keys = {
            skill
            for one in self.drawn.prompts
            for skill in one.skills
            if self.sub_skills or ":" not in skill
        }
        cells = [
            (skill, metric)
            for skill in (None, *sorted(keys))
            for metric in self.metrics
            if metric.judges(skill)
        ]
        same = {
            skill: self.drawn.same_images(
                one for one in self.drawn.prompts if skill is None or skill in one.skills
            )
            for skill in (None, *keys)
        }
        found = corrected(
            [
                paired_outcome(of[:, 0], of[:, 1], self.margin, same=same[skill])
                for skill, metric in cells
                for of in [metric.rising[self.members(skill)]]
            ]
        )
        by_skill: dict[str | None, dict[str, PairedOutcome]] = {}
        for (skill, metric), one in zip(cells, found, strict=True):
            by_skill.setdefault(skill, {})[metric.name] = one
        return tuple(
            SkillOutcome(skill, int(self.members(skill).sum()), of)
            for skill, of in by_skill.items()
        )

    def members(self, skill: str | None) -> BoolArray:
        """Shape (P,): the prompts of a skill; None: all."""
        return np.array([skill is None or skill in one.skills for one in self.drawn.prompts], bool)

    @cached_property
    def shifts(self) -> FloatArray:
        """Shape (P,): mean over metrics of the difference in units of the metric's spread.

        NaN where no metric has both scores.
        """
        parts = []
        for metric in self.metrics:
            judged = [
                any(metric.judges(skill) for skill in (None, *one.skills))
                for one in self.drawn.prompts
            ]
            d = np.where(judged, np.diff(metric.rising, axis=1)[:, 0], np.nan)
            spread = np.nanstd(metric.values) if np.isfinite(metric.values).any() else np.nan
            parts.append(d / spread if spread > 0 else np.where(np.isfinite(d), 0.0, np.nan))
        stacked = np.array(parts).reshape(len(parts), len(self.drawn.prompts))
        known = np.isfinite(stacked)
        with np.errstate(invalid="ignore"):
            shifts: FloatArray = np.where(known, stacked, 0.0).sum(axis=0) / known.sum(axis=0)
        return shifts

    def differing(self, most: int) -> list[int]:
        """Places of the prompts that differ most, the largest first, zero differences left out."""
        size = np.nan_to_num(np.abs(self.shifts), nan=0.0)
        order = np.argsort(-size, kind="stable")[:most]
        return [int(place) for place in order if size[place] > 0]


def mean_scores(drawn: DrawnImages, scores: Mapping[tuple[str, str], float]) -> FloatArray:
    """Mean over the images of each prompt and model, shape (P, 2), from scores by hash and prompt.

    An image without a score is left out of the mean; NaN where a prompt has none.
    """
    found = np.full((len(drawn.prompts), 2), np.nan)
    for place, one in enumerate(drawn.prompts):
        for model, digests in enumerate(drawn.digests[one.prompt_id]):
            values: Sequence[float] = [scores.get((digest, one.text), np.nan) for digest in digests]
            defined = [value for value in values if np.isfinite(value)]
            if defined:
                found[place, model] = float(np.mean(defined))
    return found


def unscored(drawn: DrawnImages, scores: Mapping[tuple[str, str], float]) -> tuple[int, int]:
    """Images of either model that have no score."""
    counts = [0, 0]
    for one in drawn.prompts:
        for model, digests in enumerate(drawn.digests[one.prompt_id]):
            counts[model] += sum((digest, one.text) not in scores for digest in digests)
    return counts[0], counts[1]
