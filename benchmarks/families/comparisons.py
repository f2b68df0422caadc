"""Comparisons of a preference card: what people said of two images, in five forms of a table."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.families.card import Preference
from benchmarks.families.items import Items
from benchmarks.sources.folder import DataFolder, data_row

A, B, TIE, BAD = 1, -1, 0, 2
"""Golds of a comparison; that of a decided one has the sign of the margin that agrees with it."""
_MOST_COMPARISONS = 50_000_000
GOLDS = {"a": A, "b": B, "tie": TIE, "bad": BAD}


@dataclass(frozen=True)
class ComparedPairs:
    """Comparisons of two images of one text, n of them.

    Attributes:
        row: shape (n,), row of `Items.rows`.
        cluster: shape (n,), position of the prompt in `Answers.clusters`.
        a, b: shape (n,), lines of `Items.pairs`.
        gold: shape (n,), `A`, `B`, `TIE` or `BAD`.
        votes: shape (n, 2), votes or weights of both; 1 and 0 where only the preference is known.
        gap: shape (n,), how far apart both are: share of votes, weights, ranks; 1 where only the
            preference is known, 0 for a tie.
    """

    row: IntArray
    cluster: IntArray
    a: IntArray
    b: IntArray
    gold: NDArray[np.int8]
    votes: FloatArray
    gap: FloatArray

    @cached_property
    def decided(self) -> BoolArray:
        """Shape (n,): whether people preferred one."""
        return np.asarray(np.abs(self.gold) == 1, bool)

    def turned(self, which: BoolArray) -> ComparedPairs:
        """The same with the sides of some exchanged."""
        gold = np.where(which & self.decided, -self.gold, self.gold).astype(np.int8)
        votes = np.where(which[:, None], self.votes[:, ::-1], self.votes)
        a, b = np.where(which, self.b, self.a), np.where(which, self.a, self.b)
        return replace(self, a=a, b=b, gold=gold, votes=votes)

    def chosen(self, which: BoolArray) -> ComparedPairs:
        """Some of them."""
        names = ("row", "cluster", "a", "b", "gold", "votes", "gap")
        return ComparedPairs(*(getattr(self, name)[which] for name in names))


@dataclass(frozen=True)
class RankedLists:
    """Images of each row with their ranks, k in all; empty where people did not rank.

    Attributes:
        row: shape (k,), ascending row of `Items.rows`.
        line: shape (k,), lines of `Items.pairs`.
        regret: shape (k,), 0 for the best of the row and 1 for the worst; NaN where all are equal.
    """

    row: IntArray
    line: IntArray
    regret: FloatArray


def two_sided(
    folder: DataFolder, path: str, items: Items, said: Preference, cluster: IntArray
) -> ComparedPairs:
    """Comparisons of rows with two images."""
    n = len(items.rows)
    if len(items.cells) != 2 * n or (items.cells[::2, 0] != np.arange(n)).any():
        raise folder.malformed(path, "has rows that do not compare two images")
    lines = items.cells[:, 2].reshape(n, 2)
    if said.votes or said.weights:
        names = said.votes or said.weights or ("", "")
        votes = items.rows[list(names)].to_numpy(np.float64)
        for name, column in zip(names, votes.T, strict=True):
            right = pd.Series(np.isfinite(column) & (column >= 0))
            folder.check_cells(path, items.rows[name], right, "votes of at least 0")
        total = votes.sum(axis=1)
        gap = np.abs(votes[:, 0] - votes[:, 1])
        if said.votes:
            gap = np.divide(gap, total, where=total > 0, out=np.zeros(n))
        gold = np.sign(votes[:, 0] - votes[:, 1])
    else:
        gold = (
            np.full(n, GOLDS[said.winner]) if said.winner else _of_labels(folder, path, items, said)
        )
        votes = np.column_stack([gold == A, gold == B]).astype(np.float64)
        gap = votes.sum(axis=1)
    return ComparedPairs(
        np.arange(n), cluster, lines[:, 0], lines[:, 1], gold.astype(np.int8), votes, gap
    )


def _of_labels(folder: DataFolder, path: str, items: Items, said: Preference) -> NDArray[np.int8]:
    """Golds of a column of labels."""
    column = items.rows[said.label]
    found = np.full(len(column), -9, np.int8)
    known = {name: value for name, value in (said.values or {}) if value is not None}
    for name, value in known.items():
        wanted = str(value) if column.dtype == object else value
        found[(column == wanted).to_numpy(bool)] = GOLDS[name]
    strange = found == -9
    if strange.any():
        first = int(np.flatnonzero(strange)[0])
        raise folder.malformed(
            path,
            f"has {str(column.iloc[first])[:80]!r} in column {said.label} ({data_row(first)}; "
            f"{int(strange.sum())} such cells); expected {', '.join(map(str, known.values()))}",
        )
    return found


def ranked(
    folder: DataFolder, path: str, items: Items, said: Preference, cluster: IntArray
) -> tuple[ComparedPairs, RankedLists]:
    """All pairs of each list, and the lists."""
    ranks = items.rows[said.ranks]
    sizes = np.bincount(items.cells[:, 0], minlength=len(ranks))
    lengths = ranks.map(len).to_numpy()
    if (lengths != sizes).any():
        first = int(np.flatnonzero(lengths != sizes)[0])
        raise folder.malformed(
            path,
            f"has {lengths[first]} ranks for {sizes[first]} images ({data_row(first)}; "
            f"{int((lengths != sizes).sum())} such rows)",
        )
    number = int((sizes * (sizes - 1) // 2).sum())
    if number > _MOST_COMPARISONS:
        raise folder.malformed(
            path, f"ranks {number:,} pairs of images, more than {_MOST_COMPARISONS:,}"
        )
    flat = np.concatenate([*ranks.tolist(), []]).astype(np.float64)
    flat = flat if said.best == "lowest" else -flat
    row, line = items.cells[:, 0], items.cells[:, 2]
    starts = np.cumsum(sizes) - sizes
    firsts, seconds = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
    for size in np.unique(sizes):
        i, j = np.triu_indices(int(size), 1)
        of_size = starts[sizes == size][:, None]
        firsts.append((of_size + i).ravel())
        seconds.append((of_size + j).ravel())
    a, b = np.concatenate(firsts), np.concatenate(seconds)
    order = np.lexsort((b, a))
    a, b = a[order], b[order]
    gold = np.sign(flat[b] - flat[a])  # The lower rank is better.
    compared = ComparedPairs(
        row[a],
        cluster[row[a]],
        line[a],
        line[b],
        gold.astype(np.int8),
        np.column_stack([gold == A, gold == B]).astype(np.float64),
        np.abs(flat[a] - flat[b]),
    )
    low, high = np.full(len(sizes), np.inf), np.full(len(sizes), -np.inf)
    np.minimum.at(low, row, flat)
    np.maximum.at(high, row, flat)
    with np.errstate(invalid="ignore", divide="ignore"):
        regret = (flat - low[row]) / (high - low)[row]
    return compared, RankedLists(row, line, regret)


def rater_margins(items: Items, said: Preference) -> FloatArray:
    """Single ratings less the middle, shape (rows, most raters)."""
    if not said.raters:
        return np.empty((len(items.rows), 0))
    lists = items.rows[said.raters].tolist()
    found = np.full((len(lists), max(map(len, lists), default=0)), np.nan)
    for line, one in zip(found, lists, strict=True):
        line[: len(one)] = one
    return found - said.middle


def rater_ceilings(ratings: FloatArray) -> list[tuple[str, float, int]]:
    """One rater against the mean of the others, with zero as half, and where the others agree."""
    known = np.isfinite(ratings)
    others = np.nansum(ratings, axis=1, keepdims=True) - np.nan_to_num(ratings)
    number = known.sum(axis=1, keepdims=True) - known
    used = known & (number > 0) & (ratings != 0)
    half = 0.5 + 0.5 * np.sign(ratings) * np.sign(others)
    sides = np.nansum(np.sign(ratings), axis=1, keepdims=True) - np.nan_to_num(np.sign(ratings))
    agreed = used & (np.abs(sides) == number)
    majority = np.sign(np.nansum(np.sign(ratings), axis=1, keepdims=True))
    decided = used & (majority != 0)
    with_label = (
        float((np.sign(ratings) == majority)[decided].mean()) if decided.any() else math.nan
    )
    return [
        (
            "one rater against the mean of the others, an even mean as half",
            float(half[used].mean()) if used.any() else math.nan,
            int(used.sum()),
        ),
        (
            "one rater against the others where these agree",
            float(half[agreed].mean()) if agreed.any() else math.nan,
            int(agreed.sum()),
        ),
        ("one rater against the majority, itself among it", with_label, int(decided.sum())),
    ]
