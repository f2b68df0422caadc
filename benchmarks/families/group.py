"""Family of groups: texts and images of which it is known which belong together.

A row of the card's table is a group of texts and images. Text k with image i is the cell `c<k>i<i>`
and has a score s[k, i]. A rule is a list of comparisons of cells which all have to hold; its measure
is the share of groups in which they do. Comparisons are strict: equal scores are wrong, and so is a
comparison without a score.

`winoground` (two texts, two images; Thrush et al., CVPR 2022, arXiv:2204.03162, equations 1 to 3):

    text_score   s[0, 0] > s[1, 0] and s[1, 1] > s[0, 1]
    image_score  s[0, 0] > s[0, 1] and s[1, 1] > s[1, 0]
    group_score  both

`caption_choice` (one image; the first text is right) and `image_choice` (one text; the first image
is right): `accuracy`, s[0, 0] greater than the score of every other cell.

`vqa_pairs` (two questions, two images; Li et al., NeurIPS 2024, arXiv:2410.14669). Its authors ask
models for answers; question k is true of image k and false of the other one. Here a score above the
card's threshold, 0.5 as a rule, is read as yes, one below it as no, and one at it as neither, which is
wrong. So a score has to be a probability of yes, or of the text being true of the image. `acc` is the
share of right answers, `q_acc` the share of questions that are right for both images, `i_acc` the
share of images of which both answers are right, `g_acc` the share of groups with four right answers.

`best_of`, a choice among rated images, is in `benchmarks.families.best_of`. Other rules are the card's
own `[[group.rules]]`.

The chance of a rule is the share of all orders of the scores in which its comparisons hold.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.families.benchmark import CardBenchmark, ItemAnswers
from benchmarks.families.best_of import BestOfBenchmark
from benchmarks.families.card import FamilyCard, Group
from benchmarks.families.items import Items
from benchmarks.families.means import Credit, add_mean
from benchmarks.families.measures import guesses, refuse
from benchmarks.families.slices import slices_of
from benchmarks.rows import Measured, MeasuredBuilder, Row
from benchmarks.schema import Benchmark, MeasureInfo, ScoreTable
from benchmarks.sources.folder import DataFolder, data_row
from benchmarks.statistics.orders import chance_of_order
from benchmarks.statistics.resampling import ResamplingPlan

_WINOGROUND = "Winoground, arXiv:2204.03162, equations 1 to 3"
_NATURAL = "NaturalBench, arXiv:2410.14669; there of answers, here of scores above a threshold"
MEASURES: dict[str, MeasureInfo] = {
    "text_score": MeasureInfo.share(
        title="Text score",
        meaning="Share of groups in which each image has a higher score with its own text than "
        "with the other one. Equal scores are wrong.",
        source=_WINOGROUND,
    ),
    "image_score": MeasureInfo.share(
        title="Image score",
        meaning="Share of groups in which each text has a higher score with its own image than "
        "with the other one. Equal scores are wrong.",
        source=_WINOGROUND,
    ),
    "group_score": MeasureInfo.share(
        title="Group score",
        meaning="Share of groups in which both hold: each image prefers its text, and each text its "
        "image. Equal scores are wrong.",
        source=_WINOGROUND,
    ),
    "accuracy": MeasureInfo.share(
        title="Accuracy",
        meaning="Share of groups in which what is right has a higher score than everything that is "
        "wrong. Equal scores are wrong.",
        source="SugarCrepe, arXiv:2306.14610",
    ),
    "q_acc": MeasureInfo.share(
        title="Questions",
        meaning="Share of questions that are answered right for both images: yes where the score is "
        "above the threshold, no where it is below.",
        source=_NATURAL,
    ),
    "i_acc": MeasureInfo.share(
        title="Images",
        meaning="Share of images of which both questions are answered right.",
        source=_NATURAL,
    ),
    "acc": MeasureInfo.share(
        title="Answers",
        meaning="Share of right answers.",
        source=_NATURAL,
    ),
    "g_acc": MeasureInfo.share(
        title="Groups",
        meaning="Share of groups in which all four answers are right.",
        source=_NATURAL,
    ),
}
RULES: Mapping[str, tuple[str, ...]] = {
    "winoground": ("group_score", "text_score", "image_score"),
    "caption_choice": ("accuracy",),
    "image_choice": ("accuracy",),
    "vqa_pairs": ("g_acc", "q_acc", "i_acc", "acc"),
}
"""Rule to its measures."""
MOST_CELLS = 16
"""Cells that one rule may compare: its chance is counted over their orders."""
_CELL = re.compile(r"c(\d+)i(\d+)")

Comparison = tuple[int, int]
"""Places of the higher and of the lower score among those of a row."""
Part = tuple[Comparison, ...]
"""Comparisons that all have to hold."""


@dataclass(frozen=True)
class GroupAnswers(ItemAnswers):
    """Groups of texts and images."""

    lines: IntArray  # shape (n, cells), line of each cell in `items.pairs`; text by text
    cluster_of_row: IntArray  # position of the prompt of each row in `clusters`

    def counts(self) -> dict[str, int]:
        """Groups, also those of each split, beside the counts of the items."""
        splits = self.items.rows["split"].value_counts()
        of_split = {f"{name}: groups": int(n) for name, n in splits.items() if name}
        return super().counts() | {"groups": len(self.lines)} | of_split


class GroupBenchmark(CardBenchmark):
    """Groups of texts and images, of which a metric should see which belong together."""

    infos = MEASURES

    def __init__(self, card: FamilyCard, home: Path) -> None:
        said = card.group
        assert said is not None
        self.said: Group = said
        self._shape = len(_named(card.items.text)), _n_images(card, said)
        self._parts = _parts_of(card, said, *self._shape)
        measures = {
            name: info.model_copy(update={"chance": _chance(self._parts[name])})
            for name, info in card.measures.items()
        }
        super().__init__(card.model_copy(update={"measures": measures}), home)
        self._ties: Literal["wrong", "random"] = "wrong"

    @classmethod
    def of(cls, card: FamilyCard, home: Path) -> CardBenchmark:
        """The benchmark of a card: a choice among rated images has a protocol of its own."""
        choice = card.group is not None and card.group.rule == "best_of"
        return BestOfBenchmark(card, home) if choice else cls(card, home)

    @classmethod
    def infos_of(cls, given: Mapping[str, Any]) -> Mapping[str, MeasureInfo]:
        """The measures of the card's rule, or one for each rule of its own."""
        group = given.get("group")
        group = group if isinstance(group, dict) else {}
        if group.get("rule") == "best_of":
            return BestOfBenchmark.infos
        if group.get("rule") in RULES:
            return {name: MEASURES[name] for name in RULES[group["rule"]]}
        own = group.get("rules")
        named = [one for one in own if isinstance(one, dict)] if isinstance(own, list) else []
        return {str(one.get("name")): _own_info(one) for one in named} or MEASURES

    def labelled(self, folder: DataFolder, items: Items) -> GroupAnswers:
        """The groups that the rows hold."""
        n, size = len(items.rows), math.prod(self._shape)
        of_row = np.bincount(items.cells[:, 0], minlength=n)
        if (of_row != size).any():
            first = int(np.flatnonzero(of_row != size)[0])
            raise folder.malformed(
                self.card.tables[0].paths[0],
                f"has {of_row[first]} texts with images where a group has {size} "
                f"({data_row(first)}; {int((of_row != size).sum())} such rows)",
            )
        return GroupAnswers(
            items.pair_ids,
            items.clusters,
            items,
            items.cells[:, 2].reshape(n, size),
            items.cluster_of_row,
            sources=folder.verified(),
        )

    @property
    def compares_images(self) -> bool:
        """Whether a row has several images of a text."""
        return self.said.rule in ("winoground", "image_choice")

    def within_text(self, row: Row) -> bool:
        """Whether images of a text are compared, not texts of an image."""
        return row.measure == "image_score" or self.said.rule == "image_choice"

    def measure(self, scores: ScoreTable, answers: GroupAnswers, plan: ResamplingPlan) -> Measured:
        """All measures of every metric, overall, by split and by skill."""
        builder = MeasuredBuilder(plan.n_resamples)
        table = scores.oriented().loc[list(answers.pair_ids)]
        slices = slices_of(self.card, answers.items)
        cluster = plan.positions(answers.clusters)[answers.cluster_of_row]
        row = self.blank_row()
        for metric in scores.metrics:
            values = table[metric].to_numpy(np.float64) * scores.unit(metric)
            cells = self._with_threshold(
                values[answers.lines], values, scores.directions.get(metric, 1)
            )
            found = {name: self._credit(cells, self._parts[name]) for name in self.card.measures}
            for part in slices:
                used = np.unique(answers.lines[part.rows])
                of_slice = replace(
                    row,
                    metric=metric,
                    split=part.split,
                    skill=part.skill,
                    n_missing=int(np.isnan(values[used]).sum()),
                )
                for measure, credit in found.items():
                    inside = credit.of(part.rows)
                    note = self._note(inside)
                    if inside.n_unscored and self.missing == "fail":
                        inside = inside.of(np.zeros_like(part.rows))
                    named = replace(of_slice, measure=measure, note=note)
                    add_mean(builder, named, inside, cluster, plan, members=cluster[part.rows])
        return builder.build()

    def _with_threshold(self, cells: FloatArray, values: FloatArray, direction: int) -> FloatArray:
        """The scores of each row, and behind them the threshold that each may be compared with."""
        if self.said.rule != "vqa_pairs":
            return cells
        limit = self.said.threshold * direction
        if self._ties == "random":  # What a control counts has no threshold of its own.
            limit = float(np.nanmedian(values)) if np.isfinite(values).any() else math.nan
        return np.hstack([cells, np.where(np.isnan(cells), np.nan, limit)])

    def _credit(self, cells: FloatArray, parts: tuple[Part, ...]) -> Credit:
        """Credit of each row: how many parts of a measure hold, of how many."""
        total, weight = np.zeros((2, len(cells)))
        unscored = np.zeros(len(cells), bool)
        for part in parts:
            higher, lower = (cells[:, list(side)] for side in zip(*part, strict=True))
            none = (np.isnan(higher) | np.isnan(lower)).any(axis=1)
            held = (higher > lower).all(axis=1).astype(np.float64)
            if self._ties == "random":
                held = _with_random_ties(higher > lower, higher == lower, part)
            counted = ~none if self.missing == "drop" else np.ones(len(cells), bool)
            total += np.where(counted, held, 0.0)
            weight += counted
            unscored |= none
        return Credit(total, weight, unscored)

    def _note(self, credit: Credit) -> str:
        if not credit.n_unscored:
            return ""
        said = {
            "wrong": "groups without a score, counted as wrong",
            "drop": "groups without a score, left out",
            "fail": "withheld: groups without a score",
        }
        return f"{said[self.missing]}: {credit.n_unscored}"

    # What the labels alone say.

    def gold_of_pairs(self, answers: GroupAnswers) -> FloatArray:
        """Share of a cell's comparisons that it should win: 1 where text and image belong together."""
        size = len(answers.pair_ids)
        truth = self._truth()
        known = np.isfinite(truth)
        lines = answers.lines[:, known].ravel()
        total = np.bincount(lines, np.tile(truth[known], len(answers.lines)), size)
        with np.errstate(invalid="ignore", divide="ignore"):
            found: FloatArray = total / np.bincount(lines, minlength=size)
        return found

    def _truth(self) -> FloatArray:
        """The same of each cell of a group; NaN where no rule compares it."""
        size = math.prod(self._shape)
        pairs = {pair for parts in self._parts.values() for part in parts for pair in part}
        higher, lower = (np.array(side) for side in zip(*pairs, strict=True))
        won, lost = (np.bincount(one, minlength=2 * size)[:size] for one in (higher, lower))
        with np.errstate(invalid="ignore"):
            found: FloatArray = won / (won + lost)
        return found

    def with_half_credit(self) -> Self:
        """This benchmark with equal scores in an order drawn at random: what is expected then."""
        found = copy.copy(self)
        found._ties = "random"
        return found

    def facts(self, answers: GroupAnswers) -> Mapping[str, pd.DataFrame]:
        """What chance reaches by each measure."""
        flat = np.zeros_like(answers.lines, np.float64)
        flat = self._with_threshold(flat, np.zeros(1), 1)
        return guesses(
            self.card,
            {
                "random scores": lambda measure: _chance(self._parts[measure]),
                "equal scores": lambda measure: self._credit(flat, self._parts[measure]).mean(),
            },
        )

    def prompts(self, data: Path | None) -> pd.DataFrame:
        """None: a group tests metrics on images that are given."""
        return Benchmark.prompts(self, data)

    def texts(self, data: Path | None) -> Mapping[str, str]:
        """None, as there are no prompts."""
        del data
        return {}

    def cases(self, answers: GroupAnswers, data: Path | None) -> pd.DataFrame:
        """The texts and images of each group."""
        del data
        row, place, line = answers.items.cells[np.lexsort(answers.items.cells[:, [2, 0]].T)].T
        expected = self._truth()[place]
        named = {1.0: "belong together", 0.0: "do not belong together"}
        said = [named.get(one, f"wins {one:.0%} of its comparisons") for one in expected]
        found = answers.items.cases("row_id", row, line, expected, said)
        kept: pd.DataFrame = found[np.isfinite(expected)].reset_index(drop=True)
        return kept


def _with_random_ties(won: BoolArray, tied: BoolArray, part: Part) -> FloatArray:
    """Chance that all comparisons of a part hold where equal scores fall in a random order."""
    alive = (won | tied).all(axis=1)
    patterns, which = np.unique(tied[alive], axis=0, return_inverse=True)
    chances = np.array([_tie_chance(part, tuple(one)) for one in patterns.tolist()])
    found = np.zeros(len(won))
    found[alive] = chances[which.ravel()]
    return found


@cache
def _tie_chance(part: Part, tied: tuple[bool, ...]) -> float:
    return chance_of_order([one for one, is_tied in zip(part, tied, strict=True) if is_tied])


def _named(columns: str | tuple[str, ...]) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else columns


def _n_images(card: FamilyCard, said: Group) -> int:
    return len(_named(card.items.image)) if card.items.image else said.n_images


def _parts_of(
    card: FamilyCard, said: Group, n_texts: int, n_images: int
) -> dict[str, tuple[Part, ...]]:
    """Measure to the parts that it is the mean of, each a conjunction of comparisons.

    Raises:
        SubmitterError: `invalid_benchmark`: texts and images do not fit the rule.
    """
    problems = list(_problems(said, n_texts, n_images))
    if not problems:
        found = (
            _own_rules(said, n_images)
            if said.rules
            else _of_rule(str(said.rule), n_texts * n_images)
        )
        problems = [
            f"{name} compares more than {MOST_CELLS} texts with images"
            for name, parts in found.items()
            if any(len(set(sum(part, ()))) > MOST_CELLS for part in parts)
        ]
    if not problems:
        never = [name for name, parts in found.items() if not _chance(parts)]
        problems = [f"rule {name} contradicts itself" for name in never]
    refuse(card, problems)
    return found


def _problems(said: Group, n_texts: int, n_images: int) -> Iterator[str]:
    wanted = {
        "winoground": (n_texts == n_images == 2, "two texts and two images"),
        "vqa_pairs": (n_texts == n_images == 2, "two texts and two images"),
        "caption_choice": (n_images == 1 < n_texts, "one image and several texts"),
        "image_choice": (n_texts == 1 < n_images, "one text and several images"),
    }
    fits, needs = wanted.get(str(said.rule), (True, ""))
    if not fits:
        yield f"rule {said.rule} needs {needs}; a row has {n_texts} and {n_images}"
    for rule in said.rules:
        for text, image in _CELL.findall(" ".join(rule.all)):
            if int(text) >= n_texts or int(image) >= n_images:
                yield (
                    f"rule {rule.name} names c{text}i{image}; a row has {n_texts} texts and "
                    f"{n_images} images, counted from 0"
                )
    names = [rule.name for rule in said.rules]
    yield from (f"two rules are named {name}" for name in {n for n in names if names.count(n) > 1})


def _of_rule(rule: str, size: int) -> dict[str, tuple[Part, ...]]:
    """The parts of the measures of a rule; cells 0 to 3 are c0i0, c0i1, c1i0, c1i1."""
    if rule == "winoground":
        text: Part = ((0, 2), (3, 1))
        image: Part = ((0, 1), (3, 2))
        return {"group_score": (text + image,), "text_score": (text,), "image_score": (image,)}
    if rule == "vqa_pairs":
        right: Part = ((0, 4), (5, 1), (6, 2), (3, 7))  # Cells 4 to 7 are thresholds of 0 to 3.
        return {
            "g_acc": (right,),
            "q_acc": (right[:2], right[2:]),
            "i_acc": (right[::2], right[1::2]),
            "acc": tuple((one,) for one in right),
        }
    return {"accuracy": (tuple((0, other) for other in range(1, size)),)}


def _own_rules(said: Group, n_images: int) -> dict[str, tuple[Part, ...]]:
    """The comparisons of the rules of the card."""
    found: dict[str, tuple[Part, ...]] = {}
    for rule in said.rules:
        part = []
        for one in rule.all:
            a, b = (int(text) * n_images + int(image) for text, image in _CELL.findall(one))
            part.append((a, b) if ">" in one else (b, a))
        found[rule.name] = (tuple(part),)
    return found


def _chance(parts: tuple[Part, ...]) -> float:
    return float(np.mean([chance_of_order(part) for part in parts]))


def _own_info(rule: Mapping[str, Any]) -> MeasureInfo:
    name, said = str(rule.get("name")), rule.get("all")
    shown = ", ".join(map(str, said)) if isinstance(said, list) else ""
    return MeasureInfo.share(
        title=name.replace("_", " ").capitalize(),
        meaning=f"Share of groups in which these hold, where c1i0 is the second text with the first "
        f"image: {shown}. Equal scores are wrong.",
        source="the card's own rule",
    )


FAMILY = GroupBenchmark
