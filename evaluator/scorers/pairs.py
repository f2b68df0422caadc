"""Scores of pairs by a scorer that takes several prompts per image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaluator.scoring.contract import SharesImages, Verdict


def pair_scores(scorer: SharesImages, images: Sequence[Any], prompts: Sequence[str]) -> list[float]:
    """`score` of the contract by way of `score_texts`, each prompt in a list of its own.

    Args:
        scorer: what is asked.
        images: n prepared images.
        prompts: n.

    Returns:
        One score per pair; NaN where a verdict has none.
    """
    found = scorer.score_texts(images, [[prompt] for prompt in prompts])
    return [Verdict.of(of_image[0]).score for of_image in found]
