"""Measures of CROC_syn: accuracies of groups, strata and parts.

All groups are compared at once; nothing loops over prompts. A stratum is what shares mode, text
model, top-level property and length. Sums of strata give every larger part, so each cluster is
multiplied with the resampling plan once per direction and metric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.croc.measures import DIRECTIONS, scale
from benchmarks.croc_syn.load import CrocSynAnswers
from benchmarks.schema import MeasureInfo, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan

PAPER_CHANCE, IMAGE_CHANCE = 5 / 6, 1 / 2
"""Accuracy of chance: the best of five matching images has five chances in six to beat the one
score of the other text; the best of n against the best of n others has one in two."""

MEASURES: dict[str, MeasureInfo] = {
    "accuracy": MeasureInfo.share(
        title="Accuracy",
        meaning="Share of prompts for which the metric prefers the matching combination strictly. "
        "Text-based: the image that fits its prompt best by the metric (the first of equally good "
        "ones) scores higher with that prompt than with the other. Image-based: the best image of "
        "the prompt scores higher than the best image of the other prompt. Images without a score "
        "are passed over; a prompt none of whose matching images has one is left out; a missing "
        "score on the other side is a failure. The mean over the language models' prompts; chance "
        "reaches 5/6 with five images text-based, and 1/2 image-based.",
        source="CROC, CROC_syn evaluation",
    ),
    "scaled_accuracy": MeasureInfo.correlation(
        title="Scaled accuracy",
        meaning="Accuracy on a scale on which 0 is chance, 1 always right and -1 never right; the "
        "sides above and below it are stretched each on its own. Chance is taken as 5/6 "
        "text-based (n/(n+1) in a set of n images a prompt) and 1/2 image-based, as in the paper; "
        "variant exact_chance takes n/(n+1) for prompts with n images, and its interval keeps that "
        "level fixed.",
        source="CROC, CROC_syn evaluation, Table 1",
    ),
}


@dataclass(frozen=True)
class Grouping:
    """The rows of each group: those of group g stand together in `order`, from `starts[g]` on."""

    order: IntArray  # shape (R,), rows sorted by group, in the benchmark's order within one
    starts: IntArray  # shape (G,)

    @classmethod
    def of(cls, group: IntArray) -> Grouping:
        """From the group 0..G-1 of each row."""
        order = np.argsort(group, kind="stable")
        sizes = np.bincount(group)
        return cls(order, np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp))

    @property
    def first(self) -> IntArray:
        """Shape (G,), the first row of each group."""
        return self.order[self.starts]

    @property
    def sizes(self) -> IntArray:
        """Shape (G,), rows of each group."""
        return np.diff(self.starts, append=len(self.order))

    @property
    def of_sorted_rows(self) -> IntArray:
        """Shape (R,), group of each row in `order`."""
        return np.repeat(np.arange(len(self.starts)), self.sizes)


@dataclass(frozen=True)
class Outcomes:
    """Outcomes of one metric in one direction."""

    # shape (G,), 1 for success and 0 for failure; NaN where the group is left out because no
    # matching image has a score
    right: FloatArray
    missing: IntArray  # shape (G,), score cells of the comparison without a score


def compare(
    scores: ScoreTable, answers: CrocSynAnswers, grouping: Grouping
) -> Iterator[tuple[int, int, Outcomes]]:
    """Compare all groups, one metric and direction after the other."""
    table = scores.oriented()
    if len(table) != len(answers.pair_ids) or not np.array_equal(
        table.index.to_numpy(object), np.array(answers.pair_ids, object)
    ):
        table = table.loc[list(answers.pair_ids)]
    shape = (len(answers.prompts), 2, answers.images_per_prompt, 2)
    for column in range(table.shape[1]):
        values = table.iloc[:, column].to_numpy(np.float64).reshape(shape)
        for number, direction in enumerate(DIRECTIONS):
            yield column, number, outcomes_of(values, direction, grouping)


def outcomes_of(values: FloatArray, direction: str, grouping: Grouping) -> Outcomes:
    """Compare all groups in one direction.

    `values` (R, 2, K, 2): row, side of the image, image, side of the text; 0 is the original. NaN
    where there is no score.
    """
    own = 1 if direction.startswith("inverse") else 0
    match = values[:, own, :, own]
    if direction.endswith("text"):
        other = values[:, own, :, 1 - own]
        right = _by_text(match, other, grouping)
    else:
        other = values[:, 1 - own, :, own]
        right = _by_image(match, other, grouping)
    missing = np.isnan(match).sum(axis=1) + np.isnan(other).sum(axis=1)
    return Outcomes(right, np.add.reduceat(missing[grouping.order], grouping.starts))


def _by_text(match: FloatArray, other: FloatArray, grouping: Grouping) -> FloatArray:
    """Groups (G,) whose best image of the matching text scores less with the other text.

    An image without a matching score cannot be the best; of equally good ones, the first is (the
    authors' sort leaves that open). Its other score may be missing: then it is a failure.
    """
    scored = np.where(np.isnan(match), -np.inf, match)
    best = scored.argmax(axis=1)
    rows = np.arange(len(best))
    top = scored[rows, best]
    won: FloatArray = (match[rows, best] > other[rows, best]).astype(np.float64)
    won[np.isneginf(top)] = np.nan
    if len(grouping.starts) == len(best):  # every row is a group of its own
        chosen = grouping.first
    else:
        by_top = np.lexsort((rows, -top[grouping.order], grouping.of_sorted_rows))
        chosen = grouping.order[by_top[grouping.starts]]
    outcome: FloatArray = won[chosen]
    return outcome


def _by_image(match: FloatArray, other: FloatArray, grouping: Grouping) -> FloatArray:
    """Groups (G,) whose best matching image scores more than the best contrast image with its text.

    Missing scores are passed over; without any contrast score it is a failure.
    """
    high, low = (
        np.fmax.reduceat(np.fmax.reduce(side, axis=1)[grouping.order], grouping.starts)
        for side in (match, other)
    )
    right: FloatArray = (high > low).astype(np.float64)
    right[np.isnan(high)] = np.nan
    return right


_BLOCK = 64  # resamples whose counts are gathered at once: bounds the memory


@dataclass(frozen=True)
class Stratum:
    """Sums over the groups of one stratum, for D directions and M metrics."""

    mode: str  # key of MODES
    text_model: str  # that wrote the prompts
    skill: str  # of the property, or empty
    length: str  # one of `croc.measures.LENGTHS`
    members: IntArray  # shape (c,), positions of its clusters
    right: FloatArray  # shape (c, D, M), successful groups of each cluster
    used: FloatArray  # shape (c, D, M), groups of each cluster that are not left out
    missing: IntArray  # shape (D, M), score cells without a score
    n_groups: int  # groups, left out or not
    chance: float  # sum over the groups of n / (n + 1) for a group with n images
    drawn: tuple[FloatArray, ...]  # `right` and `used` in each resample, shapes (B, D, M)


def strata_of(
    scores: ScoreTable, answers: CrocSynAnswers, plan: ResamplingPlan
) -> tuple[Stratum, ...]:
    """Compare all groups and sum them up."""
    grouping = Grouping.of(answers.prompts["group"].to_numpy(np.intp))
    groups = answers.prompts.iloc[grouping.first]
    shape = (len(groups), len(DIRECTIONS), len(scores.metrics))
    right = np.empty(shape, np.float32)
    missing = np.empty(shape, np.int32)
    for metric, direction, found in compare(scores, answers, grouping):
        right[:, direction, metric] = found.right
        missing[:, direction, metric] = found.missing
    n_images = grouping.sizes * answers.images_per_prompt
    in_plan = plan.positions(answers.clusters)
    clusters = groups["cluster"].to_numpy(np.intp)
    strata = []
    for (mode, text_model, skill, length), chosen in _positions(groups):
        members, code = np.unique(clusters[chosen], return_inverse=True)
        used = np.isfinite(right[chosen])
        sums = [
            _sum_by(code, len(members), np.where(used, right[chosen], 0.0)),
            _sum_by(code, len(members), used.astype(np.float64)),
        ]
        stratum = Stratum(
            mode,
            text_model,
            skill,
            length,
            members,
            right=sums[0],
            used=sums[1],
            missing=missing[chosen].sum(axis=0, dtype=np.intp),
            n_groups=len(chosen),
            chance=float((n_images[chosen] / (n_images[chosen] + 1)).sum()),
            drawn=_drawn(plan, in_plan[members], sums),
        )
        strata.append(stratum)
    return tuple(strata)


def _drawn(
    plan: ResamplingPlan, columns: IntArray, parts: list[FloatArray]
) -> tuple[FloatArray, ...]:
    """Sums of (c, D, M) over clusters, each as often as it was drawn: shapes (B, D, M)."""
    flat = np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)
    drawn = np.concatenate(
        [
            np.take(plan.counts[begin : begin + _BLOCK], columns, axis=1) @ flat
            for begin in range(0, plan.n_resamples, _BLOCK)
        ]
    )
    shape = (plan.n_resamples, *parts[0].shape[1:])
    return tuple(part.reshape(shape) for part in np.split(drawn, len(parts), axis=1))


def _positions(groups: pd.DataFrame) -> Iterator[tuple[tuple[str, str, str, str], IntArray]]:
    """Mode, text model, skill and length of each stratum, with the positions of its groups."""
    keys = ["mode", "text_model", "skill", "length"]
    by_key = groups.reset_index(drop=True).groupby(keys, observed=True, sort=False)
    found: dict[Any, Any] = dict(by_key.indices)
    for (mode, text_model, skill, length), rows in found.items():
        yield (str(mode), str(text_model), str(skill), str(length)), np.asarray(rows, np.intp)


def _sum_by(code: IntArray, n: int, values: FloatArray) -> FloatArray:
    """Sums of `values` (g, D, M) over the rows of each code: shape (n, D, M)."""
    flat = values.reshape(len(values), -1).astype(np.float64)
    columns = [np.bincount(code, flat[:, i], n) for i in range(flat.shape[1])]
    summed = np.stack(columns, axis=1).reshape(n, *values.shape[1:])
    return summed.astype(np.float64)


@dataclass(frozen=True)
class Estimate:
    """Value of each of M metrics, with what stands behind it."""

    value: FloatArray  # shape (M,)
    resamples: FloatArray  # shape (B, M)
    behind: frozenset[tuple[int, int]]  # the (stratum, direction) couples it is made of
    notes: tuple[str, ...] = ()  # what a reader must know, in order


@dataclass(frozen=True)
class Part:
    """Some of the strata: a mode, or a part of one."""

    strata: Sequence[Stratum]  # all strata of the benchmark
    chosen: tuple[int, ...]  # positions of those that belong to it
    text_models: tuple[str, ...]  # all that wrote prompts of the benchmark
    text_chance: float  # accuracy of chance, text-based

    def where(self, wanted: Callable[[Stratum], bool]) -> Part:
        """Those of its strata that are wanted."""
        return replace(self, chosen=tuple(i for i in self.chosen if wanted(self.strata[i])))

    def of_text_model(self, text_model: str) -> Part:
        """The prompts that one language model wrote."""
        return self.where(lambda stratum: stratum.text_model == text_model)

    def accuracy_of_one(self, direction: str) -> Estimate:
        """Successes per group, all groups alike, both image models pooled."""
        d = DIRECTIONS.index(direction)
        mine = [self.strata[i] for i in self.chosen]
        right = sum((s.right[:, d].sum(axis=0) for s in mine), np.zeros(1))
        used = sum((s.used[:, d].sum(axis=0) for s in mine), np.zeros(1))
        drawn_right = sum((s.drawn[0][:, d] for s in mine), np.zeros((1, 1)))
        drawn_used = sum((s.drawn[1][:, d] for s in mine), np.zeros((1, 1)))
        with np.errstate(invalid="ignore", divide="ignore"):
            return Estimate(
                right / used,
                drawn_right / drawn_used,
                frozenset((i, d) for i in self.chosen),
            )

    def accuracy(self, direction: str) -> Estimate:
        """Mean of the accuracies on the prompts of each language model."""
        parts = {name: self.of_text_model(name) for name in self.text_models}
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
        chance = self.text_chance if direction.endswith("text") else IMAGE_CHANCE
        return rescaled(self.accuracy(direction), chance)

    def scaled_by_exact_chance(self, direction: str) -> Estimate:
        """The text-based accuracy with the level of a guess that follows from the images."""
        mine = [self.strata[i] for i in self.chosen]
        n_groups = sum(s.n_groups for s in mine)
        chance = sum(s.chance for s in mine) / n_groups if n_groups else self.text_chance
        return rescaled(self.accuracy(direction), chance)

    def both_ways(self, what: str) -> Estimate:
        """Mean of the scaled forward and inverse accuracies; `what` is `text` or `image`."""
        return mean([self.scaled(f"forward_{what}"), self.scaled(f"inverse_{what}")])


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
