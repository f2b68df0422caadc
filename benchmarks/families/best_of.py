"""Choices among rated images: is the image with the highest score one that people rate best?

Rows of the card are single images with ratings. Those of one prompt in one split are chosen from in
groups of `size` in the order of the rows: all nine of them, say, or the first three, the next three
and the last. With L the mean ratings of a group, m its n images of the highest score:

    top1_agreement  mean over groups of the share of m with L = max L
    rating_of_best  mean over groups of the mean L over m

or, with `ties = "first"`, the same of the first image of m alone, which then depends on the order of
the images. An image without a score is never chosen, though it may be the best. Where no image of a
group has a score, nothing is chosen, which is as bad as the image that people rate worst; with
`missing = "drop"` the group is left out. Groups with an image that nobody rated are no groups.

Each size is a facet, as `best_of_9`. Where the card names both rules for ties, those of the first image
are variant `paper` and those of the mean variant `assay`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import pandas as pd

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.families.benchmark import CardBenchmark, Ceiling, ItemAnswers
from benchmarks.families.card import FamilyCard, Group
from benchmarks.families.items import Items
from benchmarks.families.means import Credit, add_mean
from benchmarks.families.measures import refuse, with_measures
from benchmarks.families.ratings import RatedPairs, rated_images, rated_pairs
from benchmarks.families.slices import ALL, slices_of
from benchmarks.rated_images import RatedImages
from benchmarks.rows import Measured, MeasuredBuilder, Row
from benchmarks.schema import MeasureInfo, ScoreTable
from benchmarks.sources.folder import DataFolder
from benchmarks.statistics.raters import one_against_the_others
from benchmarks.statistics.resampling import ResamplingPlan

MEASURES: dict[str, MeasureInfo] = {
    "top1_agreement": MeasureInfo.share(
        title="Top-1 agreement",
        meaning="How often the image with the highest score is one of those with the highest mean "
        "rating, among the images of one prompt.",
        source="GenAI-Bench, ranking images; the authors' evaluation script",
    ),
    "rating_of_best": MeasureInfo(
        title="Rating of the choice",
        meaning="Mean rating of the image with the highest score among the images of one prompt.",
        source="GenAI-Bench, ranking images; the authors' evaluation script",
    ),
}
_TIES = {
    "average": "Of images with equal scores the average counts.",
    "first": "Of images with equal scores the first one counts.",
}
_BOTH = (
    "Of images with equal scores, variant paper takes the first one, and variant assay the average."
)


@dataclass(frozen=True)
class RatedGroups(ItemAnswers):
    """Images with ratings."""

    rated: RatedPairs
    # facet to the lines of `items.pairs` of each group, shape (groups, size)
    groups: Mapping[str, IntArray]
    # position of the prompt of each row in `clusters`; a row is a line
    cluster_of_row: IntArray


class BestOfBenchmark(CardBenchmark):
    """Rated images of one prompt, of which a metric chooses the best."""

    infos: ClassVar[Mapping[str, MeasureInfo]] = MEASURES

    def __init__(self, card: FamilyCard, home: Path) -> None:
        said = card.group
        assert said is not None
        if said.gold not in card.gold:
            known = ", ".join(card.gold) or "none"
            refuse(card, [f"group.gold: there is no [gold.{said.gold}] ({known})"])
        super().__init__(_with_rules(card, said), home)
        self.said: Group = said
        self._ties: Mapping[str, str] = (
            {"paper": "first", "assay": "average"}
            if len(set(said.ties)) == 2
            else {card.evaluation.variant: said.ties[0]}
        )
        """Variant to what counts of images with equal scores."""

    def labelled(self, folder: DataFolder, items: Items) -> RatedGroups:
        """The ratings that the rows hold, and the groups of their images."""
        rated = rated_pairs(folder, self.card, items, self.said.gold)
        groups = {f"best_of_{size}": self._groups(folder, items, size) for size in self.said.size}
        return RatedGroups(
            items.pair_ids,
            items.clusters,
            items,
            rated,
            {
                facet: lines[np.isfinite(rated.means[lines]).all(axis=1)]
                for facet, lines in groups.items()
            },
            items.cluster_of_row,
            sources=folder.verified(),
        )

    def _groups(self, folder: DataFolder, items: Items, size: int) -> IntArray:
        """Lines of the images of each group, shape (groups, size)."""
        lists = items.rows.groupby(["split", "prompt_id"], sort=False)
        uneven = lists.size()[lists.size() % size > 0]
        if len(uneven):
            raise folder.malformed(
                self.card.tables[0].paths[0],
                f"has {uneven.iloc[0]} images of prompt {str(uneven.index[0][1])!r}; expected a "
                f"multiple of {size} ({len(uneven)} such prompts)",
            )
        order: IntArray = np.argsort(lists.ngroup().to_numpy(np.intp), kind="stable")
        return order.reshape(-1, size)

    @property
    def compares_images(self) -> bool:
        """All its rows do."""
        return True

    def within_text(self, row: Row) -> bool:
        """Always: the best of the images of a text is chosen."""
        del row
        return True

    def measure(self, scores: ScoreTable, answers: RatedGroups, plan: ResamplingPlan) -> Measured:
        """All measures of every metric, by facet and variant; overall, by split and by skill."""
        builder = MeasuredBuilder(plan.n_resamples)
        table = scores.oriented().loc[list(answers.pair_ids)]
        cluster = plan.positions(answers.clusters)[answers.cluster_of_row]
        slices = slices_of(self.card, answers.items)
        row = self.blank_row()
        for metric in scores.metrics:
            values = table[metric].to_numpy(np.float64)
            for facet, lines in answers.groups.items():
                for variant, ties in self._ties.items():
                    found = self._credits(values[lines], answers.rated.means[lines], ties)
                    for part in slices:
                        of_slice = replace(
                            row,
                            metric=metric,
                            split=part.split,
                            skill=part.skill,
                            facet=facet,
                            variant=variant,
                            n_missing=int(np.isnan(values[part.rows]).sum()),
                        )
                        inside: BoolArray = part.rows[lines[:, 0]]
                        for measure in (one for one in self.card.measures if one in MEASURES):
                            credit = found[measure].of(inside)
                            named = replace(
                                of_slice, measure=measure, note=self._note(of_slice, credit)
                            )
                            if self.missing == "fail" and of_slice.n_missing:
                                credit = credit.of(np.zeros(len(lines), bool))
                            place, members = cluster[lines[:, 0]], cluster[part.rows]
                            add_mean(builder, named, credit, place, plan, members=members)
        return builder.build()

    def _credits(self, scores: FloatArray, labels: FloatArray, ties: str) -> dict[str, Credit]:
        """Credit of each group by measure; `scores` and `labels` have shape (groups, size)."""
        chosen = chosen_images(scores, ties)
        number = chosen.sum(axis=1)
        share = np.maximum(number, 1)
        best = labels == labels.max(axis=1, keepdims=True)
        none = number == 0
        agreed = (chosen & best).sum(axis=1) / share
        rating = np.where(chosen, labels, 0.0).sum(axis=1) / share
        weight = np.ones(len(scores)) if self.missing != "drop" else (~none).astype(np.float64)
        if self.missing != "drop":
            rating = np.where(none, labels.min(axis=1), rating)
        found = {"top1_agreement": agreed, "rating_of_best": rating}
        return {name: Credit(total, weight, none) for name, total in found.items()}

    def _note(self, row: Row, credit: Credit) -> str:
        if self.missing == "drop" and not credit.weight.any():
            return "no group of images has a score"
        if not row.n_missing:
            return ""
        return f"{_UNSCORED[self.missing]}: {row.n_missing}"

    # What the labels alone say.

    def gold_of_pairs(self, answers: RatedGroups) -> FloatArray:
        """Mean ratings."""
        means: FloatArray = answers.rated.means
        return means

    def chance(self, answers: RatedGroups) -> float:
        """The headline of a random choice."""
        lines = self._inside(answers, self._facet, self._split)
        found = random_choice(answers.rated.means[lines]) if len(lines) else {}
        agreement = self.card.headline.measure == "top1_agreement"
        return found.get("top1_agreement" if agreement else "rating", math.nan)

    @property
    def _split(self) -> str:
        return self.card.headline.split or ""

    @property
    def _facet(self) -> str:
        return self.card.headline.facet or f"best_of_{self.said.size[0]}"

    def ceiling(self, answers: RatedGroups) -> Ceiling | None:
        """One rater choosing, against the mean rating of the others."""
        lines = self._inside(answers, self._facet, self._split)
        ratings = answers.rated.ratings[lines.ravel()]
        complete = np.isfinite(ratings).all() and ratings.shape[1] > 1
        if not complete or not len(lines) or self.card.headline.measure != "top1_agreement":
            return None

        def agreement(rater: FloatArray, others: FloatArray) -> float:
            shape = rater.reshape(lines.shape), others.reshape(lines.shape)
            return self._credits(*shape, "average")["top1_agreement"].mean()

        value = float(one_against_the_others(ratings, agreement).mean())
        return Ceiling(value, "one rater's choice against the mean rating of the others")

    def rated_images(self, answers: RatedGroups) -> RatedImages:
        """The images of each prompt and split, which are chosen among."""
        found = rated_images(answers.items, answers.rated)
        lists = answers.items.rows[["prompt_id", "split"]].astype(str).agg("/".join, axis=1)
        return replace(found, choices=lists.tolist())

    def with_half_credit(self) -> Self:
        """This benchmark with the mean over images of equal score, in every variant."""
        found = copy.copy(self)
        found._ties = dict.fromkeys(self._ties, "average")
        return found

    def facts(self, answers: RatedGroups) -> Mapping[str, pd.DataFrame]:
        """What a random choice reaches, and the best one."""
        return {"What a random choice and the best one reach": self._random(answers)}

    def _random(self, answers: RatedGroups) -> pd.DataFrame:
        """Columns `split`, `facet`, `top1_agreement`, `rating`, `best_rating`."""
        names = [part.split or "" for part in slices_of(self.card, answers.items)]
        rows = []
        for split in dict.fromkeys(names):
            for facet in answers.groups:
                label = answers.rated.means[self._inside(answers, facet, split)]
                if len(label):
                    rows.append({"split": split, "facet": facet, **random_choice(label)})
        return pd.DataFrame(rows)

    def _inside(self, answers: RatedGroups, facet: str, split: str) -> IntArray:
        """Groups of a facet in a split."""
        lines = answers.groups[facet]
        if split in ("", ALL):
            return lines
        of_row = answers.items.rows["split"].to_numpy(object)
        inside: IntArray = lines[of_row[lines[:, 0]] == split]
        return inside


_UNSCORED = {
    "wrong": "images without a score, never chosen",
    "drop": "images without a score, never chosen",
    "fail": "withheld: images without a score",
}


def chosen_images(scores: FloatArray, ties: str) -> BoolArray:
    """Images of the highest score of each group, or the first of them; none where none has a score.

    `scores`: shape (groups, size), higher is better; NaN where the metric gave none.
    """
    scored = np.isfinite(scores)
    filled = np.where(scored, scores, -np.inf)
    chosen: BoolArray = scored & (filled == filled.max(axis=1, keepdims=True))
    if ties == "first":
        chosen &= np.cumsum(chosen, axis=1) == 1
    return chosen


def random_choice(labels: FloatArray) -> dict[str, float]:
    """Mean `top1_agreement` and `rating` of a random choice, and `best_rating` of the best one.

    `labels`: shape (groups, size), mean ratings.
    """
    best = labels == labels.max(axis=1, keepdims=True)
    return {
        "top1_agreement": float(best.mean()),
        "rating": float(labels.mean()),
        "best_rating": float(labels.max(axis=1).mean()),
    }


def _with_rules(card: FamilyCard, said: Group) -> FamilyCard:
    """The card with measures that say what becomes of ties, and the scale of ratings."""
    ties = _BOTH if len(set(said.ties)) == 2 else _TIES[said.ties[0]]
    low, high = card.gold[said.gold].scale
    card = with_measures(card, rule=lambda name: ties if name in MEASURES else "")
    measures = {
        name: info.model_copy(update={"low": low, "high": high} if name == "rating_of_best" else {})
        for name, info in card.measures.items()
    }
    return card.model_copy(update={"measures": measures})
