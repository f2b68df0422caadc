"""Accuracies of parts of CROC_syn for all metrics, with what stands behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.arrays import FloatArray
from benchmarks.croc.contrasts import DIRECTIONS
from benchmarks.croc.scaling import scale
from benchmarks.croc_syn.answers import MODES, TEXT_MODELS
from benchmarks.croc_syn.measures import IMAGE_CHANCE, TEXT_CHANCE
from benchmarks.croc_syn.strata import Stratum


@dataclass(frozen=True)
class Estimate:
    """One value for each of M metrics.

    Attributes:
        value: shape (M,).
        resamples: shape (B, M).
        behind: the (stratum, direction) couples it is made of.
        notes: what a reader must know, in order.
    """

    value: FloatArray
    resamples: FloatArray
    behind: frozenset[tuple[int, int]]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """Some of the strata: a mode, or a part of one.

    Attributes:
        strata: all strata of the benchmark.
        chosen: positions of those that belong to it.
    """

    strata: Sequence[Stratum]
    chosen: tuple[int, ...]

    def where(self, wanted: Callable[[Stratum], bool]) -> Part:
        """Those of its strata that are wanted."""
        return Part(self.strata, tuple(i for i in self.chosen if wanted(self.strata[i])))

    def of_text_model(self, text_model: str) -> Part:
        """The prompts that one language model wrote."""
        return self.where(lambda stratum: stratum.text_model == text_model)

    def accuracy_of_one(self, direction: str) -> Estimate:
        """Successes per group, all groups alike, both image models pooled."""
        d = DIRECTIONS.index(direction)
        mine = [self.strata[i] for i in self.chosen]
        right = sum((s.right[:, d].sum(axis=0) for s in mine), np.zeros(1))
        used = sum((s.used[:, d].sum(axis=0) for s in mine), np.zeros(1))
        drawn_right = sum((s.drawn_right[:, d] for s in mine), np.zeros((1, 1)))
        drawn_used = sum((s.drawn_used[:, d] for s in mine), np.zeros((1, 1)))
        with np.errstate(invalid="ignore", divide="ignore"):
            return Estimate(
                right / used,
                drawn_right / drawn_used,
                frozenset((i, d) for i in self.chosen),
            )

    def accuracy(self, direction: str) -> Estimate:
        """Mean of the accuracies on both language models' prompts."""
        parts = {name: self.of_text_model(name) for name in TEXT_MODELS}
        there = {name: part for name, part in parts.items() if part.chosen}
        if not there:
            return self.accuracy_of_one(direction)
        found = mean([part.accuracy_of_one(direction) for part in there.values()])
        if len(there) == len(parts):
            return found
        absent = ", ".join(name for name in parts if name not in there)
        return replace(found, notes=(f"no such prompts by {absent}: the other's alone",))

    def scaled(self, direction: str) -> Estimate:
        """The accuracy on the scale of the paper."""
        chance = TEXT_CHANCE if direction.endswith("text") else IMAGE_CHANCE
        return rescaled(self.accuracy(direction), chance)

    def scaled_by_exact_chance(self, direction: str) -> Estimate:
        """The text-based accuracy with the level of a guess that follows from the images."""
        mine = [self.strata[i] for i in self.chosen]
        n_groups = sum(s.n_groups for s in mine)
        chance = sum(s.chance for s in mine) / n_groups if n_groups else TEXT_CHANCE
        return rescaled(self.accuracy(direction), chance)

    def both_ways(self, what: str) -> Estimate:
        """Mean of the scaled forward and inverse accuracies; `what` is `text` or `image`."""
        return mean([self.scaled(f"forward_{what}"), self.scaled(f"inverse_{what}")])


def whole(strata: Sequence[Stratum]) -> Part:
    """All of the benchmark."""
    return Part(strata, tuple(range(len(strata))))


def modes_of(part: Part) -> dict[str, Part]:
    """The modes, absent ones included."""

    def of(mode: str) -> Part:
        return part.where(lambda stratum: stratum.mode == mode)

    return {mode: of(mode) for mode in MODES}


def rescaled(estimate: Estimate, chance: float) -> Estimate:
    """An accuracy on the scale from -1 to 1; resamples keep the chance level fixed."""
    return replace(
        estimate, value=scale(estimate.value, chance), resamples=scale(estimate.resamples, chance)
    )


def mean(estimates: Sequence[Estimate]) -> Estimate:
    """Unweighted mean; undefined where one of them is."""
    return Estimate(
        value=np.mean([e.value for e in estimates], axis=0),
        resamples=np.mean([e.resamples for e in estimates], axis=0),
        behind=frozenset().union(*(e.behind for e in estimates)),
        notes=tuple(dict.fromkeys(note for e in estimates for note in e.notes)),
    )
