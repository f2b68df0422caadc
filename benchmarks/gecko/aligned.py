"""Scores and human answers side by side, image by image: what every measure of Gecko reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.errors import SubmitterError
from benchmarks.gecko.aggregate import ABSOLUTE_TEMPLATES, preferences, template_scores
from benchmarks.gecko.answers import GeckoAnswers
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan


@dataclass(frozen=True)
class Comparisons:
    """Side-by-side comparisons (k,).

    Attributes:
        first: positions of images.
        second: positions of the images they are compared with.
        preference: 1 where the first is preferred, -1 the second, 0 neither.
    """

    first: IntArray
    second: IntArray
    preference: FloatArray

    def decided(self) -> tuple[IntArray, IntArray]:
        """Winners and losers, of the comparisons that have them."""
        kept = self.preference != 0
        a, b, won = self.first[kept], self.second[kept], self.preference[kept] > 0
        return np.where(won, a, b), np.where(won, b, a)


@dataclass(frozen=True)
class Aligned:
    """Everything the measures read, aligned with the n images of the benchmark.

    Attributes:
        metrics: names of the M metrics.
        scores: shape (n, M), higher is better.
        prompts: shape (n,), index of each image's prompt in the plan.
        models: shape (n,), model of each image.
        human: template to shape (n,), score or NaN.
        comparisons: the side-by-side comparisons.
        draws: shape (B + 1, C); row 0 draws each prompt once and so gives the estimate, the
            others are the plan's resamples.
    """

    metrics: tuple[str, ...]
    scores: FloatArray
    prompts: IntArray
    models: NDArray[np.object_]
    human: dict[str, FloatArray]
    comparisons: Comparisons
    draws: FloatArray

    def by_prompt(self, values: FloatArray, chosen: NDArray[np.bool_]) -> dict[str, FloatArray]:
        """Image values (n,) of some images: model to shape (C,), NaN where it has none."""
        found: dict[str, FloatArray] = {}
        for model in sorted(set(self.models)):
            images = np.flatnonzero(chosen & (self.models == model))
            found[model] = np.full(self.draws.shape[1], np.nan)
            found[model][self.prompts[images]] = values[images]
        return found


def align(scores: ScoreTable, answers: GeckoAnswers, plan: ResamplingPlan) -> Aligned:
    """Bring scores and ratings into the order of the benchmark's images.

    Raises:
        KeyError: an image has no row in `scores`, or a prompt is not in the plan.
        SubmitterError: `unknown_rating` or `rating_without_image`.
    """
    pairs = answers.pairs
    return Aligned(
        metrics=scores.metrics,
        scores=scores.oriented().loc[pairs["pair_id"]].to_numpy(np.float64),
        prompts=plan.positions(pairs["prompt_id"]),
        models=pairs["model"].to_numpy(object),
        human=human_scores(answers),
        comparisons=comparisons(answers),
        draws=plan.draws,
    )


def human_scores(answers: GeckoAnswers) -> dict[str, FloatArray]:
    """Score of every image, shape (n,), in each absolute template that was used; NaN without one.

    Raises:
        SubmitterError: `unknown_rating` or `rating_without_image`.
    """
    scored = template_scores(answers.ratings)
    _check_images_exist(_keys(scored), answers.pairs)
    rated = scored.set_index(["template", "prompt_id", "model"])["score"]
    return {
        template: rated.loc[template].reindex(_keys(answers.pairs)).to_numpy(np.float64)
        for template in ABSOLUTE_TEMPLATES
        if template in rated.index.get_level_values("template")
    }


def comparisons(answers: GeckoAnswers) -> Comparisons:
    """Majority votes as positions of the two images.

    Raises:
        SubmitterError: `unknown_rating` or `rating_without_image`.
    """
    voted = preferences(answers.ratings)
    first = _keys(voted)
    second = _keys(voted.drop(columns="model").rename(columns={"model_b": "model"}))
    _check_images_exist(first.union(second), answers.pairs)
    position = {key: i for i, key in enumerate(_keys(answers.pairs))}
    return Comparisons(
        np.array([position[key] for key in first], np.intp),
        np.array([position[key] for key in second], np.intp),
        voted["preference"].to_numpy(np.float64),
    )


def same_missing(finite: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.bool_], IntArray]]:
    """Metrics (columns) that scored the same images, so that they share one computation."""
    patterns, group = np.unique(finite, axis=1, return_inverse=True)
    for i, scored in enumerate(patterns.T):
        yield scored, np.flatnonzero(group.ravel() == i)


def _check_images_exist(rated: pd.MultiIndex, pairs: pd.DataFrame) -> None:
    unknown = rated.difference(_keys(pairs))
    if len(unknown):
        prompt_id, model = unknown[0]
        raise SubmitterError(
            "rating_without_image",
            f"The ratings hold {len(unknown)} images that the benchmark does not, the first is "
            f"prompt {prompt_id!r} of model {model!r}.",
            "Rate only images that are listed.",
        )


def _keys(pairs: pd.DataFrame) -> pd.MultiIndex:
    return pd.MultiIndex.from_frame(pairs[["prompt_id", "model"]])
