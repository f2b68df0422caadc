"""Vectors of prompts, by which they are clustered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.errors import SubmitterError
from evaluator.scoring.progress import Listener, Tracker

_AT_A_TIME = 64


def embedded(
    texts: Sequence[str],
    encode: Callable[[Sequence[str]], NDArray[np.floating[Any]]],
    listener: Listener | None = None,
) -> NDArray[np.float32]:
    """Vectors of texts, shape (len(texts), width); an empty text has zeros.

    `encode` gives the vectors of some texts, shape (n, width). A text that stands several times is
    encoded once.
    """
    different = [text for text in dict.fromkeys(texts) if text]
    if not different:
        raise SubmitterError("no_prompts", "There is no prompt to embed.", "Name another table.")
    tracker, found = Tracker(len(different), listener, stage="embedding"), []
    for start in range(0, len(different), _AT_A_TIME):
        found.append(encode(different[start : start + _AT_A_TIME]))
        tracker.advance(len(found[-1]))
    vectors = np.concatenate(found)
    places = {text: place for place, text in enumerate(different)}
    made = np.zeros((len(texts), vectors.shape[1]), np.float32)
    for row, text in enumerate(texts):
        if text:
            made[row] = vectors[places[text]]
    return made
