"""Accuracy of element scores under three ways to find the threshold that calls one present."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal

import numpy as np

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.evalmuse.slices import Drawn, ElementTable, Estimate, count_distinct, undefined
from benchmarks.rows import Row, notes
from benchmarks.statistics import thresholds
from benchmarks.statistics.correlation import sum_by_cluster
from benchmarks.statistics.resampling import ResamplingPlan

NTIRE_THRESHOLD = 0.5
"""At which the NTIRE 2025 script cuts scores, as it cuts labels."""
FOLDS = 5
"""Parts of the prompts; each is judged by a threshold chosen on the others."""


@dataclass(frozen=True)
class ScoredElements:
    """Element scores of one metric beside the labels.

    Attributes:
        scores: shape (E,), NaN where the metric gives none.
        table: the labels.
        n_unlabelled: scores of elements that have no label.
        plan: resamples the prompts.
        sign: -1 where the scores were negated, because lower is better.
    """

    scores: FloatArray
    table: ElementTable
    n_unlabelled: int
    plan: ResamplingPlan
    sign: Literal[1, -1] = 1

    def right_at(self, threshold: float | FloatArray) -> BoolArray:
        """Shape (E,): whether each prediction is right; a missing score predicts absence."""
        right: BoolArray = (self.scores >= threshold) == self.table.positive
        return right

    def by_cluster(self, values: FloatArray, members: BoolArray) -> FloatArray:
        """Shape (C,): sums over the members, from values of shape (E,)."""
        chosen, clusters = values[members], self.table.clusters[members]
        return sum_by_cluster(chosen[:, None], clusters, len(self.plan.clusters))[:, 0]

    def share(self, right: FloatArray, members: BoolArray) -> FloatArray:
        """Shape (B,): accuracy from right predictions (B,); NaN where no member is drawn."""
        sizes = self.by_cluster(np.ones(members.size), members)
        with np.errstate(invalid="ignore"):
            accuracy: FloatArray = right / (self.plan.counts @ sizes)
        return accuracy

    def prompts_of(self, members: BoolArray) -> IntArray:
        """Positions in the plan of the prompts that some elements belong to."""
        found: IntArray = np.unique(self.table.clusters[members])
        return found

    def row(self, row: Row, right: BoolArray, members: BoolArray, note: str) -> Row:
        """The row of one slice with its value, counts and notes."""
        missing = int(np.isnan(self.scores[members]).sum())
        of_all = row.split == "all" and row.skill is None
        unknown = f"element scores without a label, which are left out: {self.n_unlabelled}"
        absent = f"missing element scores, which predict absence: {missing}"
        return replace(
            row,
            value=float(right[members].mean()),
            n_items=int(members.sum()),
            n_clusters=count_distinct(self.table.clusters[members]),
            n_missing=missing,
            note=notes(
                note,
                absent if missing else "",
                unknown if self.n_unlabelled and of_all else "",
            ),
        )


@dataclass(frozen=True)
class Search:
    """The search for thresholds in steps of 0.01, in the sample and in every resample.

    Attributes:
        elements: what is searched.
        grid: shape (K,), ascending thresholds.
    """

    elements: ScoredElements
    grid: FloatArray

    def correct(self, members: BoolArray) -> FloatArray:
        """Shape (C, K): right predictions among the members at each threshold."""
        table = self.elements.table
        return thresholds.correct_by_cluster(
            self.elements.scores[members],
            table.positive[members],
            table.clusters[members],
            len(self.elements.plan.clusters),
            self.grid,
        )

    @cached_property
    def whole(self) -> FloatArray:
        """`correct` of all elements."""
        return self.correct(np.ones(self.elements.scores.size, bool))

    @cached_property
    def best(self) -> int:
        """Position of the threshold that is best over all elements."""
        return int(thresholds.best_index(self.whole.sum(axis=0)))

    @cached_property
    def best_of_resample(self) -> IntArray:
        """Shape (B, 1): the same in each resample, one threshold for all folds."""
        return thresholds.best_index(self.elements.plan.counts @ self.whole)[:, None]

    @cached_property
    def folds(self) -> IntArray:
        """Shape (C,): fold of each prompt that has elements; 0 of others."""
        used = np.unique(self.elements.table.clusters)
        names = [self.elements.plan.clusters[cluster] for cluster in used]
        folds = np.zeros(len(self.elements.plan.clusters), np.intp)
        folds[used] = thresholds.deal_folds(names, min(FOLDS, used.size))
        return folds

    @cached_property
    def searched(self) -> IntArray:
        """Shape (F, 2): first and last threshold that the other folds' scores span."""
        of_element = self.folds[self.elements.table.clusters]
        spans = [
            thresholds.threshold_grid(self.elements.scores[of_element != fold])[[0, -1]]
            for fold in range(int(of_element.max()) + 1)
        ]
        return np.searchsorted(self.grid, np.array(spans))

    def held_out(self, counts: FloatArray) -> IntArray:
        """Shape (B, F): for each fold the threshold that is best on the others."""
        return thresholds.held_out_indices(self.whole, self.folds, self.searched, counts)

    @cached_property
    def held_out_of_resample(self) -> IntArray:
        """Shape (B, F): the same in each resample; a prompt drawn twice stays in one fold."""
        return self.held_out(self.elements.plan.counts)

    def drawn_in_sample(self, members: BoolArray) -> Drawn:
        """Accuracy in each resample at the threshold that is best there."""
        return Drawn(self._accuracy(members, self.best_of_resample))

    def drawn_held_out(self, members: BoolArray) -> Drawn:
        """Accuracy in each resample at thresholds that are best on the other folds there.

        NaN where a resample draws one fold only, so that there are no others.
        """
        accuracy = self._accuracy(members, self.held_out_of_resample)
        return Drawn(np.where(self._folds_drawn > 1, accuracy, np.nan))

    @cached_property
    def _by_fold(self) -> tuple[FloatArray, ...]:
        """The plan's counts for the prompts of each fold."""
        n_folds = len(self.searched)
        return tuple(self.elements.plan.counts[:, self.folds == fold] for fold in range(n_folds))

    @cached_property
    def _folds_drawn(self) -> IntArray:
        """Shape (B,): how many folds have elements in each resample."""
        used = np.unique(self.elements.table.clusters)
        drawn = sum_by_cluster(
            self.elements.plan.counts[:, used].T, self.folds[used], len(self.searched)
        )
        folds: IntArray = np.count_nonzero(drawn, axis=0)
        return folds

    def _accuracy(self, members: BoolArray, chosen: IntArray) -> FloatArray:
        """Shape (B,): accuracy in each resample at a threshold for each fold, (B, F), or one."""
        correct = self.correct(members)
        counts = self.elements.plan.counts
        right = np.zeros(len(counts))
        parts = [(correct, counts)]
        if chosen.shape[1] > 1:
            parts = [(correct[self.folds == fold], own) for fold, own in enumerate(self._by_fold)]
        for (of_clusters, drawn), of_fold in zip(parts, chosen.T, strict=True):
            used, place = np.unique(of_fold, return_inverse=True)
            # Few thresholds are ever the best, so all resamples are summed at each of them.
            at_used = drawn @ of_clusters[:, used]
            right += at_used[np.arange(len(counts)), place]
        return self.elements.share(right, members)


def element_estimates(row: Row, elements: ScoredElements) -> Iterator[Estimate]:
    """Accuracy over all elements, by split and by skill, in every variant."""
    row = replace(row, measure="element_accuracy", split="all")
    if elements.scores.size == 0:
        yield undefined(row, "the benchmark has no labelled elements")
        return
    try:
        search = Search(elements, thresholds.threshold_grid(elements.scores))
    except ValueError as error:
        for variant in ("paper", "held_out"):
            without = replace(row, variant=variant, n_items=elements.scores.size)
            yield undefined(without, f"no threshold: {error}")
    else:
        yield from _in_sample(replace(row, variant="paper"), search)
        yield from _held_out(replace(row, variant="held_out"), search)
    yield from _fixed(replace(row, variant="ntire"), elements)


def _in_sample(row: Row, search: Search) -> Iterator[Estimate]:
    """The threshold that is best on these very elements, as in the paper."""
    threshold = float(search.grid[search.best])
    right = search.elements.right_at(threshold)
    shown = search.elements.sign * threshold
    for part, members in _parts(row, search.elements.table):
        found = search.elements.row(part, right, members, f"threshold {shown:.2f}")
        prompts = search.elements.prompts_of(members)
        yield Estimate(found, partial(search.drawn_in_sample, members), prompts)


def _held_out(row: Row, search: Search) -> Iterator[Estimate]:
    """For each fold of the prompts the threshold that is best on the others."""
    elements = search.elements
    if count_distinct(elements.table.clusters) < 2:
        yield undefined(
            replace(row, n_items=elements.scores.size, n_clusters=1),
            "one prompt only: no other prompts to choose a threshold on",
        )
        return
    chosen = search.held_out(np.ones((1, len(elements.plan.clusters))))[0, search.folds]
    of_element = search.grid[chosen[elements.table.clusters]]
    right = elements.right_at(of_element)
    low, high = sorted(elements.sign * np.array([of_element.min(), of_element.max()]))
    note = f"thresholds {low:.2f} to {high:.2f}"
    for part, members in _parts(row, elements.table):
        found = elements.row(part, right, members, note)
        draw = partial(search.drawn_held_out, members)
        yield Estimate(found, draw, elements.prompts_of(members))


def _fixed(row: Row, elements: ScoredElements) -> Iterator[Estimate]:
    """Threshold 0.5, without any search."""
    right = elements.right_at(elements.sign * NTIRE_THRESHOLD)

    def drawn(members: BoolArray) -> Drawn:
        by_cluster = elements.by_cluster(right.astype(np.float64), members)
        return Drawn(elements.share(elements.plan.counts @ by_cluster, members))

    for part, members in _parts(row, elements.table):
        found = elements.row(part, right, members, "")
        yield Estimate(found, partial(drawn, members), elements.prompts_of(members))


def _parts(row: Row, table: ElementTable) -> Iterator[tuple[Row, BoolArray]]:
    """The row of each split and skill that has elements, with its members."""
    for split, members in table.splits:
        if members.any():
            yield replace(row, split=split), members
    for skill, members in table.skills:
        yield replace(row, skill=skill), members
