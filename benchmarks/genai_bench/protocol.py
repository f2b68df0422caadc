"""Protocol of GenAI-Bench: all images in one pool, against the mean of three ratings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.arrays import BoolArray, FloatArray, IntArray
from benchmarks.cases import image_cases, of_five
from benchmarks.genai_bench.load import (
    MODELS,
    GenAiAnswers,
    Release,
    has_images,
    load_answers,
    load_prompts,
    load_questions,
    load_texts,
    released_answers,
)
from benchmarks.pooled import SAME_RATING, SAME_SCORE, PooledImages
from benchmarks.released.bundle import has_released
from benchmarks.rows import Measured, MeasuredBuilder, Row, notes
from benchmarks.schema import Benchmark, Card, MeasureInfo, Questions, ScoreTable
from benchmarks.statistics.paired import dominance, paired_t, wilcoxon
from benchmarks.statistics.pairwise_accuracy import (
    DrawnPairs,
    PairForms,
    Pairs,
    calibrated,
    tie_calibrated,
)
from benchmarks.statistics.raters import Level, krippendorff_alpha, one_against_the_others
from benchmarks.statistics.resampling import ResamplingPlan

MEASURES: dict[str, MeasureInfo] = {
    "pairwise_accuracy": MeasureInfo.share(
        title="Pairwise accuracy",
        meaning="Share of all pairs of images (of whatever prompts) that the metric and the mean "
        "rating order alike, or that both call tied. The metric calls a pair tied where its scores "
        "differ by at most a threshold. Variant paper takes the threshold of highest accuracy on "
        "these very images (tie calibration), variant no_calibration takes 0, and variant "
        "ignore_tie leaves out pairs that people rate alike. The interval of variant paper keeps "
        "the threshold found on all images instead of calibrating every resample anew.",
        source="Deutsch et al. 2023 (tie calibration); VQAScore and GenAI-Bench, no grouping",
    ),
    "krcc": MeasureInfo.correlation(
        title="Kendall τ-b",
        meaning="Kendall's tau-b between the metric and the mean rating over all images.",
        source="VQAScore and GenAI-Bench, no grouping",
    ),
    "pearson": MeasureInfo.correlation(
        title="Pearson r",
        meaning="Plain Pearson correlation between the metric and the mean rating over all images. "
        "The papers print it times 100.",
        source="VQAScore and GenAI-Bench, no grouping",
    ),
    "srcc": MeasureInfo.correlation(
        title="Spearman ρ",
        meaning="Spearman rank correlation between the metric and the mean rating over all images.",
        source="as EvalMuse-40K, Table 2, reports it for GenAI-Bench",
    ),
}
"""Agreement of scores with mean ratings, all images in one pool."""


_VARIANTS = ("paper", "no_calibration", "ignore_tie")
"""Kinds of pairwise accuracy."""


@dataclass(frozen=True)
class Pool:
    """Images that are compared with each other, all or those of some prompts."""

    scores: FloatArray  # shape (N,), higher is better; NaN where the metric gave none
    labels: FloatArray  # shape (N,), mean ratings; NaN where an image has none
    clusters: IntArray  # shape (N,), position of each image's prompt in the plan
    plan: ResamplingPlan  # resamples the prompts
    unit: float = 1.0  # one unit of `scores` in units of the metric's own, for thresholds in notes

    @cached_property
    def _forms(self) -> PairForms:
        """Pairs by prompt at threshold 0, which every selection of prompts shares."""
        return self._where(np.ones(self.scores.size, bool)).pair_forms(0.0)

    def _where(self, members: BoolArray) -> PooledImages:
        return PooledImages.of(self.scores, self.labels, self.clusters, self.plan, members)

    def add_to(self, builder: MeasuredBuilder, row: Row, prompts: BoolArray | None = None) -> None:
        """Add pairwise accuracy in its three variants, and the three correlations."""
        chosen = np.ones(len(self.plan.clusters), bool) if prompts is None else prompts
        pool = self._where(chosen[self.clusters])
        row = replace(pool.counted(row), note=pool.remark)
        drawn = _drawn(self._forms, pool)
        self._add_pairwise(builder, replace(row, measure="pairwise_accuracy"), pool, drawn)
        for measure in ("krcc", "pearson", "srcc"):
            of_measure = replace(row, measure=measure)
            if pool.undefined:
                without = replace(of_measure, note=notes(pool.undefined, row.note))
                builder.add(without, pool=pool.sample)
                continue
            # The pairs, which are at hand, hold Kendall's tau-b of every resample.
            resamples = drawn.tau_b if measure == "krcc" else pool.resamples(measure)
            found = replace(of_measure, value=pool.value(measure))
            builder.add(found, resamples, members=pool.members, pool=pool.sample)

    def _add_pairwise(
        self, builder: MeasuredBuilder, row: Row, pool: PooledImages, at_0: DrawnPairs
    ) -> None:
        pairs = Pairs.of(pool.scores, pool.ratings)
        if not pairs.n_pairs:
            few = replace(row, note=notes("fewer than two images with a score", row.note))
            for variant in _VARIANTS if row.variant == "paper" else (row.variant,):
                builder.add(replace(few, variant=variant))
            return
        if pool.constant == SAME_SCORE:
            row = replace(row, note=notes(SAME_SCORE, row.note))
        best = calibrated(pairs)
        at_best = at_0
        if best.threshold > 0:
            at_best = _drawn(pool.pair_forms(best.threshold), pool)
        note = notes(
            f"scores tied up to a difference of {self.unit * best.threshold:.6g}", row.note
        )
        calibrated_row = replace(row, value=best.accuracy, note=note)
        builder.add(calibrated_row, at_best.accuracy, members=pool.members)
        if row.variant != "paper":
            return
        uncalibrated = replace(row, variant="no_calibration", value=pairs.accuracy(0.0))
        builder.add(uncalibrated, at_0.accuracy, members=pool.members)
        ignoring = replace(row, variant="ignore_tie", value=pairs.accuracy_ignoring_ties)
        if np.isnan(ignoring.value):
            builder.add(replace(ignoring, note=notes(SAME_RATING, row.note)))
            return
        builder.add(ignoring, at_0.accuracy_ignoring_ties, members=pool.members)


def _drawn(forms: PairForms, pool: PooledImages) -> DrawnPairs:
    present = np.unique(pool.clusters)
    return forms.among(present).drawn(pool.plan.counts[:, present])


LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")
ALL_PROMPTS, TAGGED_PROMPTS = "all prompts", "tagged prompts"


def facts(answers: GenAiAnswers) -> dict[str, pd.DataFrame]:
    """The tables below by title; see `Benchmark.facts`."""
    return {
        "Mean rating by tag and model": model_means(answers).T.rename_axis("tag").reset_index(),
        "Paired tests of two models on their mean ratings": model_tests(answers),
        "Krippendorff's alpha of the ratings": (
            rater_agreement(answers).rename_axis("ratings").reset_index()
        ),
        "One rating against the mean of the others": one_rater(answers),
    }


def model_means(answers: GenAiAnswers) -> pd.DataFrame:
    """Mean rating of each model: the benchmark's table of text-to-image models.

    The published column for all skills is over the union of the tags, `tagged prompts`; the 1,600
    set has prompts without a tag, so `all prompts` stands beside it.
    """
    means = _by_prompt(answers)
    tagged = frozenset().union(*answers.skills.values())
    members = {**answers.skills, TAGGED_PROMPTS: tagged, ALL_PROMPTS: frozenset(answers.clusters)}
    return pd.DataFrame(
        {name: means[means.index.isin(prompts)].mean() for name, prompts in members.items()}
    )


def model_tests(answers: GenAiAnswers) -> pd.DataFrame:
    """Paired tests of every two models on their mean ratings, prompt by prompt."""
    means = _by_prompt(answers)
    rows = []
    for a, b in combinations(means.columns, 2):
        x, y = means[a].to_numpy(np.float64), means[b].to_numpy(np.float64)
        t, w = paired_t(x, y), wilcoxon(x, y)
        rows.append((a, b, t.statistic, t.p_value, w.statistic, w.p_value, *dominance(x, y)))
    names = ["a", "b", "t", "t_p", "w", "w_p", "a_wins", "b_wins"]
    return pd.DataFrame(rows, columns=names)


def rater_agreement(answers: GenAiAnswers) -> pd.DataFrame:
    """Krippendorff's alpha of the ratings."""
    tables = {"raw": answers.ratings, "cleaned": answers.cleaned_ratings}
    return pd.DataFrame(
        {
            level: {name: krippendorff_alpha(table, level) for name, table in tables.items()}
            for level in LEVELS
        }
    )


def one_rater(answers: GenAiAnswers) -> pd.DataFrame:
    """Pairwise accuracy with tie calibration of each rating against the mean of the others.

    What one person reaches as a metric, over all images in one pool and with the ratings as
    released; a column of the release need not be one person.
    """
    found = one_against_the_others(answers.ratings, lambda a, b: tie_calibrated(a, b).accuracy)
    names = [*map(str, range(1, found.size + 1)), "mean"]
    return pd.DataFrame({"rating": names, "pairwise_accuracy": [*found, found.mean()]})


def _by_prompt(answers: GenAiAnswers) -> pd.DataFrame:
    """Mean ratings, one row per prompt and one column per model, in the released order."""
    labelled = answers.images.assign(label=answers.labels)
    table = labelled.pivot_table(index="prompt_id", columns="model", values="label", sort=False)
    return table.loc[list(answers.clusters)]


def cases(answers: GenAiAnswers, texts: Mapping[Any, str]) -> pd.DataFrame:
    """The images of each prompt, with its tags in the order of the benchmark."""
    return image_cases(
        answers.images["pair_id"].tolist(),
        answers.images["prompt_id"].tolist(),
        answers.labels,
        of_five(answers.labels),
        texts=texts,
        skills={
            prompt: [tag for tag, prompts in answers.skills.items() if prompt in prompts]
            for prompt in answers.clusters
        },
    )


_FOLDER = Path(__file__).parent
CARD_527 = Card.read(_FOLDER / "card_527.toml", MEASURES)
CARD_1600 = Card.read(_FOLDER / "card_1600.toml", MEASURES)


class GenAiBench(Benchmark):
    """Images of six models with three ratings each; which set, the card says."""

    def __init__(self, card: Card = CARD_1600) -> None:
        super().__init__(card)
        self.release = Release(self.name)  # its files, in a folder of the benchmark's name
        self.asked_from = (self.release.ratings,)

    def answers(self, data: Path | None) -> GenAiAnswers:
        """Read ratings and tags from `<data>`; of the 1,600 prompts, else from the bundle."""
        folder, release = self.folder(data), self.release
        here = folder.has(release.ratings) and folder.has(release.skills)
        if here or not has_released(release.bundled_ratings):
            return load_answers(folder, release)
        return released_answers(release)

    def questions(self, data: Path | None) -> Questions:
        """Read the images from the models' archives or unpacked folders; see `load_questions`."""
        return load_questions(self.folder(data), self.release)

    def has_images(self, data: Path | None) -> bool:
        """Whether the images of every model are there, packed or not."""
        return has_images(self.folder(data), self.name, MODELS)

    def prompts(self, data: Path | None) -> pd.DataFrame:
        """The prompts with their tags; see `Benchmark.prompts`."""
        return load_prompts(self.folder(data), self.release)

    def facts(self, answers: GenAiAnswers) -> Mapping[str, pd.DataFrame]:
        """Tables of the ratings alone."""
        return facts(answers)

    def cases(self, answers: GenAiAnswers, data: Path | None) -> pd.DataFrame:
        """The images of each prompt, with its tags in the order of the benchmark."""
        return cases(answers, self.texts(data))

    def texts(self, data: Path | None) -> Mapping[str, str]:
        """Prompt id to the prompt; the bundle has none."""
        folder = self.folder(data)
        return load_texts(folder, self.release) if folder.has(self.release.ratings) else {}

    def measure(self, scores: ScoreTable, answers: GenAiAnswers, plan: ResamplingPlan) -> Measured:
        """Agreement of every metric in the table with the mean ratings.

        Rows, overall and per tag: `pairwise_accuracy` (variants `paper`, `no_calibration`,
        `ignore_tie`), `krcc`, `pearson` and `srcc` (`paper`). Where ratings lie outside 1..5, the
        overall rows come again without these ratings (`cleaned`).
        """
        builder = MeasuredBuilder(plan.n_resamples)
        clusters = plan.positions(answers.images["prompt_id"])
        overall = scores.oriented().loc[answers.images["pair_id"]]
        for metric in scores.metrics:
            values = overall[metric].to_numpy(np.float64)
            row = Row(self.name, self.card.revision, metric, "", math.nan, variant="paper")
            pool = Pool(values, answers.labels, clusters, plan, scores.unit(metric))
            pool.add_to(builder, row)
            for skill, prompts in answers.skills.items():
                chosen = np.array([prompt in prompts for prompt in plan.clusters])
                pool.add_to(builder, replace(row, skill=skill), chosen)
            if answers.n_outside:
                cleaned = replace(pool, labels=answers.cleaned_labels)
                cleaned.add_to(builder, replace(row, variant="cleaned"))
        return builder.build()


BENCHMARKS = (GenAiBench(CARD_527), GenAiBench(CARD_1600))
