"""Effect of the prompt on a score: two-way variance components, match effect, right against wrong.

Every one of P prompts is put to every one of J images, each of which has one right prompt: its own
cell. The model is s = mu + a_p + b_j + g_pj, fitted by least squares without the own cells, since
a match would count as interaction. The limits of the verdict are constants, stated before results.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from benchmarks.arrays import BoolArray, FloatArray, IntArray, unit_of

MIN_SIZE = 20
"""Fewest prompts, and fewest images, that figures are given for."""
CHANCE = 0.5
"""Area of a score to which the right prompt is as good as any other."""
BLIND_BELOW = 0.6
"""A score is blind to the prompt where the upper limit of its centred area lies below this."""
Verdict = Literal["uses_the_prompt", "undecided", "blind"]

_LEVEL = 0.95
_ACCURACY = 1e-12
"""Of the fit, as a share of the range of the scores; smaller differences are ties,"""
_STEPS = 16 * float(np.finfo(np.float64).eps)
"""and so are a few steps of the scores themselves, as a share of the largest."""


@dataclass(frozen=True)
class Area:
    """Share of wrong prompts that score below the right one of the same image; ties count half."""

    value: float  # 0..1; NaN where nothing can be compared
    low: float  # lower limit, one-sided, 95 %
    high: float  # upper limit, likewise


@dataclass(frozen=True)
class PromptEffect:
    """What a score owes to the prompt, to the image, and to their match.

    Figures are NaN where fewer than `MIN_SIZE` prompts or images have the scores they need.
    """

    n_prompts: int  # with a score of their own cell
    n_images: int  # likewise
    n_missing: int  # cells without a score, of all P x J
    # of the variance between cells that do not match, the shares of prompts, of images, and of
    # both together with the rest; they add up to 1, and are NaN where all these scores are equal
    prompt_share: float
    image_share: float
    both_share: float
    match: float  # mean of s - mu - a_p - b_j over own cells, in units of the score
    match_se: float  # its standard error, from the means of prompts
    raw: Area  # of the scores as they are
    centred: Area  # after the level of each prompt, a_p, is taken off
    within: Area  # centred, against wrong prompts of a common skill alone

    @property
    def verdict(self) -> Verdict:
        """What the limits of the centred area say."""
        if self.centred.high < BLIND_BELOW:
            return "blind"
        return "uses_the_prompt" if self.centred.low > CHANCE else "undecided"


def prompt_effect(
    scores: ArrayLike, own: ArrayLike, alike: ArrayLike | None = None, rounding: float = 0.0
) -> PromptEffect:
    """Measure the effect of the prompt on a score.

    Components of variance are unbiased, by the moments of the least-squares effects, and truncated
    at 0; in a full table they are (MS_P - MS_PI)/J, (MS_I - MS_PI)/P and MS_PI. Areas are
    U-statistics over prompts, with limits by Student's t from the influence of each prompt, as the
    right one and as a wrong one (Sen 1960).

    `scores` (P, J), larger for a better match, NaN where missing; `own` (J,), right prompt of each
    image, 0..P-1; `alike` (P, P), whether two prompts share a skill, none if not given; `rounding`,
    largest difference that is a tie, in units of the score.
    """
    table, of_image = np.asarray(scores, np.float64), np.asarray(own, np.intp)
    if table.ndim != 2 or of_image.shape != table.shape[1:]:
        raise ValueError(f"scores {table.shape} need one prompt for each image: {of_image.shape}")
    known = ~np.isnan(table)
    is_own = np.arange(len(table))[:, None] == of_image
    wrong = known & ~is_own
    matched = known & is_own & wrong.any(axis=0) & wrong.any(axis=1)[:, None]
    paired, judged = matched.any(axis=1), matched.any(axis=0)
    counts = int(paired.sum()), int(judged.sum()), int((~known).sum())
    # Scores near the ends of the range of doubles have squares beyond it.
    unit = unit_of(table)
    scaled = table / unit
    scaled -= np.median(scaled[known]) if known.any() else 0.0
    fit = _fitted(scaled, wrong) if min(counts[:2]) >= MIN_SIZE else None
    if fit is None:
        no, none = math.nan, Area(math.nan, math.nan, math.nan)
        return PromptEffect(*counts, no, no, no, no, no, none, none, none)
    centred = scaled - fit.prompts[:, None]
    effect = np.where(matched, centred - fit.images, 0.0)
    by_prompt = (effect.sum(axis=1) / np.maximum(matched.sum(axis=1), 1))[paired]
    compared, tie = wrong & judged, rounding / unit
    close = max(tie, _ACCURACY * float(np.ptp(scaled[known])), 2.0 * _STEPS)
    same = np.zeros((len(table),) * 2, bool) if alike is None else np.asarray(alike, bool)
    return PromptEffect(
        *counts,
        *fit.shares,
        unit * float(effect[matched].mean()),
        unit * float(by_prompt.std(ddof=1)) / math.sqrt(len(by_prompt)),
        _area(scaled, of_image, compared, tie),
        _area(centred, of_image, compared, close),
        _area(centred, of_image, compared & same[:, of_image], close),
    )


@dataclass(frozen=True)
class _Fit:
    prompts: FloatArray  # shape (P,), a_p, of mean 0
    images: FloatArray  # shape (J,), mu + b_j
    shares: tuple[float, float, float]  # of the variance: prompts, images, rest


def _fitted(table: FloatArray, fitted: BoolArray) -> _Fit | None:
    """Both effects from the cells that are to be fitted; None where these cannot be told apart."""
    rows, columns = (np.asarray(fitted.any(axis=axis)) for axis in (1, 0))
    cells = fitted[np.ix_(rows, columns)].astype(np.float64)
    values = np.where(cells > 0, table[np.ix_(rows, columns)], 0.0)
    n_prompts, n_images = cells.shape
    n_free = int(cells.sum()) - n_prompts - n_images + 1
    normal = np.block([[np.diag(cells.sum(axis=1)), cells], [cells.T, np.diag(cells.sum(axis=0))]])
    sizes, vectors = np.linalg.eigh(normal)
    told = sizes > _ACCURACY * sizes[-1]
    if n_free < 1 or told.sum() < n_prompts + n_images - 1:
        return None
    inverse = (vectors[:, told] / sizes[told]) @ vectors[:, told].T
    found = inverse @ np.concatenate([values.sum(axis=1), values.sum(axis=0)])
    a, b = found[:n_prompts], found[n_prompts:]
    rest = float((((values - a[:, None] - b) * cells) ** 2).sum()) / n_free
    of_prompts = _component(a, inverse[:n_prompts, :n_prompts], rest)
    of_images = _component(b, inverse[n_prompts:, n_prompts:], rest)
    parts = np.maximum([of_prompts, of_images, rest], 0.0)
    total = float(parts.sum())
    shares = parts / total if total > 0.0 else np.full(3, np.nan)
    prompts, images = np.full(len(rows), np.nan), np.full(len(columns), np.nan)
    prompts[rows], images[columns] = a - a.mean(), b + a.mean()
    return _Fit(prompts, images, (float(shares[0]), float(shares[1]), float(shares[2])))


def _component(effects: FloatArray, inverse: FloatArray, rest: float) -> float:
    """Variance of effects, less what the rest adds to that of their estimates."""
    n = len(effects)
    noise = float(np.trace(inverse) - inverse.sum() / n)
    return (float(((effects - effects.mean()) ** 2).sum()) - rest * noise) / (n - 1)


def _area(values: FloatArray, own: IntArray, compared: BoolArray, tie: float) -> Area:
    """Area over the cells (P, J) that are compared with the own one of their image, with limits."""
    n = int(compared.sum())
    if n == 0:
        return Area(math.nan, math.nan, math.nan)
    ahead = values[own, np.arange(len(own))] - values
    won = np.where(compared, 0.5 + 0.5 * ((ahead > tie).astype(float) - (ahead < -tie)), 0.0)
    value = float(won.sum()) / n
    off = np.where(compared, won - value, 0.0)
    influence = off.sum(axis=1) + np.bincount(own, off.sum(axis=0), len(values))
    taking_part = np.asarray(compared.any(axis=1))
    taking_part[own[compared.any(axis=0)]] = True
    m = int(taking_part.sum())
    error = math.sqrt(m / (m - 1) * float((influence**2).sum())) / n
    reach = float(scipy.special.stdtrit(m - 1, _LEVEL)) * error
    return Area(value, max(0.0, value - reach), min(1.0, value + reach))
