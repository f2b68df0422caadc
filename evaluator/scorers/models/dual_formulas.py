"""From the cosine of an image's and a text's vector to a score: the formulas in use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Cosines = NDArray[np.float64]
Formula = Literal[
    "cos",
    "cos_clamped",
    "cos_times_100",
    "cos_times_100_clamped",
    "hessel",
    "scaled",
    "logit",
    "sigmoid",
]


@dataclass(frozen=True, slots=True)
class Sharpness:
    """What training fitted between cosine and logit.

    Attributes:
        scale: exp(logit_scale), or 1 / temperature.
        bias: logit_bias; 0 where the model has none.
    """

    scale: float = 1.0
    bias: float = 0.0


def cos(cosines: Cosines, sharpness: Sharpness) -> Cosines:  # noqa: ARG001
    """The cosine, -1..1."""
    return cosines


def cos_clamped(cosines: Cosines, sharpness: Sharpness) -> Cosines:  # noqa: ARG001
    """max(cos, 0), 0..1, for each pair."""
    return np.maximum(cosines, 0)


def cos_times_100(cosines: Cosines, sharpness: Sharpness) -> Cosines:  # noqa: ARG001
    """100 cos, -100..100."""
    return 100 * cosines


def cos_times_100_clamped(cosines: Cosines, sharpness: Sharpness) -> Cosines:  # noqa: ARG001
    """max(100 cos, 0), 0..100, for each pair."""
    return np.maximum(100 * cosines, 0)


def hessel(cosines: Cosines, sharpness: Sharpness) -> Cosines:  # noqa: ARG001
    """2.5 max(cos, 0), 0..2.5, for each pair (Hessel et al. 2021, equation 1)."""
    return 2.5 * np.maximum(cosines, 0)


def scaled(cosines: Cosines, sharpness: Sharpness) -> Cosines:
    """exp(logit_scale) cos, unbounded in principle."""
    return sharpness.scale * cosines


def logit(cosines: Cosines, sharpness: Sharpness) -> Cosines:
    """exp(logit_scale) cos + logit_bias."""
    return sharpness.scale * cosines + sharpness.bias


def sigmoid(cosines: Cosines, sharpness: Sharpness) -> Cosines:
    """1 / (1 + exp(-logit)), 0..1 (Zhai et al. 2023, section 3)."""
    # exp of what is never positive cannot overflow.
    raw = logit(cosines, sharpness)
    small = np.exp(-np.abs(raw))
    return np.asarray(np.where(raw >= 0, 1, small) / (1 + small), np.float64)


FORMULAS: Mapping[Formula, Callable[[Cosines, Sharpness], Cosines]] = {
    "cos": cos,
    "cos_clamped": cos_clamped,
    "cos_times_100": cos_times_100,
    "cos_times_100_clamped": cos_times_100_clamped,
    "hessel": hessel,
    "scaled": scaled,
    "logit": logit,
    "sigmoid": sigmoid,
}


def unit_vectors(features: Tensor) -> NDArray[np.float32]:
    """Each row divided by its length.

    No epsilon: the features of a model whose weights are small can be of length 1e-10, and stay
    directions. A row of zeros has none and becomes NaN.

    Args:
        features: shape (n, d), in any precision.

    Returns:
        Shape (n, d), float32.
    """
    wide = features.detach().double()
    found: NDArray[np.float32] = (
        (wide / wide.norm(dim=-1, keepdim=True)).to(torch.float32).cpu().numpy()
    )
    return found


def row_cosines(first: NDArray[np.float32], second: NDArray[np.float32]) -> Cosines:
    """Cosines of unit vectors, row by row.

    Not a matrix product, whose last digits would depend on its shape.

    Args:
        first: shape (k, d).
        second: shape (k, d).

    Returns:
        Shape (k,).
    """
    product = first.astype(np.float64) * second.astype(np.float64)
    return np.asarray(product.sum(axis=-1), np.float64)
