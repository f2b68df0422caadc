"""Protocol of the ranking set: rating of the image with the highest score."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.genai_bench.load import has_images
from benchmarks.genai_bench.protocol import MEASURES as AGREEMENT_MEASURES
from benchmarks.genai_bench.protocol import add_agreement, cases
from benchmarks.genai_ranking.load import (
    MODELS,
    RATINGS,
    RankingAnswers,
    load_answers,
    load_prompts,
    load_questions,
)
from benchmarks.pooled import PooledImages
from benchmarks.rows import Measured, MeasuredBuilder, Row
from benchmarks.schema import Benchmark, Card, MeasureInfo, Questions, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan

VARIANTS = ("paper", "assay")
"""Among images of equal best score: the first one; or the mean over all of them."""


@dataclass(frozen=True)
class Choices:
    """Sums over the groups of each prompt, shape (P,) each."""

    agreed: FloatArray  # groups whose choice is one of the images that people rate best
    rating: FloatArray  # mean ratings of the choices
    groups: FloatArray  # groups in which an image has a score


def choose(scores: FloatArray, labels: FloatArray, size: int, variant: str) -> Choices:
    """Choose in groups of consecutive images.

    An image without a score is never chosen, though it may be the one that people rate best.

    `scores` (P, K): higher is better; NaN where the metric gave none. `labels` (P, K): mean
    ratings.
    """
    score = scores.reshape(scores.shape[0], -1, size)
    label = labels.reshape(score.shape)
    scored = np.isfinite(score)
    filled = np.where(scored, score, -np.inf)
    chosen = scored & (filled == filled.max(axis=2, keepdims=True))
    if variant == "paper":
        chosen &= np.cumsum(chosen, axis=2) == 1
    best = label == label.max(axis=2, keepdims=True)
    number = chosen.sum(axis=2)
    share = np.maximum(number, 1)
    return Choices(
        agreed=((chosen & best).sum(axis=2) / share).sum(axis=1),
        rating=(np.where(chosen, label, 0.0).sum(axis=2) / share).sum(axis=1),
        groups=(number > 0).sum(axis=1).astype(np.float64),
    )


def random_choice(labels: FloatArray, size: int) -> dict[str, float]:
    """Mean `top1_agreement` and `rating` of a random choice, and `best_rating` of the best one."""
    group = labels.reshape(-1, size)
    best = group == group.max(axis=1, keepdims=True)
    return {
        "top1_agreement": float(best.mean()),
        "rating": float(group.mean()),
        "best_rating": float(group.max(axis=1).mean()),
    }


GROUP_SIZES = {"best_of_9": 9, "best_of_3": 3}
MEASURES: dict[str, MeasureInfo] = {
    "top1_agreement": MeasureInfo.share(
        title="Top-1 agreement",
        meaning="How often the image with the highest score is one of those with the highest mean "
        "rating: among the nine images of a prompt, or among images 1-3, 4-6 and 7-9. Of images "
        "with equal scores, variant paper takes the first one, and variant assay the average "
        "over all of them.",
        source="GenAI-Bench, ranking images; the authors' evaluation script",
    ),
    "rating_of_best": MeasureInfo(
        title="Rating of the choice",
        meaning="Mean rating, from 1 to 5, of the image with the highest score; ties as for top-1 "
        "agreement.",
        low=1.0,
        high=5.0,
        source="GenAI-Bench, ranking images; the authors' evaluation script",
    ),
    **AGREEMENT_MEASURES,
}


def chance(answers: RankingAnswers) -> dict[tuple[str, str], dict[str, float]]:
    """Figures of a random choice, by model and facet."""
    return {
        (model, facet): random_choice(answers.labels[answers.rows_of(model)], size)
        for model in answers.models
        for facet, size in GROUP_SIZES.items()
    }


def _add_choices(
    builder: MeasuredBuilder,
    row: Row,
    scores: FloatArray,
    answers: RankingAnswers,
    plan: ResamplingPlan,
) -> None:
    """Rows of one model's images; scores has shape (P, 9)."""
    labels = answers.labels[answers.rows_of(str(row.split))]
    prompts = np.array(list(dict.fromkeys(answers.images["prompt_id"])), object)
    in_plan = plan.positions(prompts)
    counts = plan.counts[:, in_plan]
    missing = np.isnan(scores).sum(axis=1)
    for facet, size in GROUP_SIZES.items():
        for variant in VARIANTS:
            found = choose(scores, labels, size, variant)
            sums = {"top1_agreement": found.agreed, "rating_of_best": found.rating}
            for skill, inside in _selections(answers, prompts):
                weights = np.where(inside, found.groups, 0.0)
                described = replace(
                    row,
                    skill=skill,
                    facet=facet,
                    variant=variant,
                    n_items=int(weights.sum()),
                    n_clusters=int((weights > 0).sum()),
                    n_missing=int(missing[inside].sum()),
                )
                for name, total in sums.items():
                    _add_mean(
                        builder,
                        replace(described, measure=name),
                        np.where(inside, total, 0.0),
                        weights,
                        counts,
                        members=in_plan[inside],
                    )


def _add_mean(
    builder: MeasuredBuilder,
    row: Row,
    total: FloatArray,
    weights: FloatArray,
    counts: FloatArray,
    *,
    members: IntArray,
) -> None:
    """Mean over groups, from sums and numbers of groups per prompt, shape (P,) each."""
    if not weights.any():
        builder.add(replace(row, note="no group of images has a score"))
        return
    note = f"images without a score, never chosen: {row.n_missing}" if row.n_missing else ""
    with np.errstate(invalid="ignore", divide="ignore"):
        resamples = (counts @ total) / (counts @ weights)
    row = replace(row, value=float(total.sum() / weights.sum()), note=note)
    builder.add(row, resamples, members=members)


def _selections(
    answers: RankingAnswers, prompts: NDArray[np.object_]
) -> Iterator[tuple[str | None, NDArray[np.bool_]]]:
    """All prompts, then those of each tag that has any."""
    yield None, np.ones(prompts.size, bool)
    for skill, members in answers.skills.items():
        if members:
            yield skill, np.array([prompt in members for prompt in prompts])


CARD = Card.read(Path(__file__).parent / "card.toml", MEASURES)


class GenAiRanking(Benchmark):
    """Nine images of each of 800 prompts by two models, all rated."""

    card = CARD
    asked_from = (RATINGS,)

    def answers(self, data: Path | None) -> RankingAnswers:
        """Read ratings and tags; see `load_answers`."""
        return load_answers(self.folder(data))

    def questions(self, data: Path | None) -> Questions:
        """Read the images from the models' archives or unpacked folders; see `load_questions`."""
        return load_questions(self.folder(data))

    def has_images(self, data: Path | None) -> bool:
        """Whether the images of every model are there, packed or not."""
        return has_images(self.folder(data), self.name, MODELS)

    def prompts(self, data: Path | None) -> pd.DataFrame:
        """The prompts with their tags; see `Benchmark.prompts`."""
        return load_prompts(self.folder(data))

    def facts(self, answers: RankingAnswers) -> Mapping[str, pd.DataFrame]:
        """What a random choice reaches; see `protocol.chance`."""
        rows = [
            {"split": model, "facet": facet, **figures}
            for (model, facet), figures in chance(answers).items()
        ]
        return {"What a random choice and the best one reach": pd.DataFrame(rows)}

    def cases(self, answers: RankingAnswers, data: Path | None) -> pd.DataFrame:
        """The images of each prompt by each model, since a metric chooses among those of one.

        The splits are the models, as they are in the protocol.
        """
        texts = self.prompts(data).set_index("prompt_id")["prompt"]
        found = cases(answers, texts.to_dict())
        model = answers.images["model"].to_numpy(object)
        return found.assign(case_id=found["case_id"] + "/" + model, split=model)

    def measure(
        self, scores: ScoreTable, answers: RankingAnswers, plan: ResamplingPlan
    ) -> Measured:
        """Every metric in the table, for the images of each model apart (the splits).

        Rows: `top1_agreement` and `rating_of_best` by facet (`best_of_9`, `best_of_3`) and variant
        (`paper`, `assay`), overall and per tag; overall also what `genai_bench` reports.
        """
        builder = MeasuredBuilder(plan.n_resamples)
        template = Row(self.name, self.card.revision, "", "", math.nan, variant="paper")
        overall = scores.oriented().loc[answers.images["pair_id"]]
        clusters = plan.positions(answers.images["prompt_id"])
        for metric in scores.metrics:
            values = overall[metric].to_numpy(np.float64)
            for model in answers.models:
                row = replace(template, metric=metric, split=model)
                rows = answers.rows_of(model)
                _add_choices(builder, row, values[rows], answers, plan)
                images = rows.ravel()
                pool = PooledImages.of(
                    values[images], answers.labels[images], clusters[images], plan
                )
                add_agreement(builder, row, pool, scores.unit(metric))
        return builder.build()


BENCHMARKS = (GenAiRanking(),)
