"""The answers as arrays: what all metrics share is looked up once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.evalmuse.answers import EvalMuseAnswers
from benchmarks.evalmuse.element_keys import UNREPORTED_SKILL
from benchmarks.rows import PooledSample, Row, notes
from benchmarks.statistics.resampling import ResamplingPlan

Slice = tuple[str, BoolArray]
"""Name of a split or skill, and its members."""

PRESENT = 0.5
"""Mean label from which on people say that an element is there."""


@dataclass(frozen=True)
class Drawn:
    """What the resamples of one estimate say.

    Attributes:
        values: shape (B,), or None where the estimate has no interval.
        note: what a reader must know about them; empty as a rule.
    """

    values: FloatArray | None = None
    note: str = ""


@dataclass(frozen=True)
class Estimate:
    """One row, and its resamples once somebody asks for them.

    Attributes:
        row: without an interval.
        draw: computes the resamples; None where there are none.
        members: positions in the plan of the prompts of the slice; None: all.
        pool: makes the sample behind a correlation of one pool; None for other rows.
    """

    row: Row
    draw: Callable[[], Drawn] | None = None
    members: IntArray | None = None
    pool: Callable[[], PooledSample] | None = None

    @cached_property
    def drawn(self) -> Drawn:
        """The resamples; computed at most once."""
        return self.draw() if self.draw is not None else Drawn()


@dataclass(frozen=True)
class ImageTable:
    """All images, N of them, in the benchmark's order.

    Attributes:
        labels: shape (N,), mean overall ratings.
        clusters: shape (N,), position of the prompt in the plan.
        splits: `all`, then each split that has members.
        skills: each reported skill, with the images that have an element of it.
    """

    labels: FloatArray
    clusters: IntArray
    splits: tuple[Slice, ...]
    skills: tuple[Slice, ...]


@dataclass(frozen=True)
class ElementTable:
    """All labelled (image, element) pairs, E of them.

    Attributes:
        keys: columns `pair_id`, `element_id`.
        positive: shape (E,), whether at least half of the annotators see the element.
        clusters: shape (E,), position of the prompt in the plan.
        splits: as of the images.
        skills: each reported skill.
    """

    keys: pd.DataFrame
    positive: BoolArray
    clusters: IntArray
    splits: tuple[Slice, ...]
    skills: tuple[Slice, ...]

    def scores_from(self, table: pd.DataFrame) -> tuple[FloatArray, int]:
        """A metric's scores in the order of the keys.

        Args:
            table: columns `pair_id`, `element_id`, `score`.

        Returns:
            Shape (E,), NaN where the metric gives none; and how many scores belong to no label.

        Raises:
            pandas.errors.MergeError: an element has two scores.
        """
        names = ["pair_id", "element_id"]
        if table[names].reset_index(drop=True).equals(self.keys):
            # In the order of the labels, which spares looking up every pair of names.
            return table["score"].to_numpy(np.float64), 0
        joined = self.keys.merge(
            table[[*names, "score"]], on=names, how="left", validate="one_to_one", indicator=True
        )
        labelled = int((joined["_merge"] == "both").sum())
        return joined["score"].to_numpy(np.float64), len(table) - labelled


def tables_of(answers: EvalMuseAnswers, plan: ResamplingPlan) -> tuple[ImageTable, ElementTable]:
    """Both tables.

    Raises:
        KeyError: an element belongs to no image, or a prompt is not in the plan.
    """
    images, elements = answers.images, answers.elements
    image_of = pd.Index(images["pair_id"]).get_indexer(pd.Index(elements["pair_id"]))
    if (image_of < 0).any():
        raise KeyError(f"no image {elements['pair_id'][image_of < 0].iloc[0]!r} has a rating")
    codes, prompts = pd.factorize(images["prompt_id"])
    clusters = plan.positions(prompts)[codes]
    splits = (("all", np.ones(len(images), bool)), *_groups(images["split"], without=""))
    skills = tuple(_groups(elements["skill"], without=UNREPORTED_SKILL))
    return (
        ImageTable(
            images["label"].to_numpy(np.float64),
            clusters,
            splits,
            tuple((skill, _reached(image_of[members], len(images))) for skill, members in skills),
        ),
        ElementTable(
            elements[["pair_id", "element_id"]].reset_index(drop=True),
            elements["label"].to_numpy(np.float64) >= PRESENT,
            clusters[image_of],
            tuple((split, members[image_of]) for split, members in splits),
            skills,
        ),
    )


def undefined(row: Row, *reasons: str) -> Estimate:
    """A row without a value, and why."""
    return Estimate(replace(row, value=math.nan, note=notes(*reasons)))


def count_distinct(clusters: IntArray) -> int:
    """How many different clusters there are."""
    return int(np.count_nonzero(np.bincount(clusters))) if clusters.size else 0


def _groups(column: pd.Series, without: str) -> Iterator[Slice]:
    """Each value in alphabetical order, with its members."""
    codes, names = pd.factorize(column, sort=True)
    for code, name in enumerate(names):
        if name != without:
            yield str(name), codes == code


def _reached(positions: IntArray, size: int) -> BoolArray:
    members = np.zeros(size, bool)
    members[positions] = True
    return members
