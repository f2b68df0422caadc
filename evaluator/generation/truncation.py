"""Truncation by text encoders, which leave out the end of a prompt without an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_NO_LIMIT = 10**6
"""Tokenizers without a limit of their own say a number of thirty digits."""


@dataclass(frozen=True)
class Reader:
    """A tokenizer of a pipeline, and how many tokens of a prompt are read, its own marks included."""

    name: str
    tokenizer: Any
    limit: int

    def cuts(self, prompt: str) -> bool:
        """Whether the end of a prompt is left out."""
        tokens = self.tokenizer(prompt, truncation=False, verbose=False)["input_ids"]
        return len(tokens) > self.limit

    def __str__(self) -> str:
        return f"{self.name} ({self.limit} tokens)"


def readers(pipe: Any, arguments: Mapping[str, object]) -> tuple[Reader, ...]:
    """The tokenizers of a pipeline whose limit is known.

    Args:
        pipe: of diffusers.
        arguments: of its call; `max_sequence_length` is the limit of encoders other than CLIP.
    """
    return tuple(_readers(pipe, arguments))


def cut_by(prompt: str, found: tuple[Reader, ...]) -> tuple[str, ...]:
    """Which of the readers leave out the end of a prompt."""
    return tuple(str(reader) for reader in found if reader.cuts(prompt))


def _readers(pipe: Any, arguments: Mapping[str, object]) -> Iterator[Reader]:
    for name, component in pipe.components.items():
        if not name.startswith("tokenizer") or not hasattr(component, "model_max_length"):
            continue
        own = int(component.model_max_length)
        asked = arguments.get("max_sequence_length")
        is_clip = type(component).__name__.startswith("CLIP")
        limit = asked if isinstance(asked, int) and not is_clip else own
        if limit < _NO_LIMIT:
            yield Reader(name, component, limit)
