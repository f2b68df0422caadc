"""Measures of CROC: comparisons of a contrast pair, rescaled accuracy, halves by prompt length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from benchmarks.arrays import FloatArray, IntArray
from benchmarks.croc.load import CrocAnswers, pair_id
from benchmarks.schema import ScoreTable

DIRECTIONS: tuple[str, ...] = ("forward_text", "inverse_text", "forward_image", "inverse_image")
"""Directions: the texts or the images are exchanged, and either side is the matching one."""
IMAGE_BASED = frozenset({"image", "forward_image", "inverse_image"})
"""Facets of rows that compare images of one text."""


@dataclass(frozen=True)
class Contrasts:
    """Outcome of one direction for all prompt pairs and metrics."""

    # shape (P, M), share of right comparisons; NaN where a pair lacks the images
    accuracy: FloatArray
    comparisons: IntArray  # shape (P,), number of comparisons
    missing: IntArray  # shape (P, M), number of score cells used that are missing


def compare(scores: ScoreTable, answers: CrocAnswers) -> dict[str, Contrasts]:
    """Score all comparisons of every direction (spec 1.4)."""
    table = scores.oriented()
    position = {pair: i for i, pair in enumerate(table.index)}
    values = table.to_numpy(np.float64)
    found: dict[str, list[tuple[FloatArray, int, IntArray]]] = {name: [] for name in DIRECTIONS}
    for pair in answers.prompt_pairs:
        block = {
            (images, text): values[[position[pair_id(stem, text)] for stem in stems]]
            for images, stems in (("O", pair.original_images), ("C", pair.contrast_images))
            for text in ("orig", "contrast")
        }
        found["forward_text"].append(_by_text(block["O", "orig"], block["O", "contrast"]))
        found["inverse_text"].append(_by_text(block["C", "contrast"], block["C", "orig"]))
        found["forward_image"].append(_by_image(block["O", "orig"], block["C", "orig"]))
        found["inverse_image"].append(_by_image(block["C", "contrast"], block["O", "contrast"]))
    return {name: _stack(outcomes, values.shape[1]) for name, outcomes in found.items()}


def _by_text(match: FloatArray, contrast: FloatArray) -> tuple[FloatArray, int, IntArray]:
    """Each image with both texts; shapes (n, M)."""
    return _outcome(match > contrast, np.isnan(match).sum(axis=0) + np.isnan(contrast).sum(axis=0))


def _by_image(match: FloatArray, contrast: FloatArray) -> tuple[FloatArray, int, IntArray]:
    """One text with each pair of a matching (n, M) and a contrast image (k, M)."""
    right = (match[:, None, :] > contrast[None, :, :]).reshape(-1, match.shape[1])
    return _outcome(right, np.isnan(match).sum(axis=0) + np.isnan(contrast).sum(axis=0))


def _outcome(right: NDArray[np.bool_], missing: IntArray) -> tuple[FloatArray, int, IntArray]:
    if right.shape[0] == 0:  # left out: its scores count for nothing, so none are missing
        return np.full(right.shape[1], np.nan), 0, np.zeros_like(missing)
    return right.mean(axis=0), right.shape[0], missing


def _stack(outcomes: list[tuple[FloatArray, int, IntArray]], n_metrics: int) -> Contrasts:
    return Contrasts(
        accuracy=np.array([o[0] for o in outcomes], np.float64).reshape(-1, n_metrics),
        comparisons=np.array([o[1] for o in outcomes], np.intp),
        missing=np.array([o[2] for o in outcomes], np.intp).reshape(-1, n_metrics),
    )


LONGEST_SHORT = 280
"""Characters of the longest prompt that counts as short."""
SHORT, LONG = f"up_to_{LONGEST_SHORT}", f"over_{LONGEST_SHORT}"
LENGTHS: tuple[str, str] = (SHORT, LONG)
"""Names of the splits by the length of the original prompt T_O."""


def length_split(prompt: str) -> str:
    """The split of a prompt by its number of characters."""
    return SHORT if len(prompt) <= LONGEST_SHORT else LONG


@overload
def scale(accuracy: float, chance: float) -> float: ...
@overload
def scale(accuracy: FloatArray, chance: float) -> FloatArray: ...
def scale(accuracy: float | FloatArray, chance: float) -> float | FloatArray:
    """Stretch accuracies so that 0 becomes -1, chance becomes 0 and 1 stays 1.

    Either side of chance is linear on its own: with chance 1/2 this is 2a - 1, and with chance 5/6
    the values below chance are spread over the longer side.

    Values in -1..1 of the same shape. CROC prints them with three decimals; nothing is rounded
    here.
    """
    if not 0.0 < chance < 1.0:
        raise ValueError(f"a chance level lies strictly between 0 and 1, not at {chance}")
    above = np.asarray(accuracy, np.float64) - chance
    scaled: FloatArray = np.where(above <= 0.0, above / chance, above / (1.0 - chance))
    return scaled if isinstance(accuracy, np.ndarray) else float(scaled)
