"""Protocol of GenAI-Bench: all images in one pool, against the mean of three ratings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
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
from benchmarks.genai_bench.measures import MEASURES, Pool, facts
from benchmarks.released.bundle import has_released
from benchmarks.rows import Measured, MeasuredBuilder, Row
from benchmarks.schema import Benchmark, Card, Questions, ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan


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

    card = CARD_1600

    @property
    def release(self) -> Release:
        """Its files, in a folder of the benchmark's name."""
        return Release(self.name)

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

    def has_questions(self, data: Path | None) -> bool:
        """Whether prompts and images are there; that each image is, `questions` checks."""
        folder = self.folder(data)
        return folder.has(self.release.ratings) and has_images(folder, self.name, MODELS)

    def prompts(self, data: Path | None) -> pd.DataFrame:
        """The prompts with their tags; see `Benchmark.prompts`."""
        return load_prompts(self.folder(data), self.release)

    def facts(self, answers: GenAiAnswers) -> Mapping[str, pd.DataFrame]:
        """Tables of the ratings alone; see `benchmarks.genai_bench.measures`."""
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
