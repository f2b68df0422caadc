"""Shared prefixes of answers: prompts to images, begun in the decoder, as much as is shared."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from transformers import PreTrainedModel

from evaluator.scorers.models.chat_text import Asked, ChatText
from evaluator.scorers.models.fixed_images import SeenImage
from evaluator.scorers.models.prefix_cache import CachingDecoder
from evaluator.scorers.models.prefix_parts import Beginning, Cached, Rest, shared_length

Sharing = Literal["prefix", "vision", "nothing"]
"""What prompts to one image share: the decoder's work on all that comes before they differ, the
vision tower's output, or nothing."""


@dataclass(frozen=True, eq=False)
class Lead:
    """A prompt to an image, begun.

    Attributes:
        image: its index in the call.
        prompt: its index among the image's prompts.
        cached: beginnings that ran, this one's among them.
        row: which of them.
        ids: what of the prompt is still to be read, shape (length,); may be empty.
        positions: of the prompt's last tokens, shape (axes, max(length, 1)); None where positions
            are plain counts.
    """

    image: int
    prompt: int
    cached: Cached
    row: int
    ids: Tensor
    positions: Tensor | None

    @property
    def first_logits(self) -> Tensor:
        """Logits after the beginning, shape (1, vocabulary)."""
        return self.cached.logits[self.row : self.row + 1]

    def rest(self, stem: Sequence[int]) -> Rest:
        """What is still to be read, and an answer's first tokens; logits after each of those."""
        ids = torch.cat([self.ids, self.ids.new_tensor(stem)])
        positions = self.positions
        if positions is not None and len(ids):
            more = torch.arange(1, len(stem) + 1, device=positions.device)
            read = positions[:, positions.shape[1] - len(self.ids) :]
            positions = torch.cat([read, positions[:, -1:] + more], dim=1)
        return Rest(self.row, ids, positions, len(stem) + bool(len(self.ids)))


class Leads:
    """Begins prompts to images.

    Args:
        model: the decoder.
        decoder: runs it in two parts.
        text: makes its inputs.
        sharing: what prompts to one image share.
        images_together: images whose beginnings run as one batch.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        decoder: CachingDecoder,
        text: ChatText,
        sharing: Sharing,
        images_together: int,
    ) -> None:
        self._model = model
        self._base: Any = getattr(model, "model", model)
        self._decoder = decoder
        self._text = text
        self._sharing = sharing
        self._images_together = images_together
        self._switches_at = rope_switch(model)
        self._image_tokens = text.image_tokens | image_tokens(model)

    def groups(
        self, images: Sequence[SeenImage], prompts: Sequence[Sequence[str]]
    ) -> Iterator[list[Lead]]:
        """All prompts, begun; those of one group read the same cache."""
        waiting: list[tuple[int, list[Asked], int]] = []
        for i, seen in enumerate(images):
            asked = [self._text.asked(seen, prompt) for prompt in prompts[i]]
            if not asked:
                continue
            shared = self._shared(asked)
            if not shared:
                yield from self._apart(i, asked)
                continue
            full = len(waiting) == self._images_together
            if waiting and (full or not _stack(waiting[0][1][0], asked[0])):
                yield self._together(waiting)
                waiting = []
            waiting.append((i, asked, shared))
        if waiting:
            yield self._together(waiting)

    def looks_ahead(self, seen: SeenImage, prompt: str) -> bool:
        """Whether what a prompt says changes what is made of the image before it."""
        one = self._text.asked(seen, prompt)
        beginning = self._beginning(one, len(one.ids), self._positions(one), self._pixels(one))
        never = {int(one.ids[-1]), *self._image_tokens}
        other = next(token for token in reversed(one.ids.tolist()) if token not in never)
        return self._decoder.looks_ahead(beginning, other)

    def _shared(self, asked: Sequence[Asked]) -> int:
        """Number of first tokens that run once for all prompts to an image; 0: none may."""
        if self._sharing != "prefix":
            return 0
        if len(asked) == 1:
            return len(asked[0].ids)
        shared = shared_length([one.ids for one in asked])
        marks = self._image_tokens
        holds_image = bool(marks) and not any(
            token in marks for one in asked for token in one.ids[shared:].tolist()
        )
        longest = max(len(one.ids) for one in asked)
        switches = shared <= self._switches_at < longest
        return shared if holds_image and not switches and _same_image(asked) else 0

    def _together(self, waiting: Sequence[tuple[int, list[Asked], int]]) -> list[Lead]:
        """Beginnings of several images as one batch."""
        places = [[self._positions(one) for one in asked] for _, asked, _ in waiting]
        beginnings = [
            self._beginning(asked[0], shared, its[0], self._pixels(asked[0]))
            for (_, asked, shared), its in zip(waiting, places, strict=True)
        ]
        cached = self._decoder.start(beginnings)
        return [
            self._lead((i, j), cached, row, one.ids[shared:], places[row][j])
            for row, (i, asked, shared) in enumerate(waiting)
            for j, one in enumerate(asked)
        ]

    def _apart(self, image: int, asked: Sequence[Asked]) -> Iterator[list[Lead]]:
        """Each prompt in full, for models whose prompts change what is made of the image."""
        vision = self._sharing == "vision" and len(asked) > 1 and _same_image(asked)
        shared = self._with_vision(self._pixels(asked[0])) if vision else None
        for j, one in enumerate(asked):
            pixels = self._pixels(one) if shared is None else shared
            positions = self._positions(one)
            beginning = self._beginning(one, len(one.ids), positions, pixels)
            cached = self._decoder.start([beginning])
            yield [self._lead((image, j), cached, 0, one.ids[:0], positions)]

    def _beginning(
        self, one: Asked, length: int, positions: Tensor | None, pixels: dict[str, Any]
    ) -> Beginning:
        device = self._model.device
        return Beginning(
            one.ids[:length].to(device),
            None if positions is None else positions[:, :length],
            {name: values[:, :length].to(device) for name, values in one.per_token.items()},
            pixels,
        )

    def _lead(
        self, who: tuple[int, int], cached: Cached, row: int, ids: Tensor, positions: Tensor | None
    ) -> Lead:
        last = None if positions is None else positions[:, -max(len(ids), 1) :]
        return Lead(*who, cached, row, ids.to(self._model.device), last)

    def _positions(self, one: Asked) -> Tensor | None:
        found = self._decoder.positions(one.ids, one.per_token, one.pixels)
        return None if found is None else found.to(self._model.device)

    def _pixels(self, one: Asked) -> dict[str, Any]:
        """The image's inputs on the device, in the model's precision."""
        device, dtype = self._model.device, self._model.dtype
        return {
            name: values.to(device, dtype if values.is_floating_point() else None)
            if isinstance(values, Tensor)
            else values
            for name, values in one.pixels.items()
        }

    def _with_vision(self, pixels: dict[str, Any]) -> dict[str, Any]:
        """The vision tower's output in place of the pixels."""
        accepted = inspect.signature(self._base.get_image_features).parameters
        given = {name: value for name, value in pixels.items() if name in accepted}
        with torch.inference_mode():
            features = self._base.get_image_features(**given, return_dict=True)
        left = {name: value for name, value in pixels.items() if name != "pixel_values"}
        return {**left, "mm_encoder_outputs": {"image": features}}


def image_tokens(model: PreTrainedModel) -> set[int]:
    """Tokens that stand for an image, as the configuration names them."""
    config: Any = model.config
    vision = getattr(config, "vision_config", None)
    named = [getattr(config, "image_token_id", None), getattr(vision, "image_token_id", None)]
    return {token for token in named if isinstance(token, int)}


def rope_switch(model: PreTrainedModel) -> int:
    """Length above which LongRoPE turns all positions in another way; 2**31 without it."""
    config: Any = model.config.get_text_config()
    rope = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type") != "longrope":
        return 2**31
    limit = rope.get("original_max_position_embeddings") or getattr(
        config, "original_max_position_embeddings", None
    )
    return int(limit or config.max_position_embeddings)


def _same_image(asked: Sequence[Asked]) -> bool:
    """Whether the image's inputs are free of the prompts; InstructBLIP's hold the prompt as well."""
    return all(
        torch.equal(values, one.pixels[name])
        for one in asked[1:]
        for name, values in asked[0].pixels.items()
        if isinstance(values, Tensor) and not values.is_floating_point()
    )


def _stack(one: Asked, other: Asked) -> bool:
    """Whether the images' inputs can be joined along their first axis."""
    return _shapes(one.pixels) == _shapes(other.pixels)


def _shapes(pixels: dict[str, Any]) -> dict[str, Any]:
    return {
        name: tuple(values.shape[1:]) if isinstance(values, Tensor) else name
        for name, values in pixels.items()
    }
