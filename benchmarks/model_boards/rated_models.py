"""Benchmarks of metrics on which people rated whole images of several models on the same prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd

from benchmarks.arrays import FloatArray
from benchmarks.evalmuse.answers import EvalMuseAnswers
from benchmarks.genai_bench.answers import GenAiAnswers
from benchmarks.schema import Answers, Benchmark
from benchmarks.tifa160.answers import Tifa160Answers


@dataclass(frozen=True)
class RatedModels:
    """Ratings by prompt and model.

    Attributes:
        models: names, in order of first appearance; M of them.
        prompts: ids, likewise; P of them.
        images: columns `pair_id`, `prompt_id`, `model`; one row for each image.
        people: shape (P, M), mean rating of each prompt's images of each model; NaN without any.
        source: whose ratings these are.
    """

    models: tuple[str, ...]
    prompts: tuple[str, ...]
    images: pd.DataFrame
    people: FloatArray
    source: str

    def arranged(self, scores: Mapping[str, float]) -> FloatArray:
        """Scores by pair id as shape (P, M): the mean over a prompt's images of a model."""
        values = np.array([scores.get(pair, np.nan) for pair in self.images["pair_id"]], np.float64)
        return _arranged(self.images, values, self.prompts, self.models)


def rated_models(answers: Answers) -> RatedModels | None:
    """The ratings in a benchmark's answers; None where nobody rated models on the same prompts."""
    if isinstance(answers, GenAiAnswers):
        return _rated(answers.images, answers.labels, "mean of its ratings")
    if isinstance(answers, Tifa160Answers):
        # The other gold, DSG's, rates the same images anew; models were compared with TIFA's.
        gold = answers.images["human_avg"].to_numpy(np.float64)
        return _rated(answers.images, gold, "mean of TIFA’s ratings")
    if isinstance(answers, EvalMuseAnswers):
        # `img_path` is model and file: SDXL-Turbo/00805.png.
        model, slash, _ = (answers.images["pair_id"].str.rpartition("/")[i] for i in range(3))
        images = answers.images.assign(model=model)[slash == "/"]
        label = images["label"].to_numpy(np.float64)
        return _rated(images, label, "mean of its overall ratings")
    return None


def _rated(images: pd.DataFrame, ratings: FloatArray, source: str) -> RatedModels | None:
    named = images[["pair_id", "prompt_id", "model"]].reset_index(drop=True)
    models = tuple(dict.fromkeys(named["model"]))
    prompts = tuple(dict.fromkeys(named["prompt_id"]))
    if len(models) < 2:
        return None
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


def _benchmarks() -> Mapping[str, Benchmark]:
    # Importing these for whoever only wants the types would load every benchmark.
    from benchmarks.evalmuse.benchmark import BENCHMARKS as EVALMUSE  # noqa: PLC0415
    from benchmarks.genai_bench.benchmark import BENCHMARKS as GENAI  # noqa: PLC0415
    from benchmarks.tifa160.benchmark import BENCHMARKS as TIFA  # noqa: PLC0415

    return {one.name: one for one in (*GENAI, *TIFA, *EVALMUSE)}


_Read = Callable[[Path | None], RatedModels | None]


def readers() -> Mapping[str, _Read]:
    """Name of a benchmark to what reads its ratings of models.

    What is returned raises SubmitterError, `data_missing` or `data_malformed`.
    """

    def reading(benchmark: Benchmark) -> _Read:
        return lambda data: rated_models(benchmark.answers(data))

    return MappingProxyType({name: reading(one) for name, one in _benchmarks().items()})
