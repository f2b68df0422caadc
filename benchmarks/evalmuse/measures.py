"""Measures of EvalMuse: correlation with overall ratings, accuracy of element scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal

import numpy as np
import pandas as pd

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.evalmuse.load import SKILLS, UNREPORTED_SKILL, EvalMuseAnswers
from benchmarks.pooled import ManyPools, PooledImages
from benchmarks.rows import PooledSample, Row, notes
from benchmarks.schema import MeasureInfo
from benchmarks.statistics import logistic, thresholds
from benchmarks.statistics.correlation import spearman
from benchmarks.statistics.logistic import BestCurves
from benchmarks.statistics.resampling import ResamplingPlan
from benchmarks.statistics.samples import sum_by_cluster

MEASURES: dict[str, MeasureInfo] = {
    "srcc": MeasureInfo.correlation(
        title="SRCC",
        meaning="Spearman rank correlation between the metric and the mean human rating over all "
        "images. For a skill (a summary of ours): over the images whose prompt has an element of "
        "that skill.",
        source="EvalMuse-40K, overall alignment evaluation",
    ),
    "krcc": MeasureInfo.correlation(
        title="KRCC",
        meaning="Kendall's tau-b between the metric and the mean human rating over all images.",
        source="EvalMuse-40K, overall alignment evaluation",
    ),
    "plcc": MeasureInfo(
        title="PLCC",
        meaning="Pearson correlation between the mean human rating and the metric after a "
        "four-parameter logistic is fitted from scores to ratings. The curve may fall, so a "
        "metric that runs backwards also gets a positive value. Variant ntire_code fits from "
        "ratings to scores, as the released NTIRE 2025 script does by exchanging its arguments; "
        "variant ntire_page fits from scores to ratings, starting at b4 = 0.5. The interval takes "
        "the best curve of a fixed grid in each resample instead of a new fit.",
        low=-1.0,
        high=1.0,
        source="EvalMuse-40K, overall alignment evaluation; curve of the VQEG convention",
    ),
    "rmse": MeasureInfo(
        title="RMSE",
        meaning="Root of the mean squared difference, in points of the rating from 1 to 5, "
        "between the mean human rating and the logistic curve that is fitted for PLCC. A constant "
        "guess of the mean rating reaches the standard deviation of the ratings. The interval "
        "takes the best curve of a fixed grid in each resample.",
        low=0.0,
        higher_is_better=False,
        source="EvalMuse-40K, overall alignment evaluation",
    ),
    "pearson": MeasureInfo.correlation(
        title="Pearson r",
        meaning="Plain Pearson correlation between the metric and the mean human rating.",
        source="beside PLCC, which fits a curve first",
    ),
    "element_accuracy": MeasureInfo.share(
        title="Element accuracy",
        meaning="Share of (image, element) pairs for which the element score, cut at a "
        "threshold, says the same as at least half of the annotators. Variant paper takes the "
        "threshold that is best over all elements (steps of 0.01, chosen on these data and anew "
        "in each resample); held_out chooses it for each fifth of the prompts on the other four "
        "fifths, so that no element is judged by a threshold it helped to choose; ntire takes "
        "0.5. A missing element score predicts absence.",
        source="EvalMuse-40K, fine-grained evaluation, Table 6; NTIRE 2025 track 1",
    ),
    "ntire_track1": MeasureInfo(
        title="NTIRE track 1",
        meaning="The final score of track 1 of the NTIRE 2025 challenge: a quarter SRCC, a quarter "
        "PLCC and half the element accuracy at threshold 0.5. Variant code takes the PLCC of the "
        "released script (ntire_code), variant paper that of the paper.",
        low=-0.5,
        high=1.0,
        source="NTIRE 2025 challenge on text-to-image quality assessment, track 1",
    ),
}


# Answers as arrays, shared by all metrics.


Slice = tuple[str, BoolArray]
"""Name of a split or skill, and its members."""

PRESENT = 0.5
"""Mean label from which on people say that an element is there."""


@dataclass(frozen=True)
class Drawn:
    """Resamples of one estimate."""

    values: FloatArray | None = None  # shape (B,), or None where the estimate has no interval
    note: str = ""  # what a reader must know about them; empty as a rule


@dataclass(frozen=True)
class Estimate:
    """Row with its resamples, computed once asked for."""

    row: Row  # without an interval
    draw: Callable[[], Drawn] | None = None  # computes the resamples; None where there are none
    members: IntArray | None = None  # positions in the plan of the prompts of the slice; None: all
    # makes the sample behind a correlation of one pool; None for other rows
    pool: Callable[[], PooledSample] | None = None

    @cached_property
    def drawn(self) -> Drawn:
        """The resamples; computed at most once."""
        return self.draw() if self.draw is not None else Drawn()


@dataclass(frozen=True)
class ImageTable:
    """All images, N of them, in the benchmark's order."""

    labels: FloatArray  # shape (N,), mean overall ratings
    clusters: IntArray  # shape (N,), position of the prompt in the plan
    splits: tuple[Slice, ...]  # `all`, then each split that has members
    skills: tuple[Slice, ...]  # each reported skill, with the images that have an element of it


@dataclass(frozen=True)
class ElementTable:
    """All labelled (image, element) pairs, E of them."""

    keys: pd.DataFrame  # columns `pair_id`, `element_id`
    positive: BoolArray  # shape (E,), whether at least half of the annotators see the element
    clusters: IntArray  # shape (E,), position of the prompt in the plan
    splits: tuple[Slice, ...]  # as of the images
    skills: tuple[Slice, ...]  # each type, `other` too


def tables_of(answers: EvalMuseAnswers, plan: ResamplingPlan) -> tuple[ImageTable, ElementTable]:
    """Both tables."""
    images, elements = answers.images, answers.elements
    image_of = pd.Index(images["pair_id"]).get_indexer(pd.Index(elements["pair_id"]))
    if (image_of < 0).any():
        raise KeyError(f"no image {elements['pair_id'][image_of < 0].iloc[0]!r} has a rating")
    codes, prompts = pd.factorize(images["prompt_id"])
    clusters = plan.positions(prompts)[codes]
    splits = (("all", np.ones(len(images), bool)), *_groups(images["split"], without=""))
    skills = tuple(_groups(elements["skill"], without=""))
    return (
        ImageTable(
            images["label"].to_numpy(np.float64),
            clusters,
            splits,
            tuple(
                (skill, _reached(image_of[members], len(images)))
                for skill, members in skills
                if skill != UNREPORTED_SKILL
            ),
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
    """Number of different clusters."""
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


# Correlation of overall scores with mean ratings, all images of a slice in one pool.


PAGE_START_WIDTH = 0.5
"""Start of b4 in the fit of the competition page, in units of the score."""


class ScoredImages(PooledImages):
    """The images of one slice, and the curves that all fits to them share."""

    def plain(self, row: Row) -> Estimate:
        """SRCC, KRCC or Pearson, whichever the row names."""
        row = self.counted(row)
        if self.undefined:
            return replace(undefined(row, self.undefined, self.remark), pool=self.sample)
        row = replace(row, value=self.value(row.measure), note=self.remark)
        return Estimate(row, lambda: Drawn(self.resamples(row.measure)), self.members, self.sample)

    def after_fit(self, row: Row, fitted: logistic.Plcc, curves: BestCurves) -> Estimate:
        """PLCC or RMSE, whichever the row names, of one fit."""
        row = self.counted(row)
        if self.undefined or math.isnan(fitted.value):
            return undefined(row, self.undefined or fitted.note, self.remark)
        value = fitted.value if row.measure == "plcc" else fitted.rmse
        row = replace(row, value=value, note=notes(fitted.note, self.remark))
        return Estimate(row, lambda: _drawn(row.measure, fitted, curves), self.members)

    @cached_property
    def to_scores(self) -> BestCurves:
        """Curves from ratings to scores, as the released NTIRE script fits them."""
        return BestCurves(self.ratings, self.scores, self.plan.counts, self.clusters)


def _drawn(measure: str, fitted: logistic.Plcc, curves: BestCurves) -> Drawn:
    doubt = curves.doubt(fitted)
    if doubt:
        return Drawn(note=doubt)
    return Drawn(curves.plcc if measure == "plcc" else curves.rmse)


def overall_estimates(
    row: Row, metric: int, pools: ManyPools, images: ImageTable
) -> Iterator[Estimate]:
    """Every measure of overall scores."""
    for split, members in images.splits:
        part = pools.pool(metric, members, ScoredImages)
        in_split = replace(row, split=split, variant="paper")
        for name in ("srcc", "krcc"):
            yield part.plain(replace(in_split, measure=name))
        yield part.after_fit(replace(in_split, measure="plcc"), part.fit, part.to_ratings)
        yield from _challenge_plcc(in_split, part)
        yield part.after_fit(replace(in_split, measure="rmse"), part.fit, part.to_ratings)
        yield part.plain(replace(in_split, measure="pearson"))
    for skill, members in images.skills:
        part = pools.pool(metric, members, ScoredImages)
        yield part.plain(replace(row, measure="srcc", split="all", skill=skill, variant="assay"))


def _challenge_plcc(row: Row, part: ScoredImages) -> Iterator[Estimate]:
    """PLCC as the NTIRE 2025 script computes it, and as its page describes it."""
    row = replace(row, measure="plcc")
    swapped = logistic.plcc(part.ratings, part.scores)
    yield part.after_fit(replace(row, variant="ntire_code"), swapped, part.to_scores)
    page = logistic.plcc(part.scores, part.ratings, start_width=PAGE_START_WIDTH)
    yield part.after_fit(replace(row, variant="ntire_page"), page, part.to_ratings)


# Accuracy of element scores under three rules for the threshold.


NTIRE_THRESHOLD = 0.5
"""At which the NTIRE 2025 script cuts scores, as it cuts labels."""
FOLDS = 5
"""Parts of the prompts; each is judged by a threshold chosen on the others."""


@dataclass(frozen=True)
class ScoredElements:
    """Element scores of one metric beside the labels."""

    scores: FloatArray  # shape (E,), NaN where the metric gives none
    table: ElementTable  # the labels
    n_unlabelled: int  # scores of elements that have no label
    plan: ResamplingPlan  # resamples the prompts
    sign: Literal[1, -1] = 1  # -1 where the scores were negated, because lower is better

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
    """The search for thresholds in steps of 0.01, in the sample and in every resample."""

    elements: ScoredElements  # what is searched
    grid: FloatArray  # shape (K,), ascending thresholds

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
    """Accuracy over all elements, by split and by type, in every variant."""
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
    note = f"threshold {shown:.2f}"
    yield from _by_part(row, search.elements, right, note, search.drawn_in_sample)


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
    yield from _by_part(row, elements, right, note, search.drawn_held_out)


def _fixed(row: Row, elements: ScoredElements) -> Iterator[Estimate]:
    """Threshold 0.5, without any search."""
    right = elements.right_at(elements.sign * NTIRE_THRESHOLD)

    def drawn(members: BoolArray) -> Drawn:
        by_cluster = elements.by_cluster(right.astype(np.float64), members)
        return Drawn(elements.share(elements.plan.counts @ by_cluster, members))

    yield from _by_part(row, elements, right, "", drawn)


def _by_part(
    row: Row,
    elements: ScoredElements,
    right: BoolArray,
    note: str,
    draw: Callable[[BoolArray], Drawn],
) -> Iterator[Estimate]:
    """The row of each split that has elements, then of each type within each split."""
    table = elements.table
    parts = [
        (replace(row, split=split, skill=skill), in_split & of_skill)
        for skill, of_skill in ((None, np.ones(right.size, bool)), *table.skills)
        for split, in_split in table.splits
    ]
    for part, members in parts:
        if not members.any():
            continue
        found = elements.row(part, right, members, note)
        yield Estimate(found, partial(draw, members), elements.prompts_of(members))


# Facts of the human labels alone.


def facts(answers: EvalMuseAnswers) -> dict[str, pd.DataFrame]:
    """Both figures below as tables by title; see `Benchmark.facts`."""
    return {
        "SRCC of the mean element label with the overall rating (Element-GT)": _table(
            human_ceiling(answers), "split", "srcc"
        ),
        "Mean element label by skill (Align-Score)": _table(
            align_scores(answers), "skill", "mean label"
        ),
    }


def human_ceiling(answers: EvalMuseAnswers) -> dict[str, float]:
    """SRCC between the mean element label of an image and its overall rating.

    The paper's row Element-GT: what a metric would reach that knows every element as people do
    and averages them.

    `all`, then each split, to a value in -1..1 over the images that have elements; NaN where one
    side is constant.
    """
    means = answers.elements.groupby("pair_id")["label"].mean()
    images = answers.images[answers.images["pair_id"].isin(means.index)]
    explained = means.loc[images["pair_id"]].to_numpy(np.float64)
    rated = images["label"].to_numpy(np.float64)
    splits = images["split"].to_numpy(object)
    found = {"all": spearman(explained, rated)}
    for split in sorted(set(splits) - {""}):
        members = splits == split
        found[str(split)] = spearman(explained[members], rated[members])
    return found


def align_scores(answers: EvalMuseAnswers) -> dict[str, float]:
    """Mean element label of each skill (the paper's row Align-Score), in the order of its table."""
    means: pd.Series = answers.elements.groupby("skill")["label"].mean()
    return {skill: float(means[skill]) for skill in SKILLS if skill in means.index}


def _table(found: dict[str, float], key: str, value: str) -> pd.DataFrame:
    return pd.DataFrame({key: list(found), value: list(found.values())})


def skills_of_prompts(answers: EvalMuseAnswers) -> dict[str, list[str]]:
    """Reported skills of the elements of each prompt, in alphabetical order."""
    elements = answers.elements[answers.elements["skill"] != UNREPORTED_SKILL]
    of_image = answers.images.set_index("pair_id")["prompt_id"]
    prompts = of_image.reindex(elements["pair_id"]).to_numpy()
    return {
        str(prompt): sorted(set(skills)) for prompt, skills in elements["skill"].groupby(prompts)
    }
