"""Family of ratings: every image has a rating or several, and a metric should follow their mean.

What people said comes in three forms (lists of ratings, a row for each rater, means that were
released) and becomes one mean for each pair of image and text. All images are one pool; or each
prompt, or each model, is one, and a measure is the unweighted mean over those in which it is defined.
Images without a score are counted: up to 2 % as most wrong (`pooled.most_wrong`), beyond that left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.by_generator import GeneratedImages
from benchmarks.families.benchmark import CardBenchmark, Ceiling, ItemAnswers
from benchmarks.families.card import Evaluation, FamilyCard
from benchmarks.families.items import Items
from benchmarks.families.measures import with_measures
from benchmarks.families.ratings import RatedPairs, rated_images, rated_pairs
from benchmarks.families.slices import Slice, slices_of
from benchmarks.pooled import (
    CORRELATIONS,
    Estimate,
    PooledImages,
    Ties,
    mean_of_pools,
    most_wrong,
)
from benchmarks.rated_images import RatedImages
from benchmarks.rows import Measured, MeasuredBuilder, Row
from benchmarks.schema import BY_GENERATOR, MeasureInfo, ScoreTable
from benchmarks.sources.folder import DataFolder
from benchmarks.statistics.pairwise_accuracy import PairForms, Pairs
from benchmarks.statistics.raters import Level, krippendorff_alpha, mean_ceilings
from benchmarks.statistics.resampling import ResamplingPlan, mean_of_defined

MEASURES: dict[str, MeasureInfo] = {
    "srcc": MeasureInfo.correlation(
        title="Spearman ρ",
        meaning="Spearman rank correlation between the metric and the mean rating",
        source="the usual figure of studies of image quality",
    ),
    "krcc": MeasureInfo.correlation(
        title="Kendall τ-b",
        meaning="Kendall's tau-b between the metric and the mean rating",
        source="Kendall 1945, with ties",
    ),
    "pearson": MeasureInfo.correlation(
        title="Pearson r",
        meaning="Plain Pearson correlation between the metric and the mean rating",
        source="beside PLCC, which fits a curve first",
    ),
    "plcc": MeasureInfo(
        title="PLCC",
        meaning="Pearson correlation between the mean rating and a four-parameter logistic curve "
        "that is fitted from scores to ratings, which may fall and then is positive for a metric "
        "that runs backwards; the interval takes the best curve of a fixed grid in each resample,",
        low=-1.0,
        high=1.0,
        source="VQEG convention of image quality assessment",
    ),
    "rmse": MeasureInfo(
        title="RMSE",
        meaning="Root of the mean squared difference, in points of the rating, between the mean "
        "rating and the logistic curve that is fitted for PLCC,",
        low=0.0,
        higher_is_better=False,
        source="VQEG convention of image quality assessment",
    ),
    "pairwise_accuracy": MeasureInfo.share(
        title="Pairwise accuracy",
        meaning="Share of pairs of images that the metric and the mean rating order alike, or that "
        "both call tied, with a threshold of ties that is best on these very images and kept in the "
        "resamples (variant no_calibration ties equal scores only, variant ignore_tie leaves out "
        "pairs that people rate alike),",
        source="Deutsch et al. 2023, tie calibration",
    ),
}
NO_FIT = ("plcc", "rmse")
"""Measures that no prompt has images enough for."""
TIE_VARIANTS: Mapping[Ties, str] = {"equal": "no_calibration", "ignore": "ignore_tie"}
"""Rule for ties to the variant of its rows; calibrated ones have that of the card."""
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")
_POOLS = {
    "all": "over all images.",
    "prompt": "within each prompt; the mean over prompts where it is defined.",
    "model": "over the images of each model; the mean over models where it is defined.",
}
_MOST_VALUES = 101
"""Of single ratings with more different values than this nothing is counted by value."""


@dataclass(frozen=True)
class RatingAnswers(ItemAnswers):
    """What people said of each pair, by facet."""

    facets: Mapping[str, RatedPairs]

    @property
    def means(self) -> dict[str, FloatArray]:
        """Facet to mean ratings, shape (pairs,), in the order of `items.pairs`; NaN: not rated."""
        return {facet: rated.means for facet, rated in self.facets.items()}

    @cached_property
    def images(self) -> pd.DataFrame:
        """The pairs: columns `pair_id`, `prompt_id`, `model`, and the mean rating of each facet."""
        return self.items.pairs[["pair_id", "prompt_id", "model"]].assign(**self.means)

    @cached_property
    def row_of_pair(self) -> IntArray:
        """Shape (pairs,), the first row that names each pair."""
        first = np.unique(self.items.cells[:, 2], return_index=True)[1]
        rows: IntArray = self.items.cells[first, 0]
        return rows

    def counts(self) -> dict[str, int]:
        """Ratings by facet, beside what is counted of the items."""
        found = super().counts()
        for facet, rated in self.facets.items():
            found |= rated.counts(facet)
        return found


@dataclass(frozen=True)
class Part:
    """Images that have rows of their own."""

    split: str | None
    skill: str | None
    inside: BoolArray  # shape (pairs,)
    whole_clusters: bool  # whether it has all images of each of its prompts, or none


class RatingBenchmark(CardBenchmark):
    """Images with ratings, all in one pool, within prompts or within models."""

    infos: ClassVar[Mapping[str, MeasureInfo]] = MEASURES
    family = "rating"
    pools: ClassVar[type[PooledImages]] = PooledImages
    """How measures of a pool are computed; a paper may do it otherwise."""

    def __init__(self, card: FamilyCard, home: Path) -> None:
        super().__init__(_with_applicable_measures(card), home)

    def answers(self, data: Path | None) -> RatingAnswers:
        """Read the tables of the card, and what people said of each pair."""
        found = super().answers(data)
        assert isinstance(found, RatingAnswers)
        return found

    def labelled(self, folder: DataFolder, items: Items) -> RatingAnswers:
        """Ratings of the pairs on every facet."""
        facets = {name: rated_pairs(folder, self.card, items, name) for name in self.card.gold}
        return RatingAnswers(
            items.pair_ids, items.clusters, items, facets, sources=folder.verified()
        )

    def measure(self, scores: ScoreTable, answers: Any, plan: ResamplingPlan) -> Measured:
        """All measures of every metric on each facet, overall, by split and by skill."""
        builder = MeasuredBuilder(plan.n_resamples)
        table = scores.oriented().loc[list(answers.pair_ids)]
        parts = self.parts(answers)
        row = self.blank_row()
        for metric in scores.metrics:
            values, unit = table[metric].to_numpy(np.float64), scores.unit(metric)
            for facet, means in answers.means.items():
                work = _Metric(self, answers, plan, values, means, unit)
                for part in parts:
                    named = replace(
                        row, metric=metric, facet=facet, split=part.split, skill=part.skill
                    )
                    for of_measure, ties in self.rows_of(named, answers):
                        work.add(builder, of_measure, ties, part)
        return builder.build()

    def by_generator(
        self, scores: ScoreTable, answers: RatingAnswers, plan: ResamplingPlan
    ) -> Measured:
        """The headline over all images of each model, whatever the pools of the card."""
        builder = MeasuredBuilder(plan.n_resamples)
        table = scores.oriented().loc[list(answers.pair_ids)]
        images = GeneratedImages(
            self.gold_of_pairs(answers),
            plan.positions(answers.items.pairs["prompt_id"]),
            answers.items.pairs["model"].tolist(),
            plan,
            self._main_part(answers).inside,
        )
        for metric in scores.metrics:
            images.add_rows(
                builder,
                replace(self.blank_row(), metric=metric),
                table[metric].to_numpy(np.float64),
                self.card.headline.measure,
                kind=self.pools,
                ties=self._main_ties,
                unit=scores.unit(metric),
                complete=self.card.evaluation.missing == "fail",
                drop=self.missing == "drop",
            )
        return builder.build()

    @property
    def compares_images(self) -> bool:
        """Whether it pools the images of a prompt."""
        return self.card.evaluation.pool == "prompt"

    def within_text(self, row: Row) -> bool:
        """Whether it pools the images of a prompt; an error needs scores on one scale."""
        return self.card.evaluation.pool == "prompt" and row.measure not in ("rmse", BY_GENERATOR)

    def rows_of(self, row: Row, answers: RatingAnswers) -> Iterator[tuple[Row, Ties]]:
        """Rows of one metric on one facet in one slice, without values, and their rule for ties."""
        del answers
        for measure in self.card.measures:
            named = replace(row, measure=measure)
            rules = self.card.evaluation.ties if measure == "pairwise_accuracy" else ()
            for ties in rules or ("calibrated",):
                yield replace(named, variant=TIE_VARIANTS.get(ties, named.variant)), ties

    def parts(self, answers: RatingAnswers) -> tuple[Part, ...]:
        """The slices of the board, as images."""
        line, row = answers.items.cells[:, 2], answers.items.cells[:, 0]
        codes = pd.factorize(answers.items.pairs["prompt_id"])[0]

        def part(one: Slice) -> Part:
            inside = np.zeros(len(answers.pair_ids), bool)
            inside[line[one.rows[row]]] = True
            sizes, n = np.bincount(codes), np.bincount(codes, inside)
            return Part(one.split, one.skill, inside, bool(((n == 0) | (n == sizes)).all()))

        return tuple(part(one) for one in slices_of(self.card, answers.items))

    # What the ratings alone say.

    @property
    def main_facet(self) -> str:
        """The facet of the headline; the first one where it names none."""
        return self.card.headline.facet or next(iter(self.card.gold))

    def gold_of_pairs(self, answers: RatingAnswers) -> FloatArray:
        """Mean ratings on the facet of the headline."""
        return answers.facets[self.main_facet].means

    def chance(self, answers: RatingAnswers) -> float:
        """Expected headline of random scores that are never equal; NaN for PLCC."""
        part, ties = self._main_part(answers), self._main_ties
        return self._of_random(answers, self.main_facet, self.card.headline.measure, ties, part)

    def ceiling(self, answers: RatingAnswers) -> Ceiling | None:
        """One rater against the mean of the others."""
        table = self._ceilings(answers, self.main_facet)
        if table.empty:
            return None
        return Ceiling(float(table["value"].iloc[0]), str(table["who"].iloc[0]))

    def labels(self, answers: RatingAnswers) -> Mapping[str, int]:
        """Single ratings on the facet of the headline by value; none where only means are known."""
        ratings = answers.facets[self.main_facet].ratings
        values, number = np.unique(ratings[np.isfinite(ratings)], return_counts=True)
        if values.size > _MOST_VALUES:
            return {}
        return {f"{value:g}": int(n) for value, n in zip(values, number, strict=True)}

    def facts(self, answers: RatingAnswers) -> Mapping[str, pd.DataFrame]:
        """What chance and people reach, and what the ratings say of models and of each other."""
        found = {"What needs no look at an image": self._guesses(answers)}
        of_facets = [self._ceilings(answers, facet).assign(facet=facet) for facet in answers.facets]
        people = pd.concat(of_facets, ignore_index=True)
        if not people.empty:
            measure = self.card.measures[self.card.headline.measure].title
            table = people[["facet", "who", "value"]].rename(columns={"value": measure})
            found["How far people agree"] = table
        single = {k: rated.ratings for k, rated in answers.facets.items() if rated.ratings.size}
        few = {k: r for k, r in single.items() if np.unique(r[np.isfinite(r)]).size <= _MOST_VALUES}
        if few:
            rows = [
                {"facet": facet} | {level: krippendorff_alpha(table, level) for level in LEVELS}
                for facet, table in few.items()
            ]
            found["Krippendorff's alpha of the ratings"] = pd.DataFrame(rows)
        means = pd.DataFrame(answers.means)
        model = answers.items.pairs["model"]
        if (model != "").any():
            by_model = means.groupby(model, sort=False).mean()
            found["Mean rating by model"] = by_model.reset_index()
        if means.shape[1] > 1:
            found["Correlation between the facets"] = _between(means)
        return found

    def cases(self, answers: RatingAnswers, data: Path | None) -> pd.DataFrame | None:
        """The images of each prompt; none where the prompts are not at hand."""
        del data
        if not self.card.items.text:
            return None
        means, high = self.gold_of_pairs(answers), self.card.gold[self.main_facet].scale[1]
        said = ["not rated" if math.isnan(mean) else f"{mean:.1f} of {high:g}" for mean in means]
        lines = np.arange(len(means))
        return answers.items.cases("prompt_id", answers.row_of_pair, lines, means, said)

    def rated_images(self, answers: RatingAnswers) -> RatedImages:
        """The images of each prompt with the ratings of the main facet."""
        return rated_images(answers.items, answers.facets[self.main_facet])

    def _main_part(self, answers: RatingAnswers) -> Part:
        split = self.card.headline.split
        parts = [part for part in self.parts(answers) if part.skill is None]
        return next((part for part in parts if part.split == split), parts[0])

    @property
    def _main_ties(self) -> Ties:
        named = {variant: ties for ties, variant in TIE_VARIANTS.items()}
        return named.get(self.card.headline.variant or "", "calibrated")

    def _pools(self, answers: RatingAnswers, part: Part) -> list[IntArray]:
        """Images of each pool of a slice."""
        pairs = answers.items.pairs
        column = {"prompt": pairs["prompt_id"], "model": pairs["model"]}
        groups = column.get(self.card.evaluation.pool, pd.Series(np.zeros(len(pairs), int)))
        codes = pd.factorize(groups)[0]
        inside = np.flatnonzero(part.inside)
        order = inside[np.argsort(codes[inside], kind="stable")]
        return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)

    def _of_random(
        self, answers: RatingAnswers, facet: str, measure: str, ties: Ties, part: Part
    ) -> float:
        """What scores reach that are independent of everything and never equal.

        Such scores order half of the pairs right that people do not tie. With t the share of pairs
        that people tie, a threshold that ties a share s of the scores' pairs makes
        s t + (1 - s) (1 - t) / 2 right: best at s = 0, or at s = 1 where t > 1/3.
        """
        means = answers.facets[facet].means
        pools = [means[images][np.isfinite(means[images])] for images in self._pools(answers, part)]
        if measure == "rmse":
            return float(np.mean([np.std(pool) for pool in pools]))
        if measure != "pairwise_accuracy":
            return 0.0 if measure in CORRELATIONS else math.nan
        if ties == "ignore":
            return 0.5
        pairs = [Pairs.of(np.zeros(pool.size), pool) for pool in pools if pool.size > 1]
        tied = np.array([one.label_tied / one.n_pairs for one in pairs])
        if not tied.size:
            return math.nan
        if self.card.evaluation.pool == "prompt":  # One threshold serves all.
            tied = tied.mean(keepdims=True)
        guessed = (1.0 - tied) / 2.0
        return float((guessed if ties == "equal" else np.maximum(guessed, tied)).mean())

    def _guesses(self, answers: RatingAnswers) -> pd.DataFrame:
        """Columns `facet`, `measure`, `variant`, `random scores`."""
        part = self._main_part(answers)
        rows = []
        for facet in answers.facets:
            row = Row("", "", "", "", math.nan, facet=facet, split=part.split)
            row = replace(row, variant=self.card.evaluation.variant)
            for one, ties in self.rows_of(row, answers):
                value = self._of_random(answers, facet, one.measure, ties, part)
                rows.append((facet, self.card.measures[one.measure].title, one.variant, value))
        return pd.DataFrame(rows, columns=["facet", "measure", "variant", "random scores"])

    def _ceilings(self, answers: RatingAnswers, facet: str) -> pd.DataFrame:
        """Columns `who` and `value`, of the headline's measure."""
        rated, measure = answers.facets[facet], self.card.headline.measure
        found: list[tuple[str, float]] = []
        if rated.ratings.shape[1] > 1:
            found.append((ONE_RATER, self._one_rater(answers, rated.ratings)))
        linear = measure in ("srcc", "pearson", "plcc") and self.card.evaluation.pool == "all"
        if rated.deviations.size and rated.n_raters > 1 and linear:
            inside = self._main_part(answers).inside
            known = inside & np.isfinite(rated.means) & np.isfinite(rated.deviations)
            one, perfect = mean_ceilings(
                rated.means[known], rated.deviations[known], rated.n_raters
            )
            found += [(f"{ONE_RATER}, {FROM_DEVIATIONS}", one)]
            found += [(f"a metric that knows the truth, {FROM_DEVIATIONS}", perfect)]
        kept = [one for one in found if not math.isnan(one[1])]
        return pd.DataFrame(kept, columns=["who", "value"])

    def _one_rater(self, answers: RatingAnswers, ratings: FloatArray) -> float:
        """Mean over the raters of the headline of each one as a metric, the others as people."""
        part, plan = self._main_part(answers), ResamplingPlan(answers.clusters, 0, 0)
        found = []
        for k in range(ratings.shape[1]):
            others = mean_of_defined(np.delete(ratings, k, axis=1), axis=1)
            both = np.where(np.isfinite(ratings[:, k]), others, np.nan)
            work = _Metric(self, answers, plan, ratings[:, k], both)
            measure = self.card.headline.measure
            found.append(work.estimate(measure, self._main_ties, part).value)
        return float(mean_of_defined(np.array(found)))


ONE_RATER = "one rater against the mean of the others"
FROM_DEVIATIONS = "as Pearson’s r, from the released standard deviations"


@dataclass(frozen=True)
class _Metric:
    """Scores of one metric beside the means of one facet, and what follows for each slice."""

    benchmark: RatingBenchmark
    answers: RatingAnswers
    plan: ResamplingPlan
    scores: FloatArray  # shape (pairs,)
    means: FloatArray  # shape (pairs,)
    unit: float = 1.0  # of the scores in units of the metric's own
    pools: dict[int, PooledImages] = field(default_factory=dict)

    def add(self, builder: MeasuredBuilder, row: Row, ties: Ties, part: Part) -> None:
        """The row of one measure in one slice."""
        pool = self.pool(part)
        withheld = self._rules.missing == "fail" and pool.n_missing > 0
        if withheld:
            found = Estimate(note=f"withheld: images without a score: {pool.n_missing}")
        else:
            found = self.estimate(row.measure, ties, part)
        row = replace(pool.counted(row), value=found.value, note=found.note)
        correlated = row.measure in CORRELATIONS and self._rules.pool == "all" and not withheld
        ids, values = None, found.of_clusters
        if values is not None:
            defined = np.flatnonzero(np.isfinite(values))
            ids, values = [self.plan.clusters[k] for k in defined], values[defined]
            row = replace(row, n_clusters=defined.size)
        sample = pool.sample if correlated else None
        builder.add(row, found.resamples, ids, values, members=pool.members, pool=sample)

    def estimate(self, measure: str, ties: Ties, part: Part) -> Estimate:
        """A measure in one slice, by the card's pools."""
        if self._rules.pool == "model":
            models = self.answers.items.pairs["model"].to_numpy(object)
            names = dict.fromkeys(models[part.inside])
            filled = self._filled(part.inside)
            pools = [self._within(part.inside & (models == name), filled) for name in names]
            return mean_of_pools(pools, measure, ties)
        if self._rules.pool == "prompt":
            return self.pool(part).within_clusters(measure, ties, self.unit)
        return self.pool(part).estimate(measure, ties, self.unit)

    def pool(self, part: Part) -> PooledImages:
        """The images of a slice; made once for all measures."""
        if id(part) not in self.pools:
            found = self._within(part.inside, self._filled(part.inside))
            # What counts as most wrong is of a slice, so another slice has other pairs.
            shared = part.whole_clusters and not found.n_counted
            wider = (lambda: self._forms) if shared else None
            self.pools[id(part)] = replace(found, wider=wider)
        return self.pools[id(part)]

    def _within(self, members: BoolArray, filled: FloatArray) -> PooledImages:
        pools = self.benchmark.pools
        return pools.of(self.scores, self.means, self._clusters, self.plan, members, filled=filled)

    def _filled(self, inside: BoolArray) -> FloatArray:
        """The scores with those that count although they are missing; see `most_wrong`."""
        if self.benchmark.missing == "drop":
            return self.scores
        groups = None
        if self._rules.pool == "prompt":
            groups = self._clusters
        elif self._rules.pool == "model":
            groups = self._models
        return most_wrong(self.scores, self.means, inside, groups)

    @property
    def _rules(self) -> Evaluation:
        return self.benchmark.card.evaluation

    @cached_property
    def _clusters(self) -> IntArray:
        return self.plan.positions(self.answers.items.pairs["prompt_id"])

    @cached_property
    def _models(self) -> IntArray:
        """Which model made each image, as a number."""
        models = self.answers.items.pairs["model"].astype(str)
        return np.unique(models, return_inverse=True)[1]

    @cached_property
    def _forms(self) -> PairForms:
        """Pairs by prompt at threshold 0, which all slices of whole prompts share."""
        whole = np.ones(self.scores.size, bool)
        return self._within(whole, self.scores).pair_forms(0.0)


def _between(means: pd.DataFrame) -> pd.DataFrame:
    """Correlations over all images of every two facets: what one makes of the other."""
    rows: list[dict[str, Any]] = []
    for one, other in combinations(means, 2):
        x, y = means[[one, other]].dropna().to_numpy(np.float64).T
        found = {name: coefficient(x, y) for name, (coefficient, _) in CORRELATIONS.items()}
        rows.append({"facets": f"{one}, {other}", **found})
    return pd.DataFrame(rows)


def _with_applicable_measures(card: FamilyCard) -> FamilyCard:
    """The card with the measures that its pools allow, said with its pool.

    Raises:
        SubmitterError: `invalid_benchmark`: it asks for what its pools or ratings do not allow.
    """
    evaluation, problems = card.evaluation, list[str]()
    lacking = dict.fromkeys(NO_FIT if evaluation.pool == "prompt" else (), "pool = all or model")
    if evaluation.missing == "wrong":
        problems.append(
            "missing = wrong says nothing of many ratings: drop or fail, or leave it out"
        )
    if evaluation.pool == "model" and not card.items.model:
        problems.append("pool = model needs items.model")
    if card.headline.facet is not None and card.headline.facet not in card.gold:
        problems.append(f"headline.facet {card.headline.facet!r} is none of {', '.join(card.gold)}")
    return with_measures(
        card, lacking=lacking, problems=problems, rule=lambda _: _POOLS[evaluation.pool]
    )


FAMILY = RatingBenchmark
