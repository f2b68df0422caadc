"""Word level (Gecko, Table 18): a metric's label of each word against that of the raters.

A metric gives word labels as element scores whose `element_id` is the word's index in the prompt,
as in the column `unit_index` of the ratings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.gecko.aligned import Aligned
from benchmarks.gecko.answers import GeckoAnswers
from benchmarks.gecko.parts import Mask, Part
from benchmarks.rows import MeasuredBuilder, Row
from benchmarks.schema import ScoreTable
from benchmarks.statistics.raters import error_consistency

CUTOFF = 0.5
"""A score from here up says that the word is grounded in the image (not stated in the paper)."""


@dataclass(frozen=True)
class Words:
    """Words (k,) on which the raters agree and that a metric labels.

    Attributes:
        image: position of the word's image.
        metric: the metric's label.
        human: the raters' label.
        agreed: shape (n,), number of words of each image on which the raters agree.
    """

    image: IntArray
    metric: Mask
    human: Mask
    agreed: IntArray


def agreed_words(ratings: pd.DataFrame) -> pd.DataFrame:
    """Words that every rater calls aligned, or every rater calls not aligned.

    Args:
        ratings: as `GeckoAnswers.ratings`; only WL rows are used.

    Returns:
        Columns `prompt_id`, `model`, `unit_index`, `grounded` (bool), sorted by the first three.
    """
    rows = ratings[ratings["template"] == "WL"]
    marked = rows.assign(
        grounded=(rows["value"] == "aligned").to_numpy(bool),
        ungrounded=(rows["value"] == "not_aligned").to_numpy(bool),
    )
    units = marked.groupby(["prompt_id", "model", "unit_index"], sort=True)
    of_all = units[["grounded", "ungrounded"]].all().reset_index()
    kept = of_all[of_all["grounded"] | of_all["ungrounded"]]
    return kept.drop(columns="ungrounded").reset_index(drop=True)


def words_of(scores: ScoreTable, metric: str, answers: GeckoAnswers) -> Words:
    """The words of one metric; its element scores must be there."""
    agreed = agreed_words(answers.ratings).merge(
        answers.pairs.assign(image=np.arange(len(answers.pairs))), on=["prompt_id", "model"]
    )
    labels = scores.elements[metric]
    labels = labels[np.isfinite(labels["score"].to_numpy(np.float64))]
    wanted = agreed.assign(element_id=agreed["unit_index"].astype(str))
    both = wanted.merge(labels, on=["pair_id", "element_id"])
    values = both["score"].to_numpy(np.float64)
    upwards = scores.directions.get(metric, 1) > 0
    return Words(
        image=both["image"].to_numpy(np.intp),
        metric=values >= CUTOFF if upwards else values <= CUTOFF,
        human=both["grounded"].to_numpy(bool),
        agreed=np.bincount(agreed["image"].to_numpy(np.intp), minlength=len(answers.pairs)),
    )


def add_words(builder: MeasuredBuilder, row: Row, part: Part, words: Words, data: Aligned) -> None:
    """Accuracy and error consistency over all models (facet `WL`) and each (`WL:<model>`)."""
    _add(builder, replace(row, facet="WL"), part.chosen, words, data)
    for model in sorted(set(data.models[part.chosen])):
        chosen = part.chosen & np.asarray(data.models == model, bool)
        _add(builder, replace(row, facet=f"WL:{model}"), chosen, words, data)


def _add(builder: MeasuredBuilder, row: Row, chosen: Mask, words: Words, data: Aligned) -> None:
    kept = chosen[words.image]
    metric, human, image = words.metric[kept], words.human[kept], words.image[kept]
    agreed = int(words.agreed[chosen].sum())
    coverage = f"{metric.size} of {agreed} words on which the raters agree"
    filled = replace(
        row,
        n_items=metric.size,
        n_clusters=np.unique(data.prompts[image]).size,
        n_missing=np.setdiff1d(np.flatnonzero(chosen & (words.agreed > 0)), image).size,
        note=coverage,
    )
    shares = _resampled_shares(metric, human, data.prompts[image], data.draws)
    accuracy = float((metric == human).mean()) if metric.size else np.nan
    kappa = error_consistency(metric, human)
    why = "" if metric.size else "; no word to compare"
    constant = "; all labels are equal" if metric.size and np.isnan(kappa) else ""
    for name, value, resamples, reason in (
        ("word_accuracy", accuracy, shares[0], why),
        ("error_consistency", kappa, shares[1], why or constant),
    ):
        one = replace(filled, measure=name, value=value, note=coverage + reason)
        members = np.unique(data.prompts[chosen & (words.agreed > 0)])
        builder.add(one, None if np.isnan(value) else resamples[1:], members=members)


def _resampled_shares(
    metric: Mask, human: Mask, prompts: IntArray, draws: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Accuracy and kappa of each resample, shape (B + 1,), from sums per prompt."""
    sums = [
        draws @ np.bincount(prompts, weights=cells.astype(np.float64), minlength=draws.shape[1])
        for cells in (np.ones_like(metric), metric == human, metric, human)
    ]
    with np.errstate(invalid="ignore", divide="ignore"):
        observed, p, q = (part / sums[0] for part in sums[1:])
        expected = p * q + (1.0 - p) * (1.0 - q)
        kappa = np.where(expected < 1.0, (observed - expected) / (1.0 - expected), np.nan)
    return observed, kappa
