"""Mean scores of a model over prompts, by seed, over seeds, and by skill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.rows import MeasuredBuilder, Row
from benchmarks.schema import ScoreTable
from benchmarks.statistics.resampling import ResamplingPlan, mean_of_defined, resampled_mean


def by_seed(scores: pd.Series, prompts: Sequence[str]) -> tuple[tuple[int, ...], FloatArray]:
    """Scores of one metric for one model, arranged.

    `scores`: index pair ids of `prompt_set.pair_id`; those of perturbed images are passed over;
    `prompts`: ids of the set, in its order.
    Returns: The seeds, ascending, and an array of shape (seeds, prompts); NaN where there is no
    score.
    """
    pairs = scores.index.astype(str)
    plain = ~pairs.str.endswith("+")
    parts = pairs[plain].str.rsplit("/", n=1)
    ids, seeds = parts.str[0], parts.str[1].astype("uint64")
    distinct = np.unique(seeds)
    found = np.full((len(distinct), len(prompts)), np.nan)
    columns = pd.Index(prompts).get_indexer(ids)
    known = columns >= 0
    rows = np.searchsorted(distinct, seeds)
    found[rows[known], columns[known]] = scores.to_numpy(np.float64)[plain][known]
    return tuple(int(seed) for seed in distinct), found


def over_seeds(images: FloatArray) -> FloatArray:
    """Mean of each prompt over its images; NaN where none has a score.

    Two models with the same scores of a prompt have the same mean, whichever seed gave which; and
    where all scores are one number the mean is that number, however many there are. Summed as they
    come, rounding would break such ties, and tests would count what is left as differences.

    `images` (S, P), as `by_seed` gives them.
    Returns: shape (P,).
    """
    if not len(images):
        return np.full(images.shape[1], np.nan)
    ordered = np.sort(images, axis=0)  # NaN comes last
    n = np.isfinite(ordered).sum(axis=0)
    highest = np.take_along_axis(ordered, np.maximum(n - 1, 0)[None], axis=0)[0]
    found: FloatArray = np.where(
        ordered[0] == highest, ordered[0], mean_of_defined(ordered, axis=0)
    )
    return found


def add_means(
    builder: MeasuredBuilder,
    blank: Row,
    scores: ScoreTable,
    skills: Mapping[str, Sequence[str]],
    plan: ResamplingPlan,
) -> None:
    """Rows of the mean score over all prompts and over those of each skill, for every metric.

    A prompt's value is the mean over its images that have a score; of a metric for which lower is
    better, the negated one.

    `scores`: of one model, with pair ids of `prompt_set.pair_id`; `skills`: of each prompt of the
    set, in its order.
    """
    ids = list(skills)
    slices: list[tuple[str | None, IntArray]] = [(None, np.arange(len(ids)))]
    for named in dict.fromkeys(skill for own in skills.values() for skill in own):
        tested = [place for place, own in enumerate(skills.values()) if named in own]
        slices.append((named, np.array(tested, np.intp)))
    for metric in scores.metrics:
        sign = scores.directions.get(metric, 1)
        seeds, images = by_seed(sign * scores.overall[metric], ids)
        values = mean_of_defined(images, axis=0) if seeds else np.full(len(ids), np.nan)
        for skill, places in slices:
            row = replace(blank, metric=metric, facet=metric, skill=skill)
            _add_mean(builder, row, values[places], images[:, places], (ids, places, plan))


def _add_mean(
    builder: MeasuredBuilder,
    row: Row,
    values: FloatArray,
    images: FloatArray,
    at: tuple[Sequence[str], IntArray, ResamplingPlan],
) -> None:
    ids, places, plan = at
    there = np.isfinite(values)
    builder.add(
        replace(
            row,
            value=float(mean_of_defined(values)),
            n_items=int(np.isfinite(images).sum()),
            n_clusters=int(there.sum()),
            n_missing=int(np.isnan(images).sum()),
            note="" if there.any() else "no image of these prompts has a score",
        ),
        resampled_mean(values, plan.counts[:, places]),
        [ids[place] for place in places[there]],
        values[there],
        members=places,
    )
