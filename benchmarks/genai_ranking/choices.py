"""Choosing the best image of a group by its score, and what people say of the choice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.arrays import FloatArray

VARIANTS = ("paper", "assay")
"""Among images of equal best score: the first one; or the mean over all of them."""


@dataclass(frozen=True)
class Choices:
    """Sums over the groups of each prompt, shape (P,) each.

    Attributes:
        agreed: groups whose choice is one of the images that people rate best.
        rating: mean ratings of the choices.
        groups: groups in which an image has a score.
    """

    agreed: FloatArray
    rating: FloatArray
    groups: FloatArray


def choose(scores: FloatArray, labels: FloatArray, size: int, variant: str) -> Choices:
    """Choose in groups of consecutive images.

    An image without a score is never chosen, though it may be the one that people rate best.

    Args:
        scores: shape (P, K), higher is better; NaN where the metric gave none.
        labels: shape (P, K), mean ratings.
        size: images of a group; divides K.
        variant: one of `VARIANTS`.
    """
    score = scores.reshape(scores.shape[0], -1, size)
    label = labels.reshape(score.shape)
    scored = np.isfinite(score)
    filled = np.where(scored, score, -np.inf)
    chosen = scored & (filled == filled.max(axis=2, keepdims=True))
    if variant == "paper":
        chosen &= np.cumsum(chosen, axis=2) == 1
    best = label == label.max(axis=2, keepdims=True)
    number = chosen.sum(axis=2)
    share = np.maximum(number, 1)
    return Choices(
        agreed=((chosen & best).sum(axis=2) / share).sum(axis=1),
        rating=(np.where(chosen, label, 0.0).sum(axis=2) / share).sum(axis=1),
        groups=(number > 0).sum(axis=1).astype(np.float64),
    )


def random_choice(labels: FloatArray, size: int) -> dict[str, float]:
    """What a choice at random reaches on average, and what the best one does.

    Args:
        labels: shape (P, K), mean ratings.
        size: images of a group; divides K.

    Returns:
        `top1_agreement` and `rating` of a random choice, `best_rating` of the best one.
    """
    group = labels.reshape(-1, size)
    best = group == group.max(axis=1, keepdims=True)
    return {
        "top1_agreement": float(best.mean()),
        "rating": float(group.mean()),
        "best_rating": float(group.max(axis=1).mean()),
    }
