"""From log-probabilities of answers to one number; pure functions.

Each takes natural logarithms of probabilities over the whole vocabulary, one per token.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike


def geo_mean_with_eos(logprobs: ArrayLike) -> float:
    """Geometric mean of the probabilities of an answer's tokens and of its end token.

    exp(mean log p), which is exp(-loss) of the answer as a label. VQAScore: Lin et al. 2024,
    as its code computes it.

    Args:
        logprobs: of the answer's tokens and, last, the end token; shape (tokens,).

    Returns:
        Within 0..1.
    """
    return float(np.exp(np.mean(_tokens(logprobs))))


def p_first(logprobs: ArrayLike) -> float:
    """Probability of an answer's first token, within 0..1."""
    return float(np.exp(_tokens(logprobs)[0]))


def p_whole(logprobs: ArrayLike) -> float:
    """Probability of all tokens of an answer in turn, within 0..1."""
    return float(np.exp(np.sum(_tokens(logprobs))))


def p_yes_norm(yes: ArrayLike, no: ArrayLike) -> float:
    """p(yes) / (p(yes) + p(no)) of the first tokens: the sigmoid of their logits' difference.

    Returns:
        Within 0..1.
    """
    ahead = float(_tokens(yes)[0] - _tokens(no)[0])
    if ahead >= 0:
        return 1 / (1 + math.exp(-ahead))
    return math.exp(ahead) / (1 + math.exp(ahead))


def p_diff(yes: ArrayLike, no: ArrayLike) -> float:
    """p(yes) - p(no) of the first tokens, over the whole vocabulary.

    CROCScore: Leiter et al., CROC, 2025.

    Returns:
        Within -1..1.
    """
    return p_first(yes) - p_first(no)


def choice_norm(logprobs: Sequence[ArrayLike], right: int) -> float:
    """Share of one choice in the probabilities of all choices, each of all its tokens.

    Gecko: Wiles et al. 2024, with exp(-NLL) for each choice as its text says.

    Args:
        logprobs: of each choice's tokens.
        right: index of the choice that counts.

    Returns:
        Within 0..1.
    """
    totals = np.array([np.sum(_tokens(one)) for one in logprobs])
    shares = np.exp(totals - totals.max())
    return float(shares[right] / shares.sum())


def _tokens(logprobs: ArrayLike) -> np.ndarray:
    values = np.atleast_1d(np.asarray(logprobs, dtype=np.float64))
    if not values.size:
        raise ValueError("an answer has at least one token")
    return values
