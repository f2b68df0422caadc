"""People's ratings of models: means, differences and slices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.evalmuse.load import EvalMuseAnswers
from benchmarks.genai_bench.load import GenAiAnswers
from benchmarks.schema import Answers, Benchmark
from benchmarks.tifa160.load import GOLDS, Tifa160Answers

_SMALL, _LARGE = 1e-100, 1e100
"""Squares of numbers between these, and sums of many, are within the range of doubles."""


@dataclass(frozen=True)
class SliceScores:
    """Scores of M models by one metric on the n prompts of a slice.

    A model's mean is a ratio of two sums over prompts: of whole images all weights are 1; of
    elements a prompt weighs as much as it has elements (EvalMuse-40K, Table 10).
    """

    sums: FloatArray  # shape (n, M), summed scores of each prompt; 0 where there is none
    weights: FloatArray  # shape (n, M), how many scores were summed; 0 where there is none
    plain: bool = False  # whether every weight is 0 or 1

    @classmethod
    def of_prompts(cls, values: FloatArray) -> SliceScores:
        """Scores from a value for each prompt and model, shape (n, M); NaN where there is none."""
        there = np.isfinite(values)
        return cls(np.where(there, values, 0.0), there.astype(np.float64), plain=True)

    @classmethod
    def of_elements(cls, scores: FloatArray, prompts: IntArray, n_prompts: int) -> SliceScores:
        """Scores of elements.

        `scores` (E, M), NaN where there is none; `prompts` (E,), place of each element's prompt in
        the slice.
        """
        there = np.isfinite(scores)
        sums, weights = np.zeros((2, n_prompts, scores.shape[1]))
        np.add.at(sums, prompts, np.where(there, scores, 0.0))
        np.add.at(weights, prompts, there)
        return cls(sums, weights)

    def of_models(self, places: IntArray) -> SliceScores:
        """The scores of some models."""
        return SliceScores(self.sums[:, places], self.weights[:, places], self.plain)

    @cached_property
    def n_prompts(self) -> IntArray:
        """Shape (M,), prompts with a score."""
        return np.asarray((self.weights > 0).sum(axis=0), np.intp)

    @cached_property
    def means(self) -> FloatArray:
        """Shape (M,); NaN for a model without any score."""
        with np.errstate(invalid="ignore"):
            found: FloatArray = self.sums.sum(axis=0) / self.weights.sum(axis=0)
        return found

    @cached_property
    def by_prompt(self) -> FloatArray:
        """Shape (n, M), values whose mean over the prompts is the model's; NaN where there is none.

        Of a ratio these are the pseudo-values of its linearisation, R + (s - R w) / mean w, so
        that what holds for means of prompts holds for ratios too (Cochran 1977, section 2.11). Of
        plain values they are the values.
        """
        if self.plain:
            return np.where(self.weights > 0, self.sums, np.nan)
        with np.errstate(invalid="ignore"):
            mean_weight = self.weights.sum(axis=0) / self.n_prompts
            moved = (self.sums - self.means * self.weights) / mean_weight
        return np.where(self.weights > 0, self.means + moved, np.nan)

    @cached_property
    def unit(self) -> float:
        """1, or a power of two near the largest value where squares would leave their range."""
        largest = float(np.abs(np.nan_to_num(self.by_prompt)).max(initial=0.0))
        if not largest or _SMALL < largest < _LARGE:
            return 1.0
        return math.ldexp(1.0, max(-1000, min(1000, math.frexp(largest)[1])))

    @property
    def in_range(self) -> FloatArray:
        """`by_prompt` in this unit: no test depends on the unit of a score."""
        return self.by_prompt if self.unit == 1.0 else self.by_prompt / self.unit

    def resampled(self, counts: FloatArray) -> FloatArray:
        """The means in each resample of the prompts.

        `counts` (B, n), how often each prompt is drawn.
        Returns: shape (M, B); NaN where nothing with a score is drawn.
        """
        if self.plain and self.weights.all():
            drawn = counts.sum(axis=1)
        else:
            drawn = self.weights.T @ counts.T
        with np.errstate(invalid="ignore", divide="ignore"):
            found: FloatArray = (self.sums.T @ counts.T) / drawn
        return found


# Rated models of a benchmark of metrics.


TITLES: Mapping[str, str] = MappingProxyType(
    {
        "DALLE_3": "DALL-E 3",
        "Midjourney_6": "Midjourney v6",
        "DeepFloyd_I_XL_v1": "DeepFloyd-IF XL",
        "SDXL_Base": "Stable Diffusion XL",
        "SDXL_Turbo": "SDXL Turbo",
        "SDXL_2_1": "Stable Diffusion 2.1",
        "mini_dalle": "minDALL-E",
        "vq_diffusion": "VQ-Diffusion",
        "stable_diffusion_v1_1": "Stable Diffusion 1.1",
        "stable_diffusion_v1_5": "Stable Diffusion 1.5",
        "stable_diffusion_v2_1": "Stable Diffusion 2.1",
    }
)
"""Names of models in the papers, by those in the released files of GenAI-Bench and TIFA160."""
COMPARED_BY = "human_avg"
"""The gold of TIFA160 by which metrics are held against people: the paper compared models by it."""


@dataclass(frozen=True)
class RatedModels:
    """Ratings by prompt and model."""

    models: tuple[str, ...]  # names, in order of first appearance; M of them
    prompts: tuple[str, ...]  # ids, likewise; P of them
    images: pd.DataFrame  # columns `pair_id`, `prompt_id`, `model`; one row for each image
    # shape (P, M), mean rating of each prompt's images of each model; NaN without any
    people: FloatArray
    source: str  # whose ratings these are
    # skill to the ids of its prompts; a prompt may have none, or several
    skills: Mapping[str, frozenset[str]] = field(default_factory=dict)
    n_ratings: int = 0  # single ratings behind the means; 0 where they are not released
    note: str = ""  # what a reader must know of them; empty as a rule

    def arranged(self, scores: Mapping[str, float]) -> FloatArray:
        """Scores by pair id as shape (P, M): the mean over a prompt's images of a model."""
        values = np.array([scores.get(pair, np.nan) for pair in self.images["pair_id"]], np.float64)
        return _arranged(self.images, values, self.prompts, self.models)


def rated_models(answers: Answers) -> RatedModels | None:
    """The ratings by which metrics are held against people; None where nobody rated models."""
    found = ratings_by_gold(answers)
    return found.get(COMPARED_BY) or next(iter(found.values()), None)


def ratings_by_gold(answers: Answers) -> Mapping[str, RatedModels]:
    """The ratings of models on the same prompts in a benchmark's answers, by gold.

    Returns: One entry without a name where the benchmark has one gold; the gold of the headline
    first; nothing where nobody rated models on the same prompts.
    """
    if isinstance(answers, GenAiAnswers):
        found = {"": _of_genai(answers)}
    elif isinstance(answers, Tifa160Answers):
        found = {gold: _of_tifa(answers, gold) for gold in GOLDS}
    elif isinstance(answers, EvalMuseAnswers):
        found = {"": _of_evalmuse(answers)}
    else:
        found = {}
    return {gold: rated for gold, rated in found.items() if len(rated.models) > 1}


def _of_genai(answers: GenAiAnswers) -> RatedModels:
    notes = []
    if answers.n_outside:
        notes.append(
            f"{answers.n_outside} of the released ratings lie outside 1–5; they count as released, "
            "as in the authors' evaluation."
        )
    if answers.untagged:
        notes.append(
            f"{len(answers.untagged)} prompts without a tag count in the overall mean only."
        )
    rated = _rated(answers.images, answers.labels, "mean of its ratings")
    return replace(
        rated,
        skills=answers.skills,
        n_ratings=int(np.isfinite(answers.ratings).sum()),
        note=" ".join(notes),
    )


def _of_tifa(answers: Tifa160Answers, gold: str) -> RatedModels:
    whose = "TIFA" if gold == COMPARED_BY else "DSG"
    label = answers.images[gold].to_numpy(np.float64)
    rated = _rated(answers.images, label, f"mean of {whose}’s ratings")
    prompts = answers.prompts.groupby("source", sort=False)["prompt_id"]
    return replace(
        rated,
        skills={str(source): frozenset(ids) for source, ids in prompts},
        n_ratings=int(np.isfinite(answers.ratings[gold]).sum()),
    )


def _of_evalmuse(answers: EvalMuseAnswers) -> RatedModels:
    # `img_path` is model and file: SDXL-Turbo/00805.png.
    model, slash, _ = (answers.images["pair_id"].str.rpartition("/")[i] for i in range(3))
    images = answers.images.assign(model=model)[slash == "/"]
    label = images["label"].to_numpy(np.float64)
    return _rated(images, label, "mean of its overall ratings")


def _rated(images: pd.DataFrame, ratings: FloatArray, source: str) -> RatedModels:
    named = images[["pair_id", "prompt_id", "model"]].reset_index(drop=True)
    models = tuple(dict.fromkeys(named["model"]))
    prompts = tuple(dict.fromkeys(named["prompt_id"]))
    people = _arranged(named, np.asarray(ratings, np.float64), prompts, models)
    return RatedModels(models, prompts, named, people, source)


def _arranged(
    images: pd.DataFrame, values: FloatArray, prompts: Sequence[str], models: Sequence[str]
) -> FloatArray:
    rows = pd.Index(prompts).get_indexer(pd.Index(images["prompt_id"]))
    columns = pd.Index(models).get_indexer(pd.Index(images["model"]))
    there = np.isfinite(values)
    total, count = np.zeros((2, len(prompts), len(models)))
    np.add.at(total, (rows[there], columns[there]), values[there])
    np.add.at(count, (rows[there], columns[there]), 1.0)
    with np.errstate(invalid="ignore"):
        found: FloatArray = total / count
    return found


@cache
def rating_benchmarks() -> Mapping[str, Benchmark]:
    """The benchmarks on which people rated models on the same prompts, by name."""
    # Importing these for whoever only wants the types would load every benchmark.
    from benchmarks.evalmuse.protocol import BENCHMARKS as EVALMUSE  # noqa: PLC0415
    from benchmarks.genai_bench.protocol import BENCHMARKS as GENAI  # noqa: PLC0415
    from benchmarks.tifa160.protocol import BENCHMARKS as TIFA  # noqa: PLC0415

    return MappingProxyType({one.name: one for one in (*GENAI, *TIFA, *EVALMUSE)})


_Read = Callable[[Path | None], RatedModels | None]


def readers() -> Mapping[str, _Read]:
    """Name of a benchmark to what reads its ratings of models.

    What is returned raises SubmitterError, `data_missing` or `data_malformed`.
    """

    def reading(benchmark: Benchmark) -> _Read:
        return lambda data: rated_models(benchmark.answers(data))

    return MappingProxyType({name: reading(one) for name, one in rating_benchmarks().items()})
