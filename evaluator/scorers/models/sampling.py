"""Sampling of texts: several different replies of a language model to one prompt, each by its seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is drawn."""

    temperature: float = 0.6
    top_p: float = 0.9  # only the likeliest tokens of this share together
    top_k: int = 50  # only so many of the likeliest tokens; endpoints are not told
    presence_penalty: float = 0.5  # off the logit of each token that the reply has already


@dataclass(frozen=True, slots=True)
class Sampled:
    """A reply, or why there is none."""

    text: str
    cut: bool = False  # whether it was stopped for its length
    refusal: str = ""  # why there is none


class SamplingModel(Protocol):
    """A language model whose reply depends on the prompt and a seed alone."""

    def sample(
        self, prompts: Sequence[str], seeds: Sequence[int], max_new_tokens: int, how: Sampling
    ) -> list[Sampled]:
        """A reply to each prompt, drawn by its seed."""

    def fits(self, prompt: str, max_new_tokens: int) -> bool:
        """Whether a prompt and a reply of that length are within what the model reads."""
