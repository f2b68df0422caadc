"""One comparison per group and direction: the best matching image against what should score less.

All groups are compared at once; nothing here loops over prompts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.croc.contrasts import DIRECTIONS
from benchmarks.croc_syn.answers import CrocSynAnswers
from benchmarks.schema import ScoreTable


@dataclass(frozen=True)
class Grouping:
    """The rows of each group: those of group g stand together in `order`, from `starts[g]` on.

    Attributes:
        order: shape (R,), rows sorted by group, in the benchmark's order within one.
        starts: shape (G,).
    """

    order: IntArray
    starts: IntArray

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
    """What one metric did in one direction.

    Attributes:
        right: shape (G,), 1 for success and 0 for failure; NaN where the group is left out because
            no matching image has a score.
        missing: shape (G,), score cells of the comparison without a score.
    """

    right: FloatArray
    missing: IntArray


def compare(
    scores: ScoreTable, answers: CrocSynAnswers, grouping: Grouping
) -> Iterator[tuple[int, int, Outcomes]]:
    """Compare all groups, one metric and direction after the other.

    Yields:
        Column of the metric, position in DIRECTIONS, and the outcomes.

    Raises:
        KeyError: a pair id has no row in `scores`.
    """
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

    Args:
        values: shape (R, 2, K, 2): row, side of the image, image, side of the text; 0 is the
            original. NaN where there is no score.
        direction: one of DIRECTIONS.
        grouping: of the R rows into G groups.
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
    """Does the best image of the matching text score less with the other text?

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
    """Does the best matching image score more than the best contrast image with the same text?

    Missing scores are passed over; without any contrast score it is a failure.
    """
    high, low = (
        np.fmax.reduceat(np.fmax.reduce(side, axis=1)[grouping.order], grouping.starts)
        for side in (match, other)
    )
    right: FloatArray = (high > low).astype(np.float64)
    right[np.isnan(high)] = np.nan
    return right
