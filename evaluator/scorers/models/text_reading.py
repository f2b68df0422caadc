"""Tokenization of prompts: prefix, longest length, padding, and truncation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from open_clip.tokenizer import basic_clean  # type: ignore[import-untyped]
from torch import Tensor

Padding = Literal["longest", "max_length", "none"]
Truncation = Literal["end_kept", "sliced"]


class Tokens(Protocol):
    """A tokenizer."""

    pad: int
    """Number that fills up rows."""

    def whole(self, texts: Sequence[str]) -> list[list[int]]:
        """All numbers of each text, with those of its start and end."""

    def cut(self, texts: Sequence[str], length: int) -> list[list[int]]:
        """The same, at most `length`, the end's number kept."""


@dataclass(frozen=True, slots=True)
class TextReading:
    """How prompts are read.

    Attributes:
        tokens: the model's tokenizer.
        length: most numbers the model reads, those of start and end included.
        prefix: put before every prompt.
        padding: `longest` fills rows up to the longest beside them, for models that see no
            padding; `max_length` up to `length`; `none` gives each text its own length.
        truncation: `end_kept` cuts before the number of the end; `sliced` cuts it off as well.
        cleaned: whether texts are mended as by CLIP's own tokenizer: broken or curled characters
            made plain, HTML's `&amp;` and the like resolved. That of `transformers` does not.
    """

    tokens: Tokens
    length: int
    prefix: str = ""
    padding: Padding = "longest"
    truncation: Truncation = "end_kept"
    cleaned: bool = False

    def numbers(self, prompts: Sequence[str]) -> list[list[int]]:
        """Token numbers of each prompt, cut, not padded."""
        texts = self._texts(prompts)
        if self.truncation == "sliced":
            return [ids[: self.length] for ids in self.tokens.whole(texts)]
        return self.tokens.cut(texts, self.length)

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Whether the end of each prompt is cut."""
        texts = self._texts(prompts)
        return [len(ids) > self.length for ids in self.tokens.whole(texts)]

    def encode(
        self, prompts: Sequence[str], rows: int, encode: Callable[[Tensor, Tensor], Tensor]
    ) -> Tensor:
        """Run a text tower over prompts, texts of like length together.

        Args:
            prompts: m texts.
            rows: most texts of one call.
            encode: features (n, d) of token numbers (n, t) and their mask (n, t), 1 where a
                number is not padding.

        Returns:
            Features, shape (m, d).
        """
        numbers = self.numbers(prompts)
        found: dict[int, Tensor] = {}
        for places in self._batches(numbers, rows):
            ids, mask = self._padded([numbers[place] for place in places])
            found.update(zip(places, encode(ids, mask), strict=True))
        return torch.stack([found[place] for place in range(len(prompts))])

    def _texts(self, prompts: Sequence[str]) -> list[str]:
        texts = [self.prefix + prompt for prompt in prompts]
        return [basic_clean(text) for text in texts] if self.cleaned else texts

    def _batches(self, numbers: Sequence[list[int]], rows: int) -> Iterator[list[int]]:
        order = sorted(range(len(numbers)), key=lambda place: len(numbers[place]))
        batch: list[int] = []
        for place in order:
            other = batch and self.padding == "none"
            if len(batch) == rows or (other and len(numbers[batch[0]]) != len(numbers[place])):
                yield batch
                batch = []
            batch.append(place)
        if batch:
            yield batch

    def _padded(self, rows: Sequence[list[int]]) -> tuple[Tensor, Tensor]:
        width = self.length if self.padding == "max_length" else max(map(len, rows))
        ids = torch.full((len(rows), width), self.tokens.pad)
        mask = torch.zeros_like(ids)
        for place, row in enumerate(rows):
            ids[place, : len(row)] = torch.tensor(row)
            mask[place, : len(row)] = 1
        return ids, mask
