"""Targets of FGA-BLIP2: a mask and a score for each token of a prompt, and weights of prompts.

Han et al. 2024, EvalMuse-40K, section 4. The authors mark tokens of the raw prompt, while their model
reads the cleaned one; here both are the cleaned one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from benchmarks.arrays import FloatArray
from evaluator.scorers.models.element_spans import ElementFinder

Weighting = Literal["variance", "clipped", "none"]
"""`variance`: exp of the variance, as the paper says; `clipped`: that over its mean, at most 5; `none`:
1, as in the authors' code."""
_LOWEST, _RANGE = 1.0, 4.0
_MOST = 5.0


@dataclass(frozen=True, eq=False)
class TokenTargets:
    """Targets of the places of a prompt as the model reads it, [CLS] first."""

    mask: FloatArray  # 1 at [CLS] and tokens of elements, else 0; shape (places,)
    # at [CLS] the overall rating, at an element's tokens its label, both in 0..1, else 0; shape
    # (places,)
    scores: FloatArray
    unfound: tuple[str, ...] = ()  # elements that the cleaned prompt does not hold
    beyond: tuple[str, ...] = ()  # elements that begin past what is read


def token_targets(
    finder: ElementFinder, prompt: str, rating: float, labels: Mapping[str, float], places: int
) -> TokenTargets:
    """Targets of a prompt with one image.

    An element marks its first occurrence, as far as that is read; where elements overlap, a token has
    the mean of their labels.

    Args:
        finder: cleans and cuts prompts as the model does.
        prompt: as it was written.
        rating: overall, 1..5.
        labels: element, such as `red (color)`, to its label in 0..1.
        places: tokens that are read, [CLS] and [SEP] included.
    """
    whole = replace(finder, max_words=0)
    end = min(places, 2 + len(finder.tokenize(finder.read(prompt)))) - 1  # place of [SEP]
    total, count = np.zeros(places), np.zeros(places)
    unfound, beyond = [], []
    for element, label in labels.items():
        span = whole.find(prompt, element)
        if span.problem:
            unfound.append(element)
        elif 1 + span.start >= end:
            beyond.append(element)
        else:
            read = slice(1 + span.start, min(1 + span.stop, end))
            total[read] += label
            count[read] += 1
    total[0], count[0] = (rating - _LOWEST) / _RANGE, 1
    scores = total / np.maximum(count, 1)
    return TokenTargets((count > 0).astype(float), scores, tuple(unfound), tuple(beyond))


@dataclass(frozen=True)
class PromptWeights:
    """Weights of the losses of prompts."""

    weights: Mapping[str, float]  # by prompt
    alone: int  # prompts with one image, whose variance is not defined and taken as 0


def prompt_weights(
    prompts: Sequence[str], ratings: Sequence[float], weighting: Weighting
) -> PromptWeights:
    """exp(v), v the sample variance (ddof 1) of the mean ratings of a prompt's images.

    `prompts`: the prompt of each image, as an id; `ratings`: its mean rating, 1..5.
    """
    of_prompt: dict[str, list[float]] = {}
    for prompt, rating in zip(prompts, ratings, strict=True):
        of_prompt.setdefault(prompt, []).append(rating)
    alone = sum(len(its) == 1 for its in of_prompt.values())
    if weighting == "none":
        return PromptWeights(dict.fromkeys(of_prompt, 1.0), alone)
    weights = {
        prompt: math.exp(np.var(its, ddof=1)) if len(its) > 1 else 1.0
        for prompt, its in of_prompt.items()
    }
    if weighting == "clipped":
        mean = math.fsum(weights[prompt] for prompt in prompts) / len(prompts)
        weights = {prompt: min(weight / mean, _MOST) for prompt, weight in weights.items()}
    return PromptWeights(weights, alone)
