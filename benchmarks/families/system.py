"""Family of systems: does a metric order text-to-image models as people do, and the newer ones too?

The value of a model is the mean of its images, by prompt and then over prompts. People's values come
from another benchmark, whose ratings are averaged alike, or from a table. Resamples draw prompts, and
models for the slope over their dates; where a table of values meets one cluster for each model, as where a
metric has one score for each, they draw models for every measure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.families.benchmark import CardBenchmark, ItemAnswers
from benchmarks.families.card import FamilyCard, System
from benchmarks.families.items import Items, items_of
from benchmarks.families.measures import with_measures
from benchmarks.families.rating import RatingAnswers
from benchmarks.families.tables import read_table, read_tables
from benchmarks.generators import DAYS_PER_YEAR
from benchmarks.rows import Measured, MeasuredBuilder, notes
from benchmarks.schema import Answers, Benchmark, MeasureInfo, Questions, ScoreTable
from benchmarks.sources.folder import DataFolder
from benchmarks.statistics import systems
from benchmarks.statistics.detection import ratio
from benchmarks.statistics.intervals import around
from benchmarks.statistics.resampling import ResamplingPlan, resampled_mean

LEAST_DATED = 6
"""Fewer models with a date than this make no slope."""
LEAST_MODELS = 3
"""Fewer models than this make no order worth a figure."""
DRAWS_MODELS = "the interval is of models, which its resamples draw"
"""Said of a row whose resamples do not draw prompts."""
NO_LARGER = "no interval: no resample of models has a larger one"
OF_SO_MANY = (
    "The interval is of what studies with as many prompts find on average: with more prompts chance "
    "lets fewer models change places, and the agreement is higher."
)
"""Said of every agreement of two orders of models."""
OF_SO_MANY_ERRORS = (
    "The interval is of what studies with as many prompts find on average: with fewer prompts chance "
    "adds to the distances."
)
"""Said of errors of rates."""
MEASURES: dict[str, MeasureInfo] = {
    "spa": MeasureInfo.share(
        title="Soft pairwise accuracy",
        meaning="How far the metric is as sure as people are of which of two models is better: one "
        "less the mean distance of both p-values over all pairs of models. P-values are of sign flips "
        f"by prompt; in resamples they are taken from the normal distribution. {OF_SO_MANY}",
        bias_corrected=False,
        source="Thompson et al., WMT 2024, in double precision",
    ),
    "pa": MeasureInfo.share(
        title="Pairwise accuracy",
        meaning="Share of pairs of models that the metric orders as people do; a tie of one side "
        f"counts half. {OF_SO_MANY}",
        chance=0.5,
        in_steps=True,
        source="Kocmi et al., WMT 2021",
    ),
    "srcc": MeasureInfo.correlation(
        title="Spearman ρ",
        meaning=f"Spearman rank correlation over models. {OF_SO_MANY}",
        in_steps=True,
        source="the usual figure over systems",
    ),
    "krcc": MeasureInfo.correlation(
        title="Kendall τ-b",
        meaning=f"Kendall's tau-b over models. {OF_SO_MANY}",
        in_steps=True,
        source="the usual figure over systems",
    ),
    "mae": MeasureInfo(
        title="Mean error",
        meaning="Mean over models of the distance, in points of 100, between the metric's rate and "
        f"people's. Only scores from 0 to 1 make a rate. {OF_SO_MANY_ERRORS}",
        low=0.0,
        high=100.0,
        higher_is_better=False,
        bias_corrected=False,
        source="mean absolute error over systems",
    ),
    "largest_error": MeasureInfo(
        title="Largest error",
        meaning="Distance, in points of 100, between the metric's rate and people's for the model "
        f"where it is largest. {OF_SO_MANY_ERRORS}",
        low=0.0,
        high=100.0,
        higher_is_better=False,
        bias_corrected=False,
        source="GenEval 2 says it of GenEval",
    ),
    "drift": MeasureInfo(
        title="Drift",
        meaning="By how many points a year the distance between the metric's rate and people's grows "
        "with the release date of a model: the slope of a least-squares line. The interval is of models: "
        "its resamples draw them, since other models would give another slope.",
        higher_is_better=False,
        chance=None,
        source="GenEval 2: a fixed judge falls behind newer models",
    ),
}
_RATES = ("mae", "largest_error", "drift")
"""Measures of rates."""


@dataclass(frozen=True)
class SystemAnswers(ItemAnswers):
    """What people said of M models."""

    models: tuple[str, ...]
    model_of: IntArray  # shape (pairs,), position of each pair's model; -1 where none is compared
    # shape (pairs,), what people said of each; empty where only models have values
    rated: FloatArray
    human: FloatArray  # shape (M,), values of the models

    def arranged(self, values: FloatArray) -> FloatArray:
        """Values of the pairs, shape (pairs,), as means by prompt and model, shape (P, M)."""
        prompt = pd.Index(self.clusters).get_indexer(pd.Index(self.items.pairs["prompt_id"]))
        used = (self.model_of >= 0) & np.isfinite(values)
        place = prompt[used] * len(self.models) + self.model_of[used]
        shape = len(self.clusters), len(self.models)
        total = np.bincount(place, values[used], shape[0] * shape[1]).reshape(shape)
        number = np.bincount(place, minlength=shape[0] * shape[1]).reshape(shape)
        with np.errstate(invalid="ignore"):
            found: FloatArray = total / number
        return found

    def cluster_of_model(self) -> list[str] | None:
        """The cluster of each model, where each has one of its own and a value of a table."""
        pairs = self.items.pairs[["prompt_id"]].assign(model=self.model_of)
        met = pairs[self.model_of >= 0].drop_duplicates().sort_values("model")
        alone = not met.duplicated("model").any() and not met.duplicated("prompt_id").any()
        return met["prompt_id"].tolist() if alone and not self.rated.size else None


class SystemBenchmark(CardBenchmark):
    """Models that people rated, by their images."""

    infos: ClassVar[Mapping[str, MeasureInfo]] = MEASURES

    def __init__(self, card: FamilyCard, home: Path) -> None:
        super().__init__(_with_applicable_measures(card), home)
        assert card.system is not None
        self.said: System = card.system
        self._source: Benchmark | None = None

    @property
    def source(self) -> Benchmark:
        """The benchmark whose ratings are averaged, where the card names one.

        Raises:
            PlatformError: `invalid_benchmark`: nobody looked it up.
        """
        if self._source is None:
            raise PlatformError(
                "invalid_benchmark", f"{self.home}: {self.said.source} was not looked up."
            )
        return self._source

    def link(self, known: Mapping[str, Benchmark]) -> None:
        """Look up the benchmark whose ratings are averaged.

        Raises:
            SubmitterError: `invalid_benchmark`: there is none of this name with ratings.
        """
        if not self.said.source:
            return
        found = known.get(self.said.source)
        if found is None or isinstance(found, SystemBenchmark):
            raise SubmitterError(
                "invalid_benchmark",
                f"{self.home}: system.from: {self.said.source!r} is no benchmark with ratings.",
                f"Known benchmarks: {', '.join(sorted(known))}.",
            )
        self._source = found
        # What `fetch` brings is what the other benchmark needs.
        self.card = self.card.model_copy(update={"files": found.card.files})
        self.asked_from = found.asked_from

    def folder(self, data: Path | None) -> DataFolder:
        """The files of the card, or of the benchmark that it names."""
        return self.source.folder(data) if self.said.source else super().folder(data)

    def answers(self, data: Path | None) -> ItemAnswers:
        """The values of the models, from the table of the card or from the other benchmark."""
        if not self.said.source:
            return super().answers(data)
        source = self.source
        return self._of_source(source.answers(data))

    def _of_source(self, answers: Answers) -> SystemAnswers:
        items, rated = _rated_items(answers, self.source, self.said.facet)
        models = tuple(dict.fromkeys(name for name in items.pairs["model"] if name))
        empty = np.full(len(models), np.nan)
        found = SystemAnswers(
            items.pair_ids,
            answers.clusters,
            items,
            models,
            pd.Index(models).get_indexer(pd.Index(items.pairs["model"])),
            rated,
            empty,
            sources=answers.sources,
        )
        human = resampled_mean(found.arranged(rated), np.ones((1, len(found.clusters))))[0]
        return replace(found, human=human)

    def labelled(self, folder: DataFolder, items: Items) -> SystemAnswers:
        """The values of a table with columns `model` and `value`."""
        table = next(one for one in self.card.tables if one.name == self.said.human)
        values, _ = read_table(folder, table)
        path = table.paths[0]
        twice = values["model"].duplicated()
        if twice.any():
            raise folder.malformed(path, f"has model {values['model'][twice].iloc[0]!r} twice")
        models = tuple(values["model"].astype(str))
        model_of = pd.Index(models).get_indexer(pd.Index(items.pairs["model"]))
        absent = [name for k, name in enumerate(models) if not (model_of == k).any()]
        if absent:
            raise folder.malformed(path, f"has models without an image: {', '.join(absent[:5])}")
        return SystemAnswers(
            items.pair_ids,
            items.clusters,
            items,
            models,
            model_of,
            np.empty(0),
            values["value"].to_numpy(np.float64),
            sources=folder.verified(),
        )

    def items(self, folder: DataFolder) -> Items:
        """The items of the first table; the table of values is read apart."""
        card = self.card.model_copy(
            update={"tables": tuple(t for t in self.card.tables if t.name != self.said.human)}
        )
        return items_of(folder, card, read_tables(folder, card))

    # What a scorer may see is what it sees of the other benchmark.

    def has_questions(self, data: Path | None) -> bool:
        """Whether images and prompts are there; see `Benchmark.has_questions`."""
        if self.said.source:
            return self.source.has_questions(data)
        return super().has_questions(data)

    def questions(self, data: Path | None) -> Questions:
        """The images with their prompts."""
        return self.source.questions(data) if self.said.source else super().questions(data)

    def prompts(self, data: Path | None) -> pd.DataFrame:
        """The prompts, each once; see `Benchmark.prompts`."""
        return self.source.prompts(data) if self.said.source else super().prompts(data)

    def texts(self, data: Path | None) -> Mapping[str, str]:
        """Prompt id to the prompt."""
        return self.source.texts(data) if self.said.source else super().texts(data)

    def measure(self, scores: ScoreTable, answers: SystemAnswers, plan: ResamplingPlan) -> Measured:
        """All measures of every metric over the models."""
        builder = MeasuredBuilder(plan.n_resamples)
        table = scores.oriented().loc[list(answers.pair_ids)]
        people = _People(answers, plan)
        row = self.blank_row()
        for metric in scores.metrics:
            values = table[metric].to_numpy(np.float64)
            used = answers.model_of >= 0
            n_missing = int(np.isnan(values[used]).sum())
            by_prompt = answers.arranged(values)
            rates = scores.overall.loc[list(answers.pair_ids), metric].to_numpy(np.float64)
            falls = scores.directions.get(metric, 1) < 0
            no_rate = _why_no_rate(rates, falls)
            work = _Metric(self, people, by_prompt, answers.arranged(rates), no_rate)
            counted = replace(
                row,
                metric=metric,
                n_items=len(answers.models),
                n_clusters=int(np.isfinite(by_prompt).any(axis=1).sum()),
                n_missing=n_missing,
            )
            missing = f"images left out for want of a score: {n_missing}" if n_missing else ""
            for measure in self.card.measures:
                drawn, why = work.values(measure)
                if n_missing and self.card.evaluation.missing == "fail":
                    drawn, why = None, "withheld"
                value = math.nan if drawn is None else float(drawn[0])
                if math.isnan(value) and not why:
                    why = "the metric or people do not tell the models apart"
                drawing, of_row = "", counted
                if people.of_models and not why:
                    drawing = NO_LARGER if measure == "largest_error" else DRAWS_MODELS
                elif measure == "drift" and not why:
                    drawing = DRAWS_MODELS
                    of_row = replace(counted, n_items=work.n_dated, n_clusters=work.n_dated)
                said = notes(why, drawing, missing)
                found = replace(of_row, measure=measure, value=value, note=said)
                undefined = drawn is None or math.isnan(value) or drawing == NO_LARGER
                builder.add(found, None if undefined or drawn is None else drawn[1:])
        return builder.build()

    # What the labels alone say.

    def gold_of_pairs(self, answers: SystemAnswers) -> FloatArray:
        """What people said of each pair, or of its model."""
        if answers.rated.size:
            return answers.rated
        return np.where(answers.model_of >= 0, answers.human[answers.model_of], np.nan)

    def chance(self, answers: SystemAnswers) -> float:
        """Expected headline of random scores.

        Their p-values are even between 0 and 1, so that those of people, p, are away from them by
        p² - p + 1/2 in the mean.
        """
        if self.card.headline.measure != "spa":
            return super().chance(answers)
        p = _People(answers, self.plan(answers, 0)).judge.p.exact
        return float(1.0 - (p**2 - p + 0.5).mean())

    def facts(self, answers: SystemAnswers) -> Mapping[str, pd.DataFrame]:
        """The models in the order of people."""
        table = pd.DataFrame({"model": answers.models, "people": answers.human})
        if self.said.released or self.said.known_dates:
            dates = [self.said.release_date(name) for name in answers.models]
            table["released"] = [str(one or "") for one in dates]
        ordered = table.sort_values("people", ascending=False, kind="stable", ignore_index=True)
        return {"What people say of the models": ordered}


class _People:
    """Values of the models by people, in the sample and in each resample."""

    def __init__(self, answers: SystemAnswers, plan: ResamplingPlan) -> None:
        self.answers, self.plan = answers, plan
        self.draws = plan.draws
        self.weights = np.ones((len(self.draws), len(answers.models)))
        cluster = answers.cluster_of_model()
        self.of_models = cluster is not None
        if cluster is not None:
            self.weights = self.draws[:, plan.positions(cluster)]
            self.draws = np.ones_like(self.draws)
        self.means = np.tile(answers.human, (len(self.draws), 1))
        by_prompt = np.tile(answers.human, (len(answers.clusters), 1))
        if answers.rated.size:
            by_prompt = answers.arranged(answers.rated)
            self.means = resampled_mean(by_prompt, self.draws)
        self.judge = self.beside(by_prompt)

    def beside(self, by_prompt: FloatArray) -> systems.Judge:
        """A judge with values by prompt, (P, M), in the same draws."""
        return systems.Judge(by_prompt, self.draws, self.plan.resampled, self.plan.seed)

    def drawn_models(self, n_models: int) -> FloatArray:
        """How often each of n models is drawn, shape (1 + B, n): once in all draws that are no resamples."""
        found = np.ones((len(self.draws), n_models))
        rng = np.random.default_rng([self.plan.seed, n_models])
        resampled = self.plan.resampled
        size = len(found[resampled])
        found[resampled] = rng.multinomial(n_models, np.full(n_models, 1 / n_models), size)
        return found


class _Metric:
    """Values of the models by one metric, and its measures."""

    def __init__(
        self,
        benchmark: SystemBenchmark,
        people: _People,
        by_prompt: FloatArray,
        rates: FloatArray,
        no_rate: str,
    ) -> None:
        self._said, self._people = benchmark.said, people
        self._judge = people.beside(by_prompt)
        self._means = self._judge.means
        self._rates, self._no_rate = rates, no_rate

    def values(self, measure: str) -> tuple[FloatArray | None, str]:
        """A measure in the sample and in each resample, shape (1 + B,), or why there is none."""
        models = self._people.answers.models
        if len(models) < LEAST_MODELS:
            return None, f"fewer than {LEAST_MODELS} models"
        unknown = np.flatnonzero(np.isnan(self._means[0]))
        silent = [models[place] for place in unknown]
        if silent:
            return None, f"models without any score: {', '.join(silent[:5])}"
        if measure == "drift" and (dated := self.n_dated) < LEAST_DATED:
            return None, f"{dated} models with a date; a slope needs {LEAST_DATED}"
        if measure in _RATES:
            return (None, self._no_rate) if self._no_rate else (self._error(measure), "")
        if self._people.of_models:
            order = systems.ORDERS[measure]
            return order(self._people.means, self._means, self._people.weights), ""
        return self._people.judge.agreement(self._judge, measure, MEASURES[measure].low), ""

    @property
    def n_dated(self) -> int:
        """How many models have a date."""
        return int(np.isfinite(_years(self._people.answers.models, self._said)).sum())

    def _error(self, measure: str) -> FloatArray:
        """Distances of rates, in points of 100."""
        low, high = self._said.scale
        rates = resampled_mean(self._rates, self._people.draws)
        errors = 100.0 * np.abs(rates - (self._people.means - low) / (high - low))
        weights = self._people.weights
        if measure == "drift":
            return self._slope(errors)
        found: FloatArray = errors.max(axis=1)
        if measure == "mae":
            found = ratio((weights * errors).sum(axis=1), weights.sum(axis=1))
        if not self._people.of_models:
            resampled = self._people.plan.resampled
            found[resampled] = around(found[0], found[resampled], 0.0, 100.0)
        return found

    def _slope(self, errors: FloatArray) -> FloatArray:
        """That of errors (1 + B, M) over the dates of models, in points a year."""
        times = _years(self._people.answers.models, self._said)
        dated = np.isfinite(times)
        if self._people.of_models:
            weights = self._people.weights[:, dated]
            return systems.slope(errors[:, dated], times[dated], weights)
        drawn = self._people.drawn_models(int(dated.sum()))
        return systems.slope(np.tile(errors[0, dated], (len(drawn), 1)), times[dated], drawn)


def _why_no_rate(scores: FloatArray, falls: bool) -> str:
    if falls:
        return "scores of which lower ones are better make no rate"
    known = scores[np.isfinite(scores)]
    outside = known.size and (known.min() < 0 or known.max() > 1)
    return "scores outside 0 to 1 make no rate" if outside else ""


def _years(models: tuple[str, ...], said: System) -> FloatArray:
    """Dates in years, shape (M,); NaN where none is known."""
    days = [said.release_date(name) for name in models]
    known = [math.nan if day is None else day.toordinal() for day in days]
    return np.array(known, np.float64) / DAYS_PER_YEAR


def _rated_items(answers: Answers, source: Benchmark, facet: str) -> tuple[Items, FloatArray]:
    """Items of another benchmark, and what people said of each pair.

    Raises:
        SubmitterError: `invalid_benchmark`: nobody rated models there, or not on this facet.
    """
    if isinstance(answers, ItemAnswers) and isinstance(source, CardBenchmark):
        if isinstance(answers, RatingAnswers) and facet:
            if facet not in answers.means:
                raise _no_such(source, facet, answers.means)
            return answers.items, answers.means[facet]
        return answers.items, source.gold_of_pairs(answers)
    raise _no_such(source, facet, {})


def _no_such(source: Benchmark, facet: str, known: Mapping[str, Any]) -> SubmitterError:
    named = ", ".join(filter(None, known)) or "none"
    return SubmitterError(
        "invalid_benchmark",
        f"{source.name} has no ratings of models{f' on facet {facet!r}' if facet else ''}.",
        f"Its facets: {named}.",
    )


def _with_applicable_measures(card: FamilyCard) -> FamilyCard:
    """The card with the measures that its values allow.

    Raises:
        SubmitterError: `invalid_benchmark`: it chooses one that needs something else.
    """
    said = card.system
    assert said is not None
    lacking = {}
    if not said.source:
        lacking["spa"] = "values by prompt, from another benchmark"
    if not said.known_dates and len(said.released) < LEAST_DATED:
        lacking["drift"] = f"the dates of at least {LEAST_DATED} models in system.released"
    problems = []
    if said.human and said.human not in {table.name for table in card.tables}:
        problems.append(f"system.human: there is no table {said.human!r}")
    if said.human and not card.items.model:
        problems.append("a table of values needs items.model")
    if card.evaluation.missing == "wrong":
        problems.append("evaluation.missing: a mean has no wrong score; drop or fail")
    return with_measures(card, lacking=lacking, problems=problems)


FAMILY = SystemBenchmark
