"""Ratings of a card: what people said of each pair on one facet, in three forms of a table."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.families.card import FamilyCard, Gold
from benchmarks.families.items import Items
from benchmarks.families.tables import text_of
from benchmarks.rated_images import RatedImages
from benchmarks.sources.folder import DataFolder, data_row
from benchmarks.statistics.resampling import mean_of_defined


@dataclass(frozen=True)
class RatedPairs:
    """What people said of each pair on one facet.

    Attributes:
        means: shape (pairs,), the aggregate of the ratings; NaN where too few people rated.
        ratings: shape (pairs, raters), single ratings in the order in which they stand, so a column
            need not be one person; NaN where a pair has fewer. No columns where only means were
            released.
        deviations: shape (pairs,), standard deviations that were released with the means; empty
            where they were not.
        n_raters: raters behind each released mean; 0 where nobody said.
        outside: shape (pairs, raters), single ratings outside the scale, whatever became of them.
        within: the same without these ratings; None where there are none.
        n_unsure: ratings that are no answer.
        n_few: pairs with ratings, but of too few people.
    """

    means: FloatArray
    ratings: FloatArray
    deviations: FloatArray = field(default_factory=lambda: np.empty(0))
    n_raters: int = 0
    outside: BoolArray = field(default_factory=lambda: np.zeros((0, 0), bool))
    within: RatedPairs | None = None
    n_unsure: int = 0
    n_few: int = 0

    def counts(self, facet: str) -> dict[str, int]:
        """Ratings, those outside the scale and those left out, where there are any."""
        found = {
            f"{facet}: ratings": int(np.isfinite(self.ratings).sum()),
            f"{facet}: ratings outside the scale": int(self.outside.sum()),
            f"{facet}: no answers": self.n_unsure,
            f"{facet}: pairs with too few ratings": self.n_few,
        }
        return {what: n for what, n in found.items() if n}


def rated_pairs(folder: DataFolder, card: FamilyCard, items: Items, facet: str) -> RatedPairs:
    """Ratings of the pairs on a facet of `card.gold`.

    Raises:
        SubmitterError: `data_malformed`: a rating that is no number or outside the scale, a rater
            who rated a pair twice, a mean that stands twice; with file, row and column.
    """
    gold = card.gold[facet]
    path = _path_of(card, gold.ratings or gold.rating or gold.mean)
    if len(items.cells) != len(items.rows):
        raise folder.malformed(path, "has rows of several images; each rating is of one")
    work = _Reading(folder, path, items, gold)
    return work.released_means() if gold.mean else work.single_ratings()


def rated_images(items: Items, rated: RatedPairs) -> RatedImages:
    """The images of each prompt, to choose among; with single ratings where there are any.

    Ratings outside the scale are counted, and no quality.
    """
    prompts = items.pairs["prompt_id"].astype(str).tolist()
    pair_ids = items.pairs["pair_id"].astype(str).tolist()
    of = rated.within or rated
    n_outside = int(rated.outside.sum())
    return RatedImages(prompts, prompts, pair_ids, of.means, of.ratings, n_outside)


def _path_of(card: FamilyCard, column: str) -> str:
    return next(table.paths[0] for table in card.tables if column in table.columns)


@dataclass(frozen=True)
class _Reading:
    folder: DataFolder
    path: str
    items: Items
    gold: Gold

    def released_means(self) -> RatedPairs:
        """Means as they were released, one for each pair."""
        gold, line = self.gold, self.items.cells[:, 2]
        twice = pd.Series(line).duplicated().to_numpy()
        if twice.any():
            row = int(np.flatnonzero(twice)[0])
            raise self.folder.malformed(
                self.path,
                f"rates {self.items.pair_ids[line[row]]!r} twice in column {gold.mean} "
                f"({data_row(row)}; {int(twice.sum())} such rows)",
            )
        values, _, n_unsure = self._numbers(self.items.rows[gold.mean])
        size = len(self.items.pairs)
        means, deviations = np.full(size, np.nan), np.empty(0)
        means[line] = self._rounded(values)
        if gold.sd:
            deviations = np.full(size, np.nan)
            deviations[line] = self.items.rows[gold.sd].to_numpy(np.float64)
        return RatedPairs(means, np.empty((size, 0)), deviations, gold.n, n_unsure=n_unsure)

    def single_ratings(self) -> RatedPairs:
        """Ratings of lists or rows, and what they make together."""
        gold = self.gold
        levels = gold.aggregate if isinstance(gold.aggregate, tuple) else ()
        names = [gold.ratings or gold.rating, *levels, *filter(None, [gold.rater])]
        table = self.items.rows[list(dict.fromkeys(names))].assign(
            **{"@line": self.items.cells[:, 2]}
        )
        if gold.ratings:
            table = self._exploded(table)
        values, outside, n_unsure = self._numbers(table[names[0]])
        found = table.assign(**{"@value": values, "@outside": outside})
        self._check_once(found, [*levels, *filter(None, [gold.rater])])
        for k in range(1, len(levels)):
            # The values of one unit of the level are averaged; those without any stay unknown.
            keys = ["@line", *levels[k:]]
            grouped = found.groupby(keys, sort=True)
            found = grouped.agg({"@value": "mean", "@outside": "any"}).reset_index()
        ratings, outside = self._matrix(
            found["@line"].to_numpy(), found["@value"].to_numpy(), found["@outside"].to_numpy(bool)
        )
        kept = self._rated_pairs(ratings, n_unsure)
        if not outside.any():
            return replace(kept, outside=outside)
        within = self._rated_pairs(np.where(outside, np.nan, ratings), n_unsure)
        return replace(kept, outside=outside, within=within)

    def _rated_pairs(self, ratings: FloatArray, n_unsure: int) -> RatedPairs:
        number = np.isfinite(ratings).sum(axis=1)
        few = number < self.gold.min_raters
        means = np.where(few, np.nan, self._aggregated(ratings))
        n_few = int((few & (number > 0)).sum())
        return RatedPairs(self._rounded(means), ratings, n_unsure=n_unsure, n_few=n_few)

    def _exploded(self, table: pd.DataFrame) -> pd.DataFrame:
        """A row for each entry of the lists; other lists must be as long."""
        lists = [name for name in table if table[name].map(lambda one: isinstance(one, list)).any()]
        lengths = table[lists].map(lambda one: len(one) if isinstance(one, list) else -1)
        unlike = lengths.ne(lengths[self.gold.ratings], axis=0).any(axis=1)
        if unlike.any():
            raise self.folder.malformed(
                self.path,
                f"has lists of unlike lengths in {', '.join(map(str, lists))} "
                f"({data_row(unlike.index[unlike][0])}; {int(unlike.sum())} such rows)",
            )
        kept: pd.DataFrame = table[lengths[self.gold.ratings] > 0].explode(lists)
        return kept

    def _numbers(self, cells: pd.Series) -> tuple[FloatArray, BoolArray, int]:
        """Ratings as numbers, which of them lie outside the scale, and how many are no answers."""
        gold, (low, high) = self.gold, self.gold.scale
        unsure = np.zeros(len(cells), bool)
        if gold.unsure:
            unsure = cells.map(text_of).isin([text_of(one) for one in gold.unsure]).to_numpy(bool)
        empty = cells.isna().to_numpy(bool)
        known = cells.where(~pd.Series(unsure, cells.index))
        values = pd.to_numeric(known, errors="coerce").to_numpy(np.float64)
        expected = f"a rating from {low:g} to {high:g}"
        right = np.isfinite(values) | unsure | empty
        self.folder.check_cells(self.path, cells, pd.Series(right, cells.index), expected)
        outside = np.asarray((values < low) | (values > high))
        if gold.outside == "error":
            self.folder.check_cells(self.path, cells, pd.Series(~outside, cells.index), expected)
        if gold.outside == "drop":
            values = np.where(outside, np.nan, values)
        return values, outside, int(unsure.sum())

    def _check_once(self, found: pd.DataFrame, keys: list[str]) -> None:
        """Refuse two ratings of a pair by one rater, or of one of its units."""
        if not self.gold.rater and not keys:
            return
        twice = found.duplicated(["@line", *dict.fromkeys(keys)]).to_numpy()
        if twice.any():
            row = int(np.flatnonzero(twice)[0])
            pair = self.items.pair_ids[int(found["@line"].iloc[row])]
            who = ", ".join(f"{name} {found[name].iloc[row]!r}" for name in dict.fromkeys(keys))
            raise self.folder.malformed(
                self.path,
                f"has two ratings of {pair!r} by {who} ({data_row(found.index[row])}; "
                f"{int(twice.sum())} such ratings)",
            )

    def _matrix(
        self, line: IntArray, values: FloatArray, outside: BoolArray
    ) -> tuple[FloatArray, BoolArray]:
        """Values and marks by pair, shape (pairs, most ratings of one)."""
        place = pd.Series(line).groupby(line).cumcount().to_numpy(np.intp)
        shape = len(self.items.pairs), int(place.max(initial=-1)) + 1
        ratings, marked = np.full(shape, np.nan), np.zeros(shape, bool)
        ratings[line, place], marked[line, place] = values, outside
        return ratings, marked

    def _aggregated(self, ratings: FloatArray) -> FloatArray:
        if self.gold.aggregate != "median" or not ratings.shape[1]:
            return mean_of_defined(ratings, axis=1)
        rated = np.isfinite(ratings).any(axis=1)
        found = np.full(len(ratings), np.nan)
        found[rated] = np.nanmedian(ratings[rated], axis=1)
        return found

    def _rounded(self, values: FloatArray) -> FloatArray:
        digits = self.gold.round
        return values if digits is None else np.array([round(float(one), digits) for one in values])
