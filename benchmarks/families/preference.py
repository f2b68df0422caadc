"""Family of preferences: people compared images of one text, and a metric should side with them.

What people said comes in five forms (label, votes, weights, ranks, a fixed winner) and becomes
comparisons of two images with one of four golds: a is better, b is better, a tie (both good), or
both bad. A metric has one score for each image with its text; its margin is the score of a less that
of b. A judge that only gave verdicts is written as scores too: 1 and 0 for the better and the worse
image, 1 and 1 where both are good, 0 and 0 where both are bad, -1 and -1 where its reply could not
be read, which is as wrong as no score; a judge asked in both orders as the mean of both.

With w the weight of a comparison, an accuracy is sum(w credit) / sum(w) over all comparisons
(micro), or the mean over prompts, or over lists that were ranked, of that quotient (macro).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.by_generator import named_generators
from benchmarks.families.benchmark import CardBenchmark, Ceiling, ItemAnswers
from benchmarks.families.card import FamilyCard, Preference, Threshold
from benchmarks.families.comparisons import (
    BAD,
    GOLDS,
    TIE,
    A,
    B,
    ComparedPairs,
    RankedLists,
    ranked,
    rater_ceilings,
    rater_margins,
    two_sided,
)
from benchmarks.families.items import Items, by_hash
from benchmarks.families.measures import guesses, with_measures
from benchmarks.families.slices import slices_of
from benchmarks.rows import Measured, MeasuredBuilder, Row, notes
from benchmarks.schema import BY_GENERATOR, MeasureInfo, ScoreTable
from benchmarks.sources.folder import DataFolder
from benchmarks.statistics.detection import better_worse_auc, decided_tied_auc
from benchmarks.statistics.raters import votes_ceiling
from benchmarks.statistics.resampling import ResamplingPlan

MEASURES: dict[str, MeasureInfo] = {
    "accuracy": MeasureInfo.share(
        title="Accuracy",
        meaning="Share of comparisons in which the image that people prefer has the higher score.",
        chance=0.5,
        source="pairwise accuracy",
    ),
    "accuracy_strict": MeasureInfo.share(
        title="Accuracy, strict",
        meaning="The same over comparisons that people decided, where equal scores and none are "
        "wrong.",
        chance=0.5,
        source="pairwise accuracy, as ImageReward and Multimodal RewardBench 2 count it",
    ),
    "accuracy_half": MeasureInfo.share(
        title="Accuracy, ties half",
        meaning="The same over comparisons that people decided, where equal scores and none count "
        "half, as if a coin were thrown.",
        chance=0.5,
        source="pairwise accuracy",
    ),
    "accuracy_micro": MeasureInfo.share(
        title="Accuracy, pooled",
        meaning="Accuracy over all comparisons alike, however many a prompt has.",
        chance=0.5,
        source="pairwise accuracy",
    ),
    "accuracy_macro": MeasureInfo.share(
        title="Accuracy by prompt",
        meaning="Mean over prompts, or over lists that were ranked, of the accuracy in each.",
        chance=0.5,
        source="pairwise accuracy, as the authors of HPSv2 count it on ImageReward's data",
    ),
    "accuracy_all": MeasureInfo.share(
        title="Accuracy, close ones too",
        meaning="The same over all decided comparisons, however small the lead.",
        chance=0.5,
        source="pairwise accuracy",
    ),
    "vote_accuracy": MeasureInfo.share(
        title="Votes",
        meaning="Share of all votes that are for the image with the higher score; equal scores get "
        "half of the votes.",
        chance=0.5,
        source="pairwise accuracy weighted by votes",
    ),
    "exact_match": MeasureInfo.share(
        title="Exact match",
        meaning="Share of comparisons in which the verdict is the people's, of four: left, right, "
        "both good, both bad. Scores that are never equal cannot say the last two.",
        chance=0.25,
        source="GenAI Arena, arXiv:2406.04485",
    ),
    "auc": MeasureInfo.share(
        title="AUC of margins",
        meaning="Chance that a margin seen from the side that people prefer exceeds one seen from "
        "the other side: are clear margins right more often than close ones?",
        chance=0.5,
        source="Krasula et al., QoMEX 2016, better or worse",
    ),
    "auc_ties": MeasureInfo.share(
        title="AUC of ties",
        meaning="Chance that the two scores are further apart where people preferred an image than "
        "where they called a tie.",
        chance=0.5,
        source="Krasula et al., QoMEX 2016, different or similar",
    ),
    "inversions": MeasureInfo.share(
        title="Without inversions",
        meaning="One less the share of a list's pairs that the metric orders against people, mean "
        "over lists. Ties of people are never inverted, and equal scores are half an inversion.",
        source="HPSv2, arXiv:2306.09341; there ties of a metric fall to the order of the list",
    ),
    "regret": MeasureInfo.share(
        title="Best-of-N regret",
        meaning="How far the image with the highest score falls short of the best one of its list, "
        "as a share of the way from the best rank to the worst; the mean over equal scores.",
        higher_is_better=False,
        source="simple regret of choosing by the metric",
    ),
}
NEEDS: Mapping[str, tuple[str, Callable[[Preference], object]]] = {
    "accuracy_strict": (
        "another rule for ties",
        lambda one: (one.human_ties, one.metric_ties) != ("drop", "wrong"),
    ),
    "accuracy_micro": ("average = macro", lambda one: one.average == "macro"),
    "accuracy_macro": ("average = micro", lambda one: one.average == "micro"),
    "inversions": ("ranks", lambda one: one.ranks),
    "regret": ("ranks", lambda one: one.ranks),
    "vote_accuracy": ("votes or weights", lambda one: one.votes or one.weights),
    "accuracy_all": ("min_gap", lambda one: one.min_gap),
    "exact_match": (
        "good, and values for tie and bad",
        lambda one: one.good is not None and one.values and one.values.bad is not None,
    ),
    "auc_ties": ("ties of people", lambda one: not one.winner and _may_tie(one)),
}
"""Measure to what it needs of a card, in words and as a condition."""


def _may_tie(said: Preference) -> bool:
    return said.values is None or said.values.tie is not None or said.values.bad is not None


@dataclass(frozen=True)
class PreferenceAnswers(ItemAnswers):
    """What people preferred."""

    compared: ComparedPairs
    lists: RankedLists
    # shape (rows, raters), above 0 for a; NaN where a comparison has fewer; empty where not released
    raters: FloatArray
    # position of the prompt of each row in `clusters`
    cluster_of_row: IntArray
    n_few: int = 0  # comparisons left out for want of votes

    def counts(self) -> dict[str, int]:
        """Comparisons, and how many people decided, beside those of the items."""
        found = {"comparisons": len(self.compared.a), "decided": int(self.compared.decided.sum())}
        if self.n_few:
            found["comparisons left out for want of votes"] = self.n_few
        return super().counts() | found


@dataclass(frozen=True)
class _Part:
    """Part of the comparisons that has rows of its own."""

    split: str | None
    skill: str | None
    inside: BoolArray  # shape (n,), comparisons
    rows: BoolArray  # shape (rows,), rows of the items
    lines: IntArray  # lines of the pairs that are compared
    members: IntArray  # positions of their prompts in the plan


Level = Literal["micro", "prompt", "list"]
Tally = tuple[FloatArray, FloatArray]
"""Credit and weight of each comparison, or their sums by cluster."""


class PreferenceBenchmark(CardBenchmark):
    """Images of one text, compared by people."""

    infos = MEASURES

    def __init__(self, card: FamilyCard, home: Path) -> None:
        super().__init__(_with_applicable_measures(card), home)
        assert card.preference is not None
        self.said: Preference = card.preference

    def labelled(self, folder: DataFolder, items: Items) -> PreferenceAnswers:
        """The comparisons that the rows hold."""
        path = self.card.tables[0].paths[0]
        cluster = items.cluster_of_row
        lists = RankedLists(*(np.empty(0, np.intp),) * 2, np.empty(0))
        if self.said.ranks:
            compared, lists = ranked(folder, path, items, self.said, cluster)
        else:
            compared = two_sided(folder, path, items, self.said, cluster)
        few = compared.votes.sum(axis=1) < self.said.min_votes if self.said.votes else None
        if few is not None:
            compared = compared.chosen(~few)
        raters = rater_margins(items, self.said)
        if by_hash(self.card):  # Lines are in the order of hashes.
            compared = compared.turned(compared.a > compared.b)
        return PreferenceAnswers(
            items.pair_ids,
            items.clusters,
            items,
            compared,
            lists,
            raters,
            cluster,
            0 if few is None else int(few.sum()),
            sources=folder.verified(),
        )

    def measure(
        self, scores: ScoreTable, answers: PreferenceAnswers, plan: ResamplingPlan
    ) -> Measured:
        """All measures of every metric, overall, by split and by skill."""
        builder = MeasuredBuilder(plan.n_resamples)
        table = scores.oriented().loc[list(answers.pair_ids)]
        parts = list(self._parts(answers, plan))
        row = self.blank_row()
        for metric in scores.metrics:
            work = self._metric(scores, answers, plan, metric, table[metric].to_numpy(np.float64))
            for part in parts:
                found = replace(row, metric=metric, split=part.split, skill=part.skill)
                for measure in self.card.measures:
                    work.add(builder, replace(found, measure=measure), part, self._level(measure))
        return builder.build()

    def by_generator(
        self, scores: ScoreTable, answers: PreferenceAnswers, plan: ResamplingPlan
    ) -> Measured:
        """The headline over the comparisons with an image of each model, on either side."""
        builder = MeasuredBuilder(plan.n_resamples)
        models = answers.items.pairs["model"].to_numpy(object)
        table = scores.oriented().loc[list(answers.pair_ids)]
        whole, measure = self._main_part(answers, plan), self.card.headline.measure
        for metric in scores.metrics if any(models) else ():
            work = self._metric(scores, answers, plan, metric, table[metric].to_numpy(np.float64))
            for name in named_generators(models, np.isin(np.arange(len(models)), whole.lines)):
                part = self._of_model(whole, answers, plan, models == name)
                row = replace(self.blank_row(), metric=metric, measure=measure, facet=name)
                work.add(builder, row, part, self._level(measure), named=BY_GENERATOR)
        return builder.build()

    def _main_part(self, answers: PreferenceAnswers, plan: ResamplingPlan) -> _Part:
        """The part of the headline."""
        parts = [part for part in self._parts(answers, plan) if part.skill is None]
        split = self.card.headline.split
        return next((part for part in parts if part.split == split), parts[0])

    def _of_model(
        self, part: _Part, answers: PreferenceAnswers, plan: ResamplingPlan, of_pair: BoolArray
    ) -> _Part:
        """The comparisons of a part with one of some pairs, shape (pairs,)."""
        compared = answers.compared
        inside = part.inside & (of_pair[compared.a] | of_pair[compared.b])
        rows = np.zeros_like(part.rows)
        rows[compared.row[inside]] = True
        lines = np.unique(np.concatenate([compared.a[inside], compared.b[inside]]))
        in_plan = plan.positions(answers.clusters)
        members = np.unique(in_plan[answers.cluster_of_row[rows]])
        return _Part(None, None, inside, rows, lines, members)

    def _metric(
        self,
        scores: ScoreTable,
        answers: PreferenceAnswers,
        plan: ResamplingPlan,
        metric: str,
        values: FloatArray,
    ) -> _Metric:
        """One metric over all comparisons, by the scores of the pairs, with its threshold of ties."""
        own = values * scores.unit(metric)
        work = _Metric(self.said, self.missing, answers, plan, own)
        none = self._no_verdict(own, scores.directions.get(metric, 1))
        work.margin[none[answers.compared.a] & none[answers.compared.b]] = np.nan
        if metric in scores.margins:
            work.compare(margins_of(scores.margins[metric], answers, work.margin))
        if isinstance(self.said.threshold, Threshold):
            work.calibrate(self._calibrating(answers), self._level("accuracy"))
        return work

    def _level(self, measure: str) -> Level:
        """Whether a measure is a mean over comparisons, or over lists or prompts of their means."""
        units: Level = "list" if self.said.ranks else "prompt"
        if measure in ("accuracy_macro", "inversions", "regret"):
            return units
        pooled = measure in ("accuracy_micro", "vote_accuracy") or self.said.average == "micro"
        return "micro" if pooled else units

    def _calibrating(self, answers: PreferenceAnswers) -> BoolArray:
        """Shape (rows,): rows on which a threshold is found, which are not evaluated."""
        threshold = self.said.threshold
        name = threshold.calibrate if isinstance(threshold, Threshold) else None
        found: BoolArray = (answers.items.rows["split"] == name).to_numpy(bool)
        return found

    def _parts(self, answers: PreferenceAnswers, plan: ResamplingPlan) -> Iterator[_Part]:
        evaluated = ~self._calibrating(answers)
        in_plan = plan.positions(answers.clusters)
        compared = answers.compared
        for part in slices_of(self.card, answers.items):
            rows = part.rows & evaluated
            if part.rows.any() and not rows.any():
                continue
            inside = rows[compared.row]
            used = np.zeros(len(answers.pair_ids), bool)
            used[compared.a[inside]] = used[compared.b[inside]] = True
            members = np.unique(in_plan[answers.cluster_of_row[rows]])
            yield _Part(part.split, part.skill, inside, rows, np.flatnonzero(used), members)

    @property
    def compares_images(self) -> bool:
        """They are what it is about."""
        return True

    def within_text(self, row: Row) -> bool:
        """All are of comparisons of two images of a text; but a verdict is told by two scores."""
        return row.measure != "exact_match"

    # What the labels alone say.

    def gold_of_pairs(self, answers: PreferenceAnswers) -> FloatArray:
        """Share of its comparisons that each pair won, a tie being half."""
        said = answers.compared
        won = np.where(said.decided, 0.5 + 0.5 * (said.gold == A) - 0.5 * (said.gold == B), 0.5)
        size = len(answers.pair_ids)
        total = np.bincount(said.a, won, size) + np.bincount(said.b, 1.0 - won, size)
        number = np.bincount(said.a, minlength=size) + np.bincount(said.b, minlength=size)
        with np.errstate(invalid="ignore", divide="ignore"):
            found: FloatArray = total / number
        return found

    def chance(self, answers: PreferenceAnswers) -> float:
        """Expected headline of random scores that are never equal."""
        return self._of_random(answers, self.card.headline.measure)

    def ceiling(self, answers: PreferenceAnswers) -> Ceiling | None:
        """One voter or rater against the others."""
        table = self._ceilings(answers)
        if table.empty or not self.card.headline.measure.startswith("accuracy"):
            return None
        return Ceiling(float(table["value"].iloc[0]), str(table["who"].iloc[0]))

    def labels(self, answers: PreferenceAnswers) -> Mapping[str, int]:
        """Comparisons by gold."""
        gold = answers.compared.gold
        found = {name: int((gold == value).sum()) for name, value in GOLDS.items()}
        return {name: n for name, n in found.items() if n or name in ("a", "b")}

    def with_half_credit(self) -> Self:
        """The same benchmark with half credit where a metric gives both images one score."""
        found = copy.copy(self)
        found.said = self.said.model_copy(update={"metric_ties": "half", "threshold": 0.0})
        return found

    def facts(self, answers: PreferenceAnswers) -> Mapping[str, pd.DataFrame]:
        """What chance reaches by each measure, and people by the headline's."""
        found = guesses(
            self.card,
            {
                "random scores": lambda measure: self._of_random(answers, measure),
                "equal scores": lambda measure: self._of_constant(answers, measure),
            },
        )
        ceilings = self._ceilings(answers)
        return found if ceilings.empty else found | {"How far people agree": ceilings}

    def _of_random(self, answers: PreferenceAnswers, measure: str) -> float:
        """The mean over both signs of a margin that is never 0: each is as likely."""
        if measure in ("auc", "auc_ties"):
            return 0.5
        work = self._pseudo(answers, np.zeros(len(answers.pair_ids)))
        if measure == "regret":
            return work.value(measure, self._whole(answers), self._level(measure))
        ends = []
        for sign in (1.0, -1.0):
            work.margin = np.full(len(answers.compared.a), math.inf * sign)
            ends.append(work.value(measure, self._whole(answers), self._level(measure)))
        return sum(ends) / 2

    def _no_verdict(self, values: FloatArray, direction: int) -> BoolArray:
        """Where a column that holds nothing but the codes of verdicts says that a reply had none."""
        codes = bool(np.isin(values[~np.isnan(values)], (-1.0, 0.0, 1.0)).all())
        none: BoolArray = values == -1.0
        return none if codes and direction > 0 and self.said.good is not None else none & False

    def _of_constant(self, answers: PreferenceAnswers, measure: str) -> float:
        if measure in ("auc", "auc_ties"):
            return 0.5
        work = self._pseudo(answers, np.zeros(len(answers.pair_ids)))
        return work.value(measure, self._whole(answers), self._level(measure))

    def _pseudo(self, answers: PreferenceAnswers, values: FloatArray) -> _Metric:
        plan = ResamplingPlan(answers.clusters, 0, 0)
        work = _Metric(self.said, self.missing, answers, plan, values)
        if isinstance(self.said.threshold, Threshold):
            work.limits = np.array([min(self.said.threshold.grid)])
        return work

    def _whole(self, answers: PreferenceAnswers) -> _Part:
        return next(self._parts(answers, ResamplingPlan(answers.clusters, 0, 0)))

    def _ceilings(self, answers: PreferenceAnswers) -> pd.DataFrame:
        """Columns `who`, `value`, `comparisons`."""
        found: list[tuple[str, float, int]] = []
        if self.said.votes:
            votes = answers.compared.votes
            several = int((votes.sum(axis=1) >= 2).sum())
            found.append(
                ("one voter against the majority of the others", votes_ceiling(votes), several)
            )
        if answers.raters.shape[1] > 1:
            found += rater_ceilings(answers.raters)
        kept = [one for one in found if not math.isnan(one[1])]
        return pd.DataFrame(kept, columns=["who", "value", "comparisons"])

    def cases(self, answers: PreferenceAnswers, data: Path | None) -> pd.DataFrame | None:
        """The images of each comparison or list; none where the prompts are not at hand."""
        del data
        if not self.card.items.text:
            return None
        cells = answers.items.cells
        found = answers.items.cases("row_id", cells[:, 0], cells[:, 2], *self._said_of(answers))
        if by_hash(self.card):
            order = np.lexsort((cells[:, 2], cells[:, 0]))
            found = found.iloc[order].reset_index(drop=True)
        kept: pd.DataFrame = found[np.isfinite(found["expected"])].reset_index(drop=True)
        return kept

    def _said_of(self, answers: PreferenceAnswers) -> tuple[FloatArray, list[str]]:
        """What people expect of every cell, and the same in words."""
        cells, compared = answers.items.cells, answers.compared
        if self.said.ranks:
            ranks = np.concatenate(answers.items.rows[self.said.ranks].tolist())
            sign = -1.0 if self.said.best == "lowest" else 1.0
            return sign * ranks, [f"rank {rank:g}" for rank in ranks]
        expected = np.full(len(cells), np.nan)
        said = np.full(len(cells), "", object)
        cell = {(row, line): k for k, (row, _, line) in enumerate(cells.tolist())}
        words = {A: ("preferred", "not preferred"), TIE: ("tie",) * 2, BAD: ("both bad",) * 2}
        words[B] = words[A][::-1]
        for k, (row, a, b, gold) in enumerate(
            zip(compared.row, compared.a, compared.b, compared.gold, strict=True)
        ):
            for side, line in enumerate((a, b)):
                at = cell[int(row), int(line)]
                votes, total = compared.votes[k, side], compared.votes[k].sum()
                of = f"{votes:g} of {total:g} votes" if self.said.votes else words[int(gold)][side]
                said[at] = of
                expected[at] = {A: 1.0 - side, B: float(side)}.get(int(gold), 0.5)
        return expected, said.tolist()


def margins_of(
    table: pd.DataFrame, answers: PreferenceAnswers, otherwise: FloatArray
) -> FloatArray:
    """Margins of a metric that compares, shape (n,): means of both orders; NaN where one is missing.

    `table`: see `ScoreTable.margins`; `otherwise`: shape (n,), of comparisons it was not asked: of
    these the sign counts, and they are as close as the closest that it was asked.
    """
    ids = pd.Index(answers.pair_ids)
    first, second = (ids.get_indexer(pd.Index(table[name])) for name in ("pair_id", "other_id"))
    turned = np.where(first < second, 1.0, -1.0)
    key = np.minimum(first, second) * len(ids) + np.maximum(first, second)
    # What one order says alone may be said of the place.
    of_key = (table["margin"] * turned).groupby(key).sum(min_count=2) / 2
    a, b = answers.compared.a, answers.compared.b
    wanted = np.minimum(a, b) * len(ids) + np.maximum(a, b)
    found = of_key.reindex(wanted).to_numpy(np.float64) * np.where(a < b, 1.0, -1.0)
    sizes = np.abs(found[np.abs(found) > 0])
    indirect = np.sign(otherwise) * (sizes.min() if sizes.size else 1.0)
    return np.where(np.isin(wanted, of_key.index), found, indirect)


class _Metric:
    """What one metric says of all comparisons, and its measures."""

    def __init__(
        self,
        said: Preference,
        missing: str,
        answers: PreferenceAnswers,
        plan: ResamplingPlan,
        values: FloatArray,
    ) -> None:
        self._said, self._mode, self._answers, self._plan = said, missing, answers, plan
        self._values = values
        self._unscored = np.isnan(values)
        compared = answers.compared
        self.margin = values[compared.a] - values[compared.b]
        self._cluster = plan.positions(answers.clusters)[answers.cluster_of_row]
        fixed = said.threshold if isinstance(said.threshold, float | int) else 0.0
        self.limits = np.array([float(fixed)])
        """Thresholds of ties that are tried; one as a rule."""
        self._best, self._drawn_best = 0, np.zeros(plan.n_resamples, np.intp)

    def compare(self, margins: FloatArray) -> None:
        """Take these margins, shape (n,), in place of differences of scores."""
        self.margin = margins
        none = np.isnan(margins)
        compared = self._answers.compared
        self._unscored[compared.a[none]] = self._unscored[compared.b[none]] = True

    def calibrate(self, rows: BoolArray, level: Level) -> None:
        """Find the threshold that is best on some rows (the first one), in the sample and each resample."""
        assert isinstance(self._said.threshold, Threshold)
        self.limits = np.array(self._said.threshold.grid)
        inside = rows[self._answers.compared.row]
        sums = [self._summed(*self._accuracy(limit), inside, level) for limit in self.limits]
        right, number = (np.column_stack(one) for one in zip(*sums, strict=True))
        self._best = int(np.argmax(right.sum(axis=0) / max(number[:, 0].sum(), 1.0)))
        self._drawn_best = np.argmax(self._plan.counts @ right, axis=1)

    def add(
        self, builder: MeasuredBuilder, row: Row, part: _Part, level: Level, named: str = ""
    ) -> None:
        """The row of one measure in one slice; `named`: its measure where it goes by another name."""
        if row.measure in ("auc", "auc_ties"):
            found, drawn, used = self._area(row.measure, part)
        else:
            found, drawn, used = self._ratio(row.measure, part, level)
        n_missing = int(self._unscored[part.lines].sum())
        if np.isnan(self.margin[part.inside]).all():
            n_missing = part.lines.size  # who decides nothing has given nothing, and has no rank
        row = replace(
            row,
            measure=named or row.measure,
            value=found,
            n_items=len(used),
            n_clusters=np.unique(used).size,
            n_missing=n_missing,
            note=self._note(row.measure, part, found, n_missing),
        )
        undefined = math.isnan(found)
        builder.add(row, None if undefined else drawn, members=part.members)

    def value(self, measure: str, part: _Part, level: Level) -> float:
        """The value in the sample of a measure that is a quotient of sums."""
        return self._ratio(measure, part, level)[0]

    def _note(self, measure: str, part: _Part, value: float, n_missing: int) -> str:
        unscored = int(np.isnan(self.margin[part.inside]).sum())
        none = "score" if self._said.good is None else "verdict"
        mode = self._mode_of(measure)
        if unscored and mode == "fail":
            return f"withheld: comparisons without a {none}: {unscored}"
        why = "" if not math.isnan(value) else "no comparison counts here"
        if measure == "regret":
            said = f"images without a score, never chosen: {n_missing}" if n_missing else ""
        else:
            said = f"comparisons without a {none}, {_MODES[mode]}: {unscored}" if unscored else ""
        searched = len(self.limits) > 1 and measure in _BY_RULE
        limit = f"scores no further apart than {self.limits[self._best]:g} are ties"
        return notes(why, said, limit if searched else "")

    def _ratio(self, measure: str, part: _Part, level: Level) -> tuple[float, FloatArray, IntArray]:
        """Value, resamples and the cluster of each item of a quotient of sums over clusters."""
        if self._mode == "fail" and self._unscored[part.lines].any():
            return math.nan, np.empty(0), np.empty(0, np.intp)
        if measure == "regret":
            credit, weight = self._regret(part.rows)
            sums = _sums(self._cluster, credit * weight, weight, len(self._plan.clusters))
            tallies, used = [sums], self._cluster[weight > 0]
        else:
            limits = self.limits if measure in _BY_RULE else self.limits[:1]
            made = [self._credit(measure, limit) for limit in limits]
            tallies = [self._summed(*one, part.inside, level) for one in made]
            rows = self._answers.compared.row[part.inside & (made[0][1] > 0)]
            used = self._cluster[np.unique(rows) if measure == "inversions" else rows]
        best = self._best if len(tallies) > 1 else 0
        total, weight = tallies[best]
        if not weight.any():
            return math.nan, np.empty(0), used
        value = float(total.sum() / weight.sum())
        totals = np.column_stack([one for one, _ in tallies])
        drawn = self._plan.counts @ np.column_stack([totals, weight])
        chosen = np.arange(len(drawn)), self._drawn_best if len(tallies) > 1 else 0
        with np.errstate(invalid="ignore", divide="ignore"):
            return value, drawn[:, :-1][chosen] / drawn[:, -1], used

    def _credit(self, measure: str, limit: float) -> Tally:
        """Credit and weight of each comparison, shape (n,) each."""
        compared, margin = self._answers.compared, self.margin
        decided = compared.decided
        wide = compared.gap >= self._said.min_gap
        side = np.sign(margin)
        if measure in _BY_RULE:
            credit, weight = self._accuracy(limit)
            if measure == "accuracy_all":
                return credit, np.where(decided, weight, 0.0)
            return credit, np.where(wide | ~decided, weight, 0.0)
        if measure in ("accuracy_strict", "accuracy_half"):
            ties = 0.5 if measure == "accuracy_half" else 0.0
            credit = np.where(side == compared.gold, 1.0, np.where(side == 0, ties, 0.0))
            return self._with_missing(credit, (decided & wide).astype(np.float64), measure)
        if measure == "inversions":
            right = np.where(side == compared.gold, 1.0, np.where(side == 0, 0.5, 0.0))
            credit, weight = self._with_missing(right, np.ones(len(margin)))
            return np.where(decided, credit, 1.0), np.where(decided, weight, 1.0)
        if measure == "vote_accuracy":
            total = compared.votes.sum(axis=1)
            share = np.divide(compared.votes[:, 0], total, where=total > 0, out=0.5 + 0.0 * total)
            credit = np.where(side > 0, share, np.where(side < 0, 1.0 - share, 0.5))
            return self._with_missing(credit, total)
        # Exact match of four labels.
        good = self._values[compared.a] >= (self._said.good or 0.0)
        verdict = np.where(side == 0, np.where(good, TIE, BAD), side)
        right = (verdict == compared.gold).astype(np.float64)
        return self._with_missing(right, np.ones(len(margin)), measure)

    def _accuracy(self, limit: float) -> Tally:
        """Credit by the card's rules for ties of people and of the metric."""
        said, compared, margin = self._said, self._answers.compared, self.margin
        size = np.abs(margin)
        softmax = isinstance(said.threshold, Threshold) and said.threshold.on == "softmax"
        # |p0 - p1| of the softmax of two scores is the tanh of half their distance.
        tied = (np.tanh(size / 2.0) if softmax else size) <= limit
        side = np.where(tied, 0.0, np.sign(margin))
        half = said.metric_ties == "half" or (
            said.metric_ties == "threshold" and said.human_ties == "half"
        )
        right = np.where(side == compared.gold, 1.0, np.where(tied, 0.5 if half else 0.0, 0.0))
        of_tie = np.where(tied, 1.0, 0.5 if said.human_ties == "half" else 0.0)
        credit = np.where(compared.decided, right, of_tie)
        weight = np.ones(len(margin)) if said.weight == "none" else compared.gap.copy()
        if said.human_ties == "drop":
            weight[~compared.decided] = 0.0
        return self._with_missing(credit, weight)

    def _mode_of(self, measure: str) -> str:
        """What becomes of comparisons without a score: the card's rule, or the measure's own."""
        return _MISSING.get(measure, self._mode)

    def _with_missing(self, credit: FloatArray, weight: FloatArray, measure: str = "") -> Tally:
        none, mode = np.isnan(self.margin), self._mode_of(measure)
        credit = np.where(none, 0.5 if mode == "half" else 0.0, credit)
        return credit, np.where(none & (mode == "drop"), 0.0, weight)

    def _summed(
        self, credit: FloatArray, weight: FloatArray, inside: BoolArray, level: Level
    ) -> Tally:
        """Sums of credit and weight by cluster, shape (C,), of comparisons or of the means of units."""
        row = self._answers.compared.row[inside]
        credit, weight = (weight * credit)[inside], weight[inside]
        n_clusters = len(self._plan.clusters)
        if level == "list":
            n_rows = len(self._answers.cluster_of_row)
            means, there = _quotients(*_sums(row, credit, weight, n_rows))
            return _sums(self._cluster, means, there, n_clusters)
        sums = _sums(self._cluster[row], credit, weight, n_clusters)
        return _quotients(*sums) if level == "prompt" else sums

    def _regret(self, rows: BoolArray) -> Tally:
        """Regret of each row, and 1 where it has one, shape (rows,) each."""
        lists = self._answers.lists
        n_rows = len(self._answers.cluster_of_row)
        score = np.nan_to_num(self._values[lists.line], nan=-np.inf)
        best = np.full(n_rows, -np.inf)
        np.maximum.at(best, lists.row, score)
        chosen = (score == best[lists.row]) & np.isfinite(score)
        number = np.bincount(lists.row, chosen, n_rows)
        defined = np.zeros(n_rows, bool)
        defined[lists.row[np.isfinite(lists.regret)]] = True
        lost = np.bincount(lists.row, np.where(chosen, np.nan_to_num(lists.regret), 0.0), n_rows)
        # Where no image has a score nothing is chosen, which is as bad as the worst.
        regret = np.where(number > 0, lost / np.maximum(number, 1), 1.0)
        return regret, (defined & rows).astype(np.float64)

    def _area(self, measure: str, part: _Part) -> tuple[float, FloatArray, IntArray]:
        compared = self._answers.compared
        none = np.isnan(self.margin)
        used = part.inside & (compared.gap >= self._said.min_gap if measure == "auc" else True)
        used = used & (compared.decided if measure == "auc" else True)
        if self._mode == "fail" and none[part.inside].any():
            return math.nan, np.empty(0), np.empty(0, np.intp)
        if self._mode == "drop":
            used = used & ~none
        # A margin that is missing is as wrong as can be, and says nothing of ties.
        worst = -np.inf if measure == "auc" else 0.0
        margin = np.where(none, worst, self.margin * np.where(compared.decided, compared.gold, 1))
        clusters = self._cluster[compared.row[used]]
        once = np.ones((1, len(self._plan.clusters)))
        if measure == "auc":
            given: tuple[Any, ...] = margin[used], clusters
            area: Callable[..., FloatArray] = better_worse_auc
        else:
            given, area = (margin[used], compared.decided[used], clusters), decided_tied_auc
        value = float(area(*given, once)[0])
        drawn = np.empty(0) if math.isnan(value) else area(*given, self._plan.counts)
        return value, drawn, clusters


_BY_RULE = frozenset({"accuracy", "accuracy_micro", "accuracy_macro", "accuracy_all"})
"""Accuracies by the card's rules for ties."""
_MISSING = {"accuracy_strict": "wrong", "exact_match": "wrong", "accuracy_half": "half"}
"""Measure to its own rule for comparisons without a score."""
_MODES = {"wrong": "counted as wrong", "half": "counted half", "drop": "left out"}


def _quotients(total: FloatArray, weight: FloatArray) -> Tally:
    """Means of units, and 1 where there is one."""
    there = weight > 0
    return np.divide(total, weight, where=there, out=np.zeros(len(total))), there.astype(float)


def _sums(place: IntArray, credit: FloatArray, weight: FloatArray, n: int) -> Tally:
    """Sums by place, shape (n,); `credit` is weighted already."""
    found = np.zeros((2, n))
    found[0], found[1] = np.bincount(place, credit, n), np.bincount(place, weight, n)
    return found[0], found[1]


def _with_applicable_measures(card: FamilyCard) -> FamilyCard:
    """The card with the measures that its form of labels allows, said with its rules.

    Raises:
        SubmitterError: `invalid_benchmark`: it chooses a measure that needs something else.
    """
    said = card.preference
    assert said is not None
    lacking = {name: needs for name, (needs, has) in NEEDS.items() if not has(said)}
    problems = []
    if isinstance(said.threshold, Threshold) and not card.items.split:
        problems.append("a threshold that is calibrated on a split needs items.split")
    rules = " ".join((_HUMAN_TIES[said.human_ties], _METRIC_TIES[said.metric_ties]))
    return with_measures(
        card,
        lacking=lacking,
        problems=problems,
        rule=lambda name: rules if name in _BY_RULE else "",
    )


_HUMAN_TIES = {
    "drop": "Comparisons that people tied are left out;",
    "half": "A tie of people is worth 1 to a tie of the metric and a half to any order;",
    "class": "A tie of people is right where the metric ties too;",
}
_METRIC_TIES = {
    "wrong": "equal scores are wrong where people decided.",
    "half": "equal scores count half where people decided.",
    "threshold": "scores that differ by no more than a threshold are a tie.",
}


FAMILY = PreferenceBenchmark
