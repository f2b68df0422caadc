"""Protocol of GenAI-Bench: all images in one pool, against the mean of three ratings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

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
from benchmarks.pooled import CORRELATIONS, Estimate, PooledImages, Ties
from benchmarks.released.bundle import has_released
from benchmarks.rows import Measured, MeasuredBuilder, Row
from benchmarks.schema import Benchmark, Card, MeasureInfo, Questions, ScoreTable
from benchmarks.statistics.paired import dominance, paired_t, wilcoxon
from benchmarks.statistics.pairwise_accuracy import tie_calibrated
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


VARIANTS: Mapping[Ties, str] = {
    "calibrated": "paper",
    "equal": "no_calibration",
    "ignore": "ignore_tie",
}
"""Rule for ties to the variant of pairwise accuracy."""


def add_agreement(builder: MeasuredBuilder, row: Row, pool: PooledImages, unit: float) -> None:
    """Add pairwise accuracy and the three correlations of a pool.

    Variant `paper` has pairwise accuracy by every rule for ties, others calibrated alone.
    """
    for ties, variant in VARIANTS.items():
        if row.variant == "paper" or ties == "calibrated":
            named = replace(row, measure="pairwise_accuracy")
            named = replace(named, variant=variant if row.variant == "paper" else row.variant)
            found = pool.pairwise_accuracy(ties, unit)
            if ties == "calibrated" and not pool.too_few:
                found = replace(found, note=f"scores {found.note}")
            _add(builder, named, pool, found)
    for measure in ("krcc", "pearson", "srcc"):
        if measure == "krcc" and not pool.undefined:
            # The pairs, which are at hand, hold Kendall's tau-b of every resample.
            drawn = pool.drawn_pairs(0.0).tau_b
            found = Estimate(pool.value(measure), pool.remark, drawn)
        else:
            found = pool.correlation(measure)
        _add(builder, replace(row, measure=measure), pool, found)


def _add(builder: MeasuredBuilder, row: Row, pool: PooledImages, found: Estimate) -> None:
    sample = pool.sample if row.measure in CORRELATIONS else None
    row = replace(pool.counted(row), value=found.value, note=found.note)
    builder.add(row, found.resamples, members=pool.members, pool=sample)


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
        prompts = np.array(plan.clusters, object)[clusters]
        overall = scores.oriented().loc[answers.images["pair_id"]]
        for metric in scores.metrics:
            values, unit = overall[metric].to_numpy(np.float64), scores.unit(metric)
            row = Row(self.name, self.card.revision, metric, "", math.nan, variant="paper")
            pool = PooledImages.of(values, answers.labels, clusters, plan)
            forms = cache(partial(pool.pair_forms, 0.0))
            add_agreement(builder, row, replace(pool, wider=forms), unit)
            for skill, tagged in answers.skills.items():
                inside = np.array([prompt in tagged for prompt in prompts], bool)
                part = PooledImages.of(values, answers.labels, clusters, plan, inside)
                add_agreement(builder, replace(row, skill=skill), replace(part, wider=forms), unit)
            if answers.n_outside:
                cleaned = PooledImages.of(values, answers.cleaned_labels, clusters, plan)
                add_agreement(builder, replace(row, variant="cleaned"), cleaned, unit)
        return builder.build()


BENCHMARKS = (GenAiBench(CARD_527), GenAiBench(CARD_1600))
