"""The Gecko protocol: agreement with four kinds of human annotation, skill by skill.

Point-wise: correlation over the images of one model, then averaged over the models (Gecko,
appendix F.1 of the later version). Pair-wise: the side-by-side preference between two models.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.errors import SubmitterError
from benchmarks.gecko.aggregate import ABSOLUTE_TEMPLATES, preferences, template_scores
from benchmarks.gecko.answers import GeckoAnswers
from benchmarks.rows import Measured, MeasuredBuilder, Row
from benchmarks.schema import MeasureInfo, ScoreTable
from benchmarks.statistics.correlation import resampled_pearson, resampled_spearman
from benchmarks.statistics.resampling import ResamplingPlan

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Mask = NDArray[np.bool_]

MIN_IMAGES = 3
"""Fewer images of a model than this make no correlation; that model is left out."""

MEASURES: dict[str, MeasureInfo] = {
    "spearman": MeasureInfo(
        title="Spearman ρ",
        meaning="Rank correlation between the metric and the human score of one annotation "
        "template over the images of one model, averaged over the models. The summary without a "
        "template is the mean of the three templates that rate single images.",
        low=-1.0,
        high=1.0,
        chance=0.0,
        source="Gecko, point-wise evaluation; appendix F.1 of the later version",
    ),
    "pearson": MeasureInfo(
        title="Pearson r",
        meaning="Linear correlation between the metric and the human score of one annotation "
        "template over the images of one model, averaged over the models.",
        low=-1.0,
        high=1.0,
        chance=0.0,
        source="Gecko, point-wise evaluation; appendix F.1 of the later version",
    ),
    "pairwise_accuracy": MeasureInfo(
        title="Pairwise accuracy",
        meaning="Share of side-by-side comparisons of two models on one prompt in which the "
        "metric strictly prefers the image that most raters prefer. A tie or a missing score is "
        "wrong; comparisons on which the raters are unsure or tied are left out.",
        low=0.0,
        high=1.0,
        chance=0.5,
        source="Gecko, pair-wise evaluation",
    ),
}

FACETS: dict[str, str] = {
    "WL": "Word level",
    "Likert": "Likert",
    "DSGH": "DSG answered by people",
    "SxS": "Side by side",
}

_POINTWISE = {"spearman": resampled_spearman, "pearson": resampled_pearson}


@dataclass(frozen=True)
class _Data:
    """Everything the measures read, aligned with the n images of the benchmark.

    Attributes:
        metrics: names of the M metrics.
        scores: shape (n, M), higher is better.
        prompts: shape (n,), index of each image's prompt in the plan.
        models: shape (n,), model of each image.
        human: template to shape (n,), score or NaN.
        comparisons: `preferences` as positions of images.
        draws: shape (B + 1, C); row 0 draws each prompt once and so gives the estimate, the
            others are the plan's resamples.
    """

    metrics: tuple[str, ...]
    scores: FloatArray
    prompts: IntArray
    models: NDArray[np.object_]
    human: dict[str, FloatArray]
    comparisons: _Comparisons
    draws: FloatArray


@dataclass(frozen=True)
class _Comparisons:
    """Side-by-side comparisons with a preferred image: positions (k,) of both images."""

    winner: IntArray
    loser: IntArray


@dataclass(frozen=True)
class _Slice:
    """A skill, sub-skill or everything: `chosen` (n,) marks its images."""

    skill: str | None
    chosen: Mask

    @property
    def is_sub_skill(self) -> bool:
        return self.skill is not None and ":" in self.skill


@dataclass(frozen=True)
class _Estimate:
    """One measure on one slice for all metrics.

    Attributes:
        values: shape (B + 1, M), estimate and resamples.
        used: shape (n, M), images behind the value.
        missing: shape (n, M), images that would be used if they had a score.
        notes: one per metric.
    """

    values: FloatArray
    used: Mask
    missing: Mask
    notes: tuple[str, ...]


def measure(
    scores: ScoreTable,
    answers: GeckoAnswers,
    plan: ResamplingPlan,
    benchmark: str,
    revision: str,
) -> Measured:
    """All Gecko measures of every metric in the table.

    Rows, for all prompts, each skill and each sub-skill (`skill:sub_skill`): `spearman` and
    `pearson` per template that was rated, `pairwise_accuracy` for SxS (variant `paper`). For all
    prompts and each skill: `spearman` without facet (variant `assay`), the mean over templates.

    Args:
        scores: must hold every pair id of the answers.
        answers: prompts with their skills, images, raw ratings.
        plan: resamples the prompts.
        benchmark: name for the rows.
        revision: revision for the rows.

    Raises:
        KeyError: an image has no row in `scores`, a comparison no image, or a prompt is not in
            the plan.
        SubmitterError: `unknown_rating` or `rating_without_image`.
    """
    data = _prepare(scores, answers, plan)
    builder = MeasuredBuilder(plan.n_resamples)
    row = Row(benchmark, revision, metric="", measure="", value=math.nan, variant="paper")
    for part in _slices(answers):
        of_slice = replace(row, skill=part.skill)
        pointwise = {template: _pointwise(data, part, template) for template in data.human}
        for template, estimates in pointwise.items():
            for name, estimate in estimates.items():
                _add(builder, replace(of_slice, measure=name, facet=template), estimate, data)
        if data.comparisons.winner.size:
            accuracy = replace(of_slice, measure="pairwise_accuracy", facet="SxS")
            _add_pairwise(builder, accuracy, part, data)
        if pointwise and not part.is_sub_skill:
            summary = _mean_of_templates({t: found["spearman"] for t, found in pointwise.items()})
            _add(builder, replace(of_slice, measure="spearman", variant="assay"), summary, data)
    return builder.build()


def _prepare(scores: ScoreTable, answers: GeckoAnswers, plan: ResamplingPlan) -> _Data:
    pairs = answers.pairs
    scored = template_scores(answers.ratings)
    _check_images_exist(scored, pairs)
    rated = scored.set_index(["template", "prompt_id", "model"])["score"]
    human = {
        template: rated.loc[template].reindex(_keys(pairs)).to_numpy(np.float64)
        for template in ABSOLUTE_TEMPLATES
        if template in rated.index.get_level_values("template")
    }
    return _Data(
        metrics=scores.metrics,
        scores=scores.oriented().loc[pairs["pair_id"]].to_numpy(np.float64),
        prompts=np.array([plan.index[prompt] for prompt in pairs["prompt_id"]], np.intp),
        models=pairs["model"].to_numpy(object),
        human=human,
        comparisons=_decided(preferences(answers.ratings), pairs),
        draws=np.vstack([np.ones((1, len(plan.clusters))), plan.counts]),
    )


def _check_images_exist(rated: pd.DataFrame, pairs: pd.DataFrame) -> None:
    unknown = _keys(rated).difference(_keys(pairs))
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


def _decided(voted: pd.DataFrame, pairs: pd.DataFrame) -> _Comparisons:
    """Comparisons on which the raters agree, as positions of the two images."""
    position = {key: i for i, key in enumerate(_keys(pairs))}
    decided = voted[voted["preference"] != 0]
    first = [position[key] for key in zip(decided["prompt_id"], decided["model"], strict=True)]
    second = [position[key] for key in zip(decided["prompt_id"], decided["model_b"], strict=True)]
    prefers_first = decided["preference"].to_numpy() > 0
    a, b = np.array(first, np.intp), np.array(second, np.intp)
    return _Comparisons(np.where(prefers_first, a, b), np.where(prefers_first, b, a))


def _slices(answers: GeckoAnswers) -> Iterator[_Slice]:
    """All prompts, then each skill, then each sub-skill, sorted by name."""
    prompts = answers.prompts.set_index("prompt_id").loc[answers.pairs["prompt_id"]]
    skills = prompts["skill"].astype(str).to_numpy(object)
    sub_skills = skills + ":" + prompts["sub_skill"].astype(str).to_numpy(object)
    yield _Slice(None, np.ones(skills.size, bool))
    for labels in (skills, sub_skills):
        for label in sorted(set(labels)):
            yield _Slice(label, np.asarray(labels == label, bool))


def _pointwise(data: _Data, part: _Slice, template: str) -> dict[str, _Estimate]:
    """Correlations per model, averaged over the models for which they are defined."""
    rated = part.chosen & np.isfinite(data.human[template])
    used = np.zeros(data.scores.shape, bool)
    per_model: dict[str, list[FloatArray]] = {name: [] for name in _POINTWISE}
    left_out: list[list[str]] = [[] for _ in data.metrics]
    for model in sorted(set(data.models[part.chosen])):
        images = np.flatnonzero(rated & (data.models == model))
        found = _correlations(data, images, data.human[template][images])
        for name, values in found.items():
            per_model[name].append(values)
        scored = np.isfinite(data.scores[images])
        defined = np.isfinite(found["spearman"][0])
        used[images] = scored & defined
        for metric in np.flatnonzero(~defined):
            few = scored[:, metric].sum() < MIN_IMAGES
            left_out[metric].append(f"{model} ({_reason(few=bool(few))})")
    missing = rated[:, None] & np.isnan(data.scores)
    notes = tuple(_note(out, int(m)) for out, m in zip(left_out, missing.sum(axis=0), strict=True))
    return {
        name: _Estimate(_mean_of_defined(np.stack(values)), used, missing, notes)
        for name, values in per_model.items()
    }


def _reason(*, few: bool) -> str:
    return f"fewer than {MIN_IMAGES} images" if few else "all scores or all ratings are equal"


def _note(left_out: list[str], n_missing: int) -> str:
    notes = []
    if left_out:
        notes.append(f"models left out: {', '.join(left_out)}")
    if n_missing:
        notes.append(f"images left out for want of a score: {n_missing}")
    return "; ".join(notes)


def _correlations(data: _Data, images: IntArray, human: FloatArray) -> dict[str, FloatArray]:
    """Each measure over some images: shape (B + 1, M); NaN where it is undefined."""
    scores, prompts = data.scores[images], data.prompts[images]
    found = {name: np.full((len(data.draws), len(data.metrics)), np.nan) for name in _POINTWISE}
    for scored, columns in _same_missing(np.isfinite(scores)):
        if scored.sum() < MIN_IMAGES:
            continue
        x, y = scores[np.ix_(scored, columns)], human[scored]
        for name, correlate in _POINTWISE.items():
            found[name][:, columns] = correlate(x, y, data.draws, prompts[scored])
    return found


def _same_missing(finite: Mask) -> Iterator[tuple[Mask, IntArray]]:
    """Metrics that scored the same images, so that they share one computation."""
    patterns, group = np.unique(finite, axis=1, return_inverse=True)
    for i, scored in enumerate(patterns.T):
        yield scored, np.flatnonzero(group.ravel() == i)


def _mean_of_defined(values: FloatArray) -> FloatArray:
    """Mean over the first axis without NaN; NaN where nothing is defined."""
    defined = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        mean: FloatArray = np.where(defined, values, 0.0).sum(axis=0) / defined.sum(axis=0)
    return mean


def _mean_of_templates(estimates: dict[str, _Estimate]) -> _Estimate:
    """Mean over the rated templates; undefined where one of them is."""
    found = list(estimates.values())
    unrated = [template for template in ABSOLUTE_TEMPLATES if template not in estimates]
    notes = [f"no ratings for {', '.join(unrated)}"] * bool(unrated)
    per_metric = []
    for metric in range(found[0].values.shape[1]):
        undefined = [t for t, e in estimates.items() if not np.isfinite(e.values[0, metric])]
        of_metric = [f"undefined for {', '.join(undefined)}"] * bool(undefined)
        partial = [f"{t}: {e.notes[metric]}" for t, e in estimates.items() if e.notes[metric]]
        per_metric.append("; ".join([*notes, *of_metric, *partial]))
    return _Estimate(
        values=np.mean([e.values for e in found], axis=0),
        used=np.any([e.used for e in found], axis=0),
        missing=np.any([e.missing for e in found], axis=0),
        notes=tuple(per_metric),
    )


def _add(builder: MeasuredBuilder, row: Row, estimate: _Estimate, data: _Data) -> None:
    for column, metric in enumerate(data.metrics):
        used = estimate.used[:, column]
        value = float(estimate.values[0, column])
        filled = replace(
            row,
            metric=metric,
            value=value,
            n_items=int(used.sum()),
            n_clusters=np.unique(data.prompts[used]).size,
            n_missing=int(estimate.missing[:, column].sum()),
            note=estimate.notes[column],
        )
        builder.add(filled, None if math.isnan(value) else estimate.values[1:, column])


def _add_pairwise(builder: MeasuredBuilder, row: Row, part: _Slice, data: _Data) -> None:
    """Accuracy over the slice's decided comparisons: a ratio of sums over prompts."""
    chosen = part.chosen[data.comparisons.winner]
    winner, loser = data.comparisons.winner[chosen], data.comparisons.loser[chosen]
    if winner.size == 0:
        for metric in data.metrics:
            builder.add(replace(row, metric=metric, note="no comparison with a preference"))
        return
    # A comparison with NaN is False: a missing score makes the comparison wrong.
    right = data.scores[winner] > data.scores[loser]
    n_prompts = data.draws.shape[1]
    correct = np.zeros((n_prompts, right.shape[1]))
    np.add.at(correct, data.prompts[winner], right.astype(np.float64))
    sizes = np.bincount(data.prompts[winner], minlength=n_prompts).astype(np.float64)
    with np.errstate(invalid="ignore"):
        values = (data.draws @ correct) / (data.draws @ sizes)[:, None]
    unscored = np.isnan(data.scores[np.union1d(winner, loser)]).sum(axis=0)
    for column, metric in enumerate(data.metrics):
        n_missing = int(unscored[column])
        note = f"images without a score, whose comparisons are wrong: {n_missing}"
        filled = replace(
            row,
            metric=metric,
            value=float(values[0, column]),
            n_items=winner.size,
            n_clusters=int((sizes > 0).sum()),
            n_missing=n_missing,
            note=note if n_missing else "",
        )
        builder.add(filled, values[1:, column])
