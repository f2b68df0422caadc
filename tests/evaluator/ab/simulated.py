"""Scores of two models on simulated prompts, without any image."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.arrays import FloatArray
from benchmarks.statistics.better_or_tied import MARGIN
from evaluator.ab.comparison import Comparison, MetricScores
from evaluator.ab.images import DrawnImages
from evaluator.ab.journal import Compare
from evaluator.generation.prompts import Prompt

SKILLS = ("color", "count", "text")


def drawn(n: int) -> DrawnImages:
    """So many prompts of each skill, with images that nobody looks at."""
    prompts = tuple(
        Prompt(f"{skill}-{k}", f"{skill} {k}", (skill, f"{skill}:{'ab'[k % 2]}"))
        for skill in SKILLS
        for k in range(n)
    )
    return DrawnImages(prompts, {one.prompt_id: (("a",), ("b",)) for one in prompts}, {})


def scores(
    of: DrawnImages, shifts: Mapping[str, float], seed: int, name: str = "m"
) -> MetricScores:
    """The second model is better by `shifts` of a skill; prompts have spread 1, seeds .3."""
    rng = np.random.default_rng((27, seed))
    n = len(of.prompts)
    shift = np.array([shifts.get(one.skills[0], 0.0) for one in of.prompts])
    prompt = rng.normal(size=n)
    values: FloatArray = np.stack(
        [prompt + rng.normal(0, 0.3, n), prompt + shift + rng.normal(0, 0.3, n)], axis=1
    )
    return MetricScores(name, name, True, values)


def candidate(of: DrawnImages, number: int) -> DrawnImages:
    """The same prompts with other images of the second model."""
    digests = {name: (sides[0], (f"b{number}",)) for name, sides in of.digests.items()}
    return DrawnImages(of.prompts, digests, of.places)


def comparing(
    metric: MetricScores, whole: DrawnImages, margin: float = MARGIN, *, sub_skills: bool = False
) -> Compare:
    """Compares by scores that are there for all prompts."""
    rows = {one.prompt_id: values for one, values in zip(whole.prompts, metric.values, strict=True)}

    def compared(of: DrawnImages, only: frozenset[str] | None) -> Comparison:
        values = [rows[one.prompt_id] for one in of.prompts]
        part = MetricScores(metric.name, metric.title, True, np.array(values))
        metrics = (part,) if only is None or metric.name in only else ()
        return Comparison("a", "b", of, metrics, margin, sub_skills)

    return compared
