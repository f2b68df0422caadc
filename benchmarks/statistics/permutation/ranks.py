"""Ranks within groups, and the order they come from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.statistics.permutation.sample import Sample


@dataclass(frozen=True)
class Ranks:
    """One column of a sample in ascending order within its groups, which keep their places.

    Attributes:
        order: shape (n,), item at each place.
        place: shape (n,), place of each item; tied ones in any order.
        low: shape (n,), first place of each item's run of ties; `place` itself without ties.
        high: shape (n,), the place after the run.
    """

    order: IntArray
    place: IntArray
    low: IntArray
    high: IntArray

    @classmethod
    def of(cls, values: FloatArray, sample: Sample) -> Ranks:
        """Sort a column (n,) of the sample."""
        one_group = sample.n_groups == 1
        order = np.argsort(values) if one_group else np.lexsort((values, sample.group))
        place = np.empty(values.size, np.intp)
        place[order] = np.arange(values.size)
        ascending = values[order]
        new = np.empty(values.size, np.bool_)
        new[:1] = True
        np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
        new[sample.starts] = True
        if new.all():
            return cls(order, place, place, place + 1)
        first = np.flatnonzero(new)
        run = (np.cumsum(new) - 1)[place]
        return cls(order, place, first[run], np.append(first[1:], values.size)[run])

    @cached_property
    def tie_free(self) -> bool:
        """Whether no two items of a group are equal."""
        return self.low is self.place

    @cached_property
    def doubled(self) -> IntArray:
        """Shape (n,), twice the average place of each item's run, first and last included.

        Twice the average rank, counted from 0 over all groups: an integer in 0..2n - 2.
        """
        return self.low + self.high - 1

    def average(self, sample: Sample) -> FloatArray:
        """Average ranks within the groups, from 1, shape (n,); sums of them are exact."""
        return self.doubled / 2.0 - sample.starts[sample.group] + 1.0

    def classes(self, sample: Sample) -> IntArray:
        """Position of each item's value among the distinct ones of its group, shape (n,)."""
        first = np.zeros(self.order.size + 1, np.intp)
        first[self.low + 1] = 1
        distinct = np.cumsum(first)  # runs that begin before a place
        within: IntArray = distinct[self.low] - distinct[sample.starts][sample.group]
        return within


def centred_ranks(values: FloatArray, sample: Sample) -> FloatArray:
    """Average ranks less their mean in the group, multiples of a half: exact."""
    ranks = Ranks.of(values, sample).average(sample)
    centred: FloatArray = ranks - ((sample.sizes + 1) / 2.0)[sample.group]
    return centred
