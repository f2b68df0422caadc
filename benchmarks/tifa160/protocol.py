"""Protocol of TIFA160: correlation and pairwise agreement with two sets of human ratings.

All images are pooled. Hu et al. 2023 (TIFA), Cho et al. 2024 (DSG), Lin et al. 2024 (VQAScore) and
Han et al. 2024 (EvalMuse-40K) report different pairs of a measure and a gold; every pair is given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.cases import image_cases, of_five
from benchmarks.pooled import CORRELATIONS, PooledImages
from benchmarks.rows import Measured, MeasuredBuilder, Row
from benchmarks.schema import Benchmark, Card, MeasureInfo, Questions, ScoreTable
from benchmarks.statistics.correlation import kendall, pearson, spearman
from benchmarks.statistics.raters import Level, krippendorff_alpha, one_against_the_others
from benchmarks.statistics.resampling import ResamplingPlan
from benchmarks.tifa160.load import (
    GOLDS,
    HUMAN,
    IMAGES,
    LIKERT,
    Tifa160Answers,
    load_answers,
    load_image_names,
    load_prompts,
    load_questions,
    released_answers,
)

LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")


def facts(answers: Tifa160Answers) -> dict[str, pd.DataFrame]:
    """Tables by title; see `Benchmark.facts`."""
    return {
        "Mean rating by model": model_means(answers),
        "Krippendorff's alpha of the ratings": rater_agreement(answers),
        "Correlation between the two golds": gold_correlation(answers),
        "Spearman of one rating with the mean of the others": one_rater(answers),
    }


def model_means(answers: Tifa160Answers) -> pd.DataFrame:
    """Mean over the images of each model; columns `model` and one per gold (1..5)."""
    means = answers.images.groupby("model", sort=False)[list(GOLDS)].mean()
    return means.reset_index()


def rater_agreement(answers: Tifa160Answers) -> pd.DataFrame:
    """Columns `gold`, `nominal`, `ordinal`, `interval`; each at most 1."""
    return pd.DataFrame(
        [
            {"gold": gold, **{level: krippendorff_alpha(table, level) for level in LEVELS}}
            for gold, table in answers.ratings.items()
        ]
    )


def gold_correlation(answers: Tifa160Answers) -> pd.DataFrame:
    """Columns `pearson`, `spearman`, `kendall` (tau-b) over all images: what one gold makes of the other."""
    one, other = (answers.images[gold].to_numpy(float) for gold in GOLDS)
    return pd.DataFrame(
        {
            "pearson": [pearson(one, other)],
            "spearman": [spearman(one, other)],
            "kendall": [kendall(one, other)],
        }
    )


def one_rater(answers: Tifa160Answers) -> pd.DataFrame:
    """Spearman correlation of each rating of an image with the mean of its other ratings.

    What one person reaches as a metric, over all images in one pool.
    """
    rows = []
    for gold, table in answers.ratings.items():
        found = one_against_the_others(table, spearman)
        rows += [(gold, str(i), float(value)) for i, value in enumerate(found, start=1)]
        rows.append((gold, "mean", float(found.mean())))
    return pd.DataFrame(rows, columns=["gold", "rating", "srcc"])


MEASURES: dict[str, MeasureInfo] = {
    "srcc": MeasureInfo.correlation(
        title="Spearman ρ",
        meaning="Spearman rank correlation between the metric and the mean rating over all "
        "images. For the source of the prompts (a summary of ours): over its images only.",
        source="DSG, correlation with Likert ratings on TIFA160",
    ),
    "krcc": MeasureInfo.correlation(
        title="Kendall τ-b",
        meaning="Kendall's tau-b between the metric and the mean rating over all images.",
        source="TIFA, correlation with human judgement, column Kendall; DSG",
    ),
    "pearson": MeasureInfo.correlation(
        title="Pearson r",
        meaning="Pearson correlation between the metric and the mean rating over all images. "
        "The TIFA paper prints this, with gold human_avg, under the title Spearman.",
        source="TIFA, correlation with human judgement, column Spearman; VQAScore (x 100)",
    ),
    "plcc": MeasureInfo(
        title="PLCC",
        meaning="Pearson correlation between the mean rating and the metric after a "
        "four-parameter logistic is fitted from scores to ratings. The curve may fall, so a "
        "metric that runs backwards also gets a positive value. The interval takes the best "
        "curve of a fixed grid in each resample instead of a new fit.",
        low=-1.0,
        high=1.0,
        source="EvalMuse-40K, results on other benchmarks",
    ),
    "pairwise_accuracy": MeasureInfo.share(
        title="Pairwise accuracy",
        meaning="Share of all pairs of images that the metric orders as the ratings do, or calls "
        "tied where they are equal. Scores count as tied up to a difference that is chosen for "
        "highest accuracy on these images; the interval keeps that difference fixed.",
        source="VQAScore, with the tie calibration of Deutsch et al. 2023",
    ),
}


_OURS = frozenset({("plcc", "dsg_likert"), ("pairwise_accuracy", "human_avg")})
"""Pairs of a measure and a gold that no paper reports."""


def _add(builder: MeasuredBuilder, row: Row, part: PooledImages, unit: float) -> None:
    found = part.estimate(row.measure, "calibrated", unit)
    row = replace(part.counted(row), value=found.value, note=found.note)
    pool = part.sample if row.measure in CORRELATIONS else None
    builder.add(row, found.resamples, members=part.members, pool=pool)


CARD = Card.read(Path(__file__).parent / "card.toml", MEASURES)


class Tifa160(Benchmark):
    """TIFA160: 800 images, rated for TIFA and again for DSG."""

    card = CARD
    asked_from = (HUMAN, IMAGES)

    def answers(self, data: Path | None) -> Tifa160Answers:
        """Read both sets of ratings from `<data>`, else from the bundle."""
        folder = self.folder(data)
        here = folder.has(HUMAN) and folder.has(LIKERT)
        return load_answers(folder) if here else released_answers()

    def questions(self, data: Path | None) -> Questions:
        """Read the images from `<data>/tifa160/images`; see `load_questions`."""
        return load_questions(self.folder(data))

    def remote_names(self, path: str, data: Path | None) -> tuple[str, ...]:
        """Names of the files in the web folder of images; none for other paths."""
        return load_image_names(self.folder(data)) if path == IMAGES else ()

    def prompts(self, data: Path | None) -> pd.DataFrame:
        """The 160 prompts; their skill is the collection they were taken from."""
        found = load_prompts(self.folder(data))
        return pd.DataFrame(
            {
                "prompt_id": found["prompt_id"],
                "prompt": found["prompt"],
                "split": "",
                "skills": found["source"],
            }
        )

    def facts(self, answers: Tifa160Answers) -> Mapping[str, pd.DataFrame]:
        """Tables of the ratings alone."""
        return facts(answers)

    def cases(self, answers: Tifa160Answers, data: Path | None) -> pd.DataFrame:
        """The images of each prompt by the gold of the headline; its skill is its source."""
        images, sources = answers.images, answers.prompts.set_index("prompt_id")["source"]
        expected = images[GOLDS[0]].to_numpy(np.float64)
        return image_cases(
            images["pair_id"].tolist(),
            images["prompt_id"].tolist(),
            expected,
            of_five(expected),
            texts=self.texts(data),
            skills={str(prompt): [source] for prompt, source in sources.items()},
        )

    def texts(self, data: Path | None) -> Mapping[str, str]:
        """Prompt id to the prompt; the bundle has none."""
        folder = self.folder(data)
        if not folder.has(HUMAN):
            return {}
        found = load_prompts(folder)
        return dict(zip(found["prompt_id"], found["prompt"], strict=True))

    def measure(
        self, scores: ScoreTable, answers: Tifa160Answers, plan: ResamplingPlan
    ) -> Measured:
        """All measures of every metric, for both golds.

        An image without a score is left out, as in the VQAScore evaluation. Intervals resample
        prompts with their images.
        """
        builder = MeasuredBuilder(plan.n_resamples)
        template = Row(self.name, self.card.revision, "", "", math.nan, split="all")
        overall = scores.oriented().loc[answers.images["pair_id"]]
        clusters = plan.positions(answers.images["prompt_id"])
        for metric in scores.metrics:
            values, unit = overall[metric].to_numpy(np.float64), scores.unit(metric)
            for facet in GOLDS:
                gold = answers.images[facet].to_numpy(np.float64)
                row = replace(template, metric=metric, facet=facet)
                everything = PooledImages.of(values, gold, clusters, plan)
                for name in MEASURES:
                    variant = "assay" if (name, facet) in _OURS else "paper"
                    _add(builder, replace(row, measure=name, variant=variant), everything, unit)
                for source in dict.fromkeys(answers.images["source"]):
                    chosen = np.asarray(answers.images["source"] == source, bool)
                    part = PooledImages.of(values, gold, clusters, plan, chosen)
                    of_source = replace(row, measure="srcc", skill=source, variant="assay")
                    _add(builder, of_source, part, unit)
        return builder.build()


BENCHMARKS = (Tifa160(),)
