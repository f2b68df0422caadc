"""Point-wise agreement: correlation over the images of one model, averaged over the models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.gecko.aggregate import ABSOLUTE_TEMPLATES
from benchmarks.gecko.aligned import Aligned, same_missing
from benchmarks.gecko.parts import Mask, Part
from benchmarks.pooled import MIN_IMAGES, missing_scores
from benchmarks.rows import notes
from benchmarks.statistics.correlation import resampled_pearson, resampled_spearman
from benchmarks.statistics.resampling import mean_of_defined

LEVEL = 0.05
"""The paper marks correlations whose p-value is larger; the note names their models."""

_CORRELATIONS = {"srcc": resampled_spearman, "pearson": resampled_pearson}


@dataclass(frozen=True)
class Estimate:
    """One measure on one part for all metrics.

    Attributes:
        values: shape (B + 1, M), estimate and resamples.
        rated: shape (n,), images of the part that were rated.
        used: shape (n, M), images behind the value.
        missing: shape (n, M), images that would be used if they had a score.
        gaps: one per metric: what was left out.
        insignificant: one per metric: models whose correlation has p > LEVEL.
    """

    values: FloatArray
    rated: Mask
    used: Mask
    missing: Mask
    gaps: tuple[str, ...]
    insignificant: tuple[tuple[str, ...], ...]

    def note(self, metric: int) -> str:
        """All that a reader must know about the value of a metric."""
        weak = self.insignificant[metric]
        return notes(self.gaps[metric], f"p > {LEVEL} for {', '.join(weak)}" if weak else "")


def pointwise(data: Aligned, part: Part, template: str) -> dict[str, Estimate]:
    """Spearman and Pearson per model, averaged over the models for which they are defined.

    A model with fewer than `MIN_IMAGES` images that have a score is left out.

    The p-value is that of each model's own correlation (Student's t with n - 2 degrees of
    freedom, as scipy computes it for both coefficients).
    """
    rated = part.chosen & np.isfinite(data.human[template])
    used = np.zeros(data.scores.shape, bool)
    per_model: dict[str, list[FloatArray]] = {name: [] for name in _CORRELATIONS}
    weak: dict[str, list[list[str]]] = {n: [[] for _ in data.metrics] for n in _CORRELATIONS}
    left_out: list[list[str]] = [[] for _ in data.metrics]
    for model in sorted(set(data.models[part.chosen])):
        images = np.flatnonzero(rated & (data.models == model))
        found = _correlations(data, images, data.human[template][images])
        scored = np.isfinite(data.scores[images])
        for name, values in found.items():
            per_model[name].append(values)
            for metric in np.flatnonzero(p_values(values[0], scored.sum(axis=0)) > LEVEL):
                weak[name][metric].append(model)
        defined = np.isfinite(found["srcc"][0])
        used[images] = scored & defined
        for metric in np.flatnonzero(~defined):
            few = scored[:, metric].sum() < MIN_IMAGES
            left_out[metric].append(f"{model} ({_reason(few=bool(few))})")
    missing = rated[:, None] & np.isnan(data.scores)
    gaps = tuple(_gaps(out, int(m)) for out, m in zip(left_out, missing.sum(axis=0), strict=True))
    return {
        name: Estimate(
            mean_of_defined(np.stack(values)),
            rated,
            used,
            missing,
            gaps,
            tuple(map(tuple, weak[name])),
        )
        for name, values in per_model.items()
    }


def mean_of_templates(estimates: dict[str, Estimate]) -> Estimate:
    """Mean over the rated templates; undefined where one of them is."""
    found = list(estimates.values())
    unrated = [template for template in ABSOLUTE_TEMPLATES if template not in estimates]
    absent = f"no ratings for {', '.join(unrated)}" if unrated else ""
    gaps = []
    for metric in range(found[0].values.shape[1]):
        undefined = [t for t, e in estimates.items() if not np.isfinite(e.values[0, metric])]
        of_metric = f"undefined for {', '.join(undefined)}" if undefined else ""
        partial = [f"{t}: {e.gaps[metric]}" for t, e in estimates.items() if e.gaps[metric]]
        gaps.append(notes(absent, of_metric, *partial))
    return Estimate(
        values=np.mean([e.values for e in found], axis=0),
        rated=np.any([e.rated for e in found], axis=0),
        used=np.any([e.used for e in found], axis=0),
        missing=np.any([e.missing for e in found], axis=0),
        gaps=tuple(gaps),
        insignificant=((),) * len(gaps),
    )


def p_values(r: FloatArray, n: NDArray[np.int_]) -> FloatArray:
    """Two-sided p of correlations r (any shape) over n values each; NaN where undefined."""
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.abs(r) * np.sqrt((n - 2) / (1.0 - r**2))
        p: FloatArray = 2.0 * stats.t.sf(t, n - 2)
    return np.where(np.isfinite(r) & (n > 2), p, np.nan)


def _correlations(data: Aligned, images: IntArray, human: FloatArray) -> dict[str, FloatArray]:
    """Each measure over some images: shape (B + 1, M); NaN where it is undefined."""
    scores, prompts = data.scores[images], data.prompts[images]
    shape = (len(data.draws), len(data.metrics))
    found = {name: np.full(shape, np.nan) for name in _CORRELATIONS}
    for scored, columns in same_missing(np.isfinite(scores)):
        if scored.sum() < MIN_IMAGES:
            continue
        x, y = scores[np.ix_(scored, columns)], human[scored]
        for name, correlate in _CORRELATIONS.items():
            found[name][:, columns] = correlate(x, y, data.draws, prompts[scored])
    return found


def _reason(*, few: bool) -> str:
    return f"fewer than {MIN_IMAGES} images" if few else "all scores or all ratings are equal"


def _gaps(left_out: Sequence[str], n_missing: int) -> str:
    return notes(
        f"models left out: {', '.join(left_out)}" if left_out else "",
        missing_scores(n_missing),
    )
