"""Shared prefixes of prompts to an image: a decoder's work on them is done once."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor
from transformers import Cache, PreTrainedModel
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from evaluator.scorers.models.vlm_inputs import ChatText, ImagePrompt, SeenImage


@dataclass(frozen=True)
class Beginning:
    """The first tokens of a sequence, with the image."""

    ids: Tensor  # token ids, shape (length,)
    # as the model counts them, shape (axes, length); None: one axis, from its own first position on
    positions: Tensor | None = None
    # other inputs with one value per token, each of shape (1, length)
    per_token: Mapping[str, Tensor] = field(default_factory=dict)
    pixels: Mapping[str, Any] = field(default_factory=dict)  # inputs that hold the image


@dataclass(frozen=True)
class Rest:
    """Tokens that follow a beginning."""

    beginning: int  # its index
    ids: Tensor  # token ids, shape (length,), length at least 1
    # shape (axes, length), where the model counts on several axes; else None
    positions: Tensor | None
    keep: int  # of how many last tokens the logits are wanted


@dataclass
class Cached:
    """Beginnings that went through the decoder."""

    cache: Cache  # keys and values, one row per beginning; never changed once made
    mask: Tensor  # 1 for tokens, 0 for padding, shape (rows, length)
    logits: Tensor  # of the last token of each beginning, float32, shape (rows, vocabulary)


def shared_length(sequences: Sequence[Tensor]) -> int:
    """Number of first tokens that all sequences have in common, one less than the shortest has."""
    shortest = min(len(ids) for ids in sequences)
    head = torch.stack([ids[:shortest] for ids in sequences])
    differs = (head != head[0]).any(dim=0).nonzero()
    return min(int(differs[0]) if len(differs) else shortest, shortest - 1)


def copied(cache: Cache, rows: Sequence[int]) -> Cache:
    """A cache of the given rows of another, which stays as it is when the copy grows.

    Plain layers replace their tensors when they grow, so theirs are shared; other kinds of layers
    may write into them and are copied.
    """
    plain = all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in cache.layers)
    new: Any = copy.copy(cache) if plain else copy.deepcopy(cache)
    new.layers = [copy.copy(layer) for layer in new.layers]
    index = torch.tensor(rows)
    for layer in new.layers:
        if not plain or len(set(rows)) > 1:
            layer.batch_select_indices(index.to(layer.keys.device))
        elif layer.get_seq_length():
            row = slice(rows[0], rows[0] + 1)
            layer.keys = layer.keys[row].expand(len(rows), -1, -1, -1)
            layer.values = layer.values[row].expand(len(rows), -1, -1, -1)
    found: Cache = new
    return found


def concatenated(pixels: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Images' inputs along their first axis."""
    if len(pixels) == 1:
        return dict(pixels[0])
    return {name: torch.cat([one[name] for one in pixels]) for name in pixels[0]}


def axes(positions: Tensor | None) -> Tensor:
    """Positions on several axes, which must be there."""
    if positions is None:
        raise ValueError("a model that counts on several axes is given its positions")
    return positions


def padded_left(values: Tensor, width: int, fill: int) -> Tensor:
    """Values with `fill` before them along the last axis."""
    return torch.nn.functional.pad(values, (width - values.shape[-1], 0), value=fill)


def padded_right(values: Tensor, width: int, fill: int) -> Tensor:
    """Values with `fill` after them along the last axis."""
    return torch.nn.functional.pad(values, (0, width - values.shape[-1]), value=fill)


def logit_places(rests: Sequence[Rest], device: torch.device) -> Tensor:
    """Whose logits are wanted: (places,) for one rest, (rests, places) for more."""
    most = max(rest.keep for rest in rests)
    rows = [[max(len(rest.ids) - most + k, 0) for k in range(most)] for rest in rests]
    places = torch.tensor(rows, device=device)
    return places[0] if len(rests) == 1 else places


class CachingDecoder:
    """Runs a decoder in two parts."""

    def __init__(self, model: PreTrainedModel, pad_id: int) -> None:
        self._model = model
        self._pad_id = pad_id
        self._base: Any = getattr(model, "model", model)
        self._counts_from = 1 if model.config.model_type == "paligemma" else 0

    @property
    def several_axes(self) -> bool:
        """Whether positions have several axes (M-RoPE), as in the Qwen2-VL family."""
        return hasattr(self._base, "get_rope_index")

    def positions(
        self, ids: Tensor, per_token: Mapping[str, Tensor], pixels: Mapping[str, Any]
    ) -> Tensor | None:
        """Positions of a whole sequence, shape (axes, length); None where they are plain counts.

        After an image the count goes on from the largest of its height and width in merged
        patches, not from its number of tokens.
        """
        if not self.several_axes:
            return None
        accepted = inspect.signature(self._base.get_rope_index).parameters
        offered = {**per_token, **pixels}
        given = {name: value for name, value in offered.items() if name in accepted}
        found, _ = self._base.get_rope_index(input_ids=ids[None], **given)
        positions: Tensor = found[:, 0]
        return positions

    def start(self, beginnings: Sequence[Beginning]) -> Cached:
        """Run beginnings together.

        The images' inputs are joined along their first axis, so they must agree in the others.
        """
        inputs = self._inputs(beginnings)
        out = self._call(keep=1, **inputs)
        return Cached(out.past_key_values, inputs["attention_mask"], out.logits[:, -1].float())

    def looks_ahead(self, beginning: Beginning, token: int) -> bool:
        """Whether another last token changes what is computed of the tokens before it.

        Both runs have one shape, so a causal model gives the very same numbers in any precision.
        """
        inputs = self._inputs([beginning])
        before = self._call(keep=2, **inputs).logits[0, 0]
        inputs["input_ids"][0, -1] = token
        self._forget_positions()
        after = self._call(keep=2, **inputs).logits[0, 0]
        return not torch.allclose(before.float(), after.float(), rtol=0, atol=1e-5)

    def go_on(self, cached: Cached, rests: Sequence[Rest]) -> list[Tensor]:
        """Logits of the last `keep` tokens of each rest, float32, each (keep, vocabulary)."""
        cache = copied(cached.cache, [rest.beginning for rest in rests])
        return self._extend(cache, cached.mask, rests)[0]

    def write(
        self, cached: Cached, rests: Sequence[Rest], stop: set[int], n: int
    ) -> list[list[int]]:
        """Greedy continuations of up to `n` tokens, without the token that stops them.

        A rest without tokens goes on from the beginning's own last logits.
        """
        if self.slides(cached) and len({len(rest.ids) for rest in rests}) > 1:
            return [self.write(cached, [rest], stop, n)[0] for rest in rests]
        cache = copied(cached.cache, [rest.beginning for rest in rests])
        if len(rests[0].ids):
            logits, mask = self._extend(cache, cached.mask, rests)
            last = torch.stack([one[-1] for one in logits])
        else:
            index = torch.tensor([rest.beginning for rest in rests], device=cached.mask.device)
            last, mask = cached.logits[index], cached.mask[index]
        return self._write_on(cache, mask, last, rests, stop=stop, n=n)

    def slides(self, cached: Cached) -> bool:
        """Whether a layer keeps only a window: padding between tokens would push tokens out."""
        return any(getattr(layer, "is_sliding", False) for layer in cached.cache.layers)

    def _inputs(self, beginnings: Sequence[Beginning]) -> dict[str, Any]:
        """Beginnings as one batch, padded on the left."""
        width = max(len(one.ids) for one in beginnings)
        mask = torch.stack([padded_left(torch.ones_like(one.ids), width, 0) for one in beginnings])
        inputs: dict[str, Any] = {
            name: torch.cat([padded_left(one.per_token[name], width, 0) for one in beginnings])
            for name in beginnings[0].per_token
        }
        padded = bool((mask == 0).any())
        self._forget_positions()
        return {
            **inputs,
            **concatenated([one.pixels for one in beginnings]),
            "input_ids": torch.stack(
                [padded_left(one.ids, width, self._pad_id) for one in beginnings]
            ),
            "attention_mask": mask,
            "position_ids": self._starting_positions(beginnings, mask if padded else None),
        }

    def _extend(
        self, cache: Cache, start_mask: Tensor, rests: Sequence[Rest]
    ) -> tuple[list[Tensor], Tensor]:
        """Run rests on a cache of theirs alone; their logits, and the mask of what it then holds."""
        width = max(len(rest.ids) for rest in rests)
        rows = torch.tensor([rest.beginning for rest in rests], device=start_mask.device)
        ids = torch.stack([padded_right(rest.ids, width, self._pad_id) for rest in rests])
        tail = torch.stack([padded_right(torch.ones_like(rest.ids), width, 0) for rest in rests])
        mask = torch.cat([start_mask[rows], tail], dim=1)
        out = self._call(
            input_ids=ids,
            attention_mask=mask,
            past_key_values=cache,
            position_ids=self._following_positions(start_mask[rows], rests, width),
            keep=logit_places(rests, ids.device),
        )
        return [out.logits[i, -rest.keep :].float() for i, rest in enumerate(rests)], mask

    def _write_on(
        self,
        cache: Cache,
        mask: Tensor,
        last: Tensor,
        rests: Sequence[Rest],
        *,
        stop: set[int],
        n: int,
    ) -> list[list[int]]:
        """The greedy loop."""
        written: list[list[int]] = [[] for _ in range(len(last))]
        going = [True] * len(last)
        for step in range(n):
            picked = last.argmax(dim=-1)
            for i, token in enumerate(picked.tolist()):
                going[i] = going[i] and token not in stop
                if going[i]:
                    written[i].append(token)
            if not any(going) or step == n - 1:
                break
            places = self._next_positions(mask, rests, step)
            mask = torch.cat([mask, mask.new_ones(len(mask), 1)], dim=1)
            out = self._call(
                input_ids=picked[:, None],
                attention_mask=mask,
                past_key_values=cache,
                position_ids=places,
                keep=1,
            )
            last = out.logits[:, -1].float()
        return written

    def _starting_positions(
        self, beginnings: Sequence[Beginning], mask: Tensor | None
    ) -> Tensor | None:
        if self.several_axes:
            width = max(len(one.ids) for one in beginnings)
            return torch.stack(
                [padded_left(axes(one.positions), width, 0) for one in beginnings], dim=1
            )
        return None if mask is None else self._counted(mask)

    def _following_positions(self, start_mask: Tensor, rests: Sequence[Rest], width: int) -> Tensor:
        if self.several_axes:
            return torch.stack(
                [padded_right(axes(rest.positions), width, 0) for rest in rests], dim=1
            )
        ahead = torch.arange(width, device=start_mask.device)
        return start_mask.sum(dim=1, keepdim=True) + ahead + self._counts_from

    def _next_positions(self, mask: Tensor, rests: Sequence[Rest], step: int) -> Tensor:
        if self.several_axes:
            ends = [axes(rest.positions)[:, -1:] + 1 + step for rest in rests]
            return torch.stack(ends, dim=1)
        return mask.sum(dim=1, keepdim=True) + self._counts_from

    def _counted(self, mask: Tensor) -> Tensor:
        return (mask.cumsum(dim=-1) - 1).clamp(min=0) + self._counts_from

    def _forget_positions(self) -> None:
        """The Qwen2-VL family keeps offsets of the image it saw last on the model."""
        if hasattr(self._base, "rope_deltas"):
            self._base.rope_deltas = None

    def _call(self, keep: int | Tensor, **inputs: Any) -> Any:
        with torch.inference_mode():
            return self._model(**inputs, use_cache=True, logits_to_keep=keep)


Sharing = Literal["prefix", "vision", "nothing"]
"""What prompts to one image share: the decoder's work on all that comes before they differ, the
vision tower's output, or nothing."""


@dataclass(frozen=True, eq=False)
class PromptPrefix:
    """A prompt to an image, begun."""

    image: int  # its index in the call
    prompt: int  # its index among the image's prompts
    cached: Cached  # beginnings that ran, this one's among them
    row: int  # which of them
    ids: Tensor  # what of the prompt is still to be read, shape (length,); may be empty
    # of the prompt's last tokens, shape (axes, max(length, 1)); None where positions are plain
    # counts
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


class PromptPrefixes:
    """Begins prompts to images."""

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
    ) -> Iterator[list[PromptPrefix]]:
        """All prompts, begun; those of one group read the same cache."""
        waiting: list[tuple[int, list[ImagePrompt], int]] = []
        for i, seen in enumerate(images):
            asked = [self._text.inputs_of(seen, prompt) for prompt in prompts[i]]
            if not asked:
                continue
            shared = self._shared(asked)
            if not shared:
                yield from self._apart(i, asked)
                continue
            full = len(waiting) == self._images_together
            if waiting and (full or not _stack(waiting[0][1][0], asked[0])):
                yield self._in_one_batch(waiting)
                waiting = []
            waiting.append((i, asked, shared))
        if waiting:
            yield self._in_one_batch(waiting)

    def looks_ahead(self, seen: SeenImage, prompt: str) -> bool:
        """Whether what a prompt says changes what is made of the image before it."""
        one = self._text.inputs_of(seen, prompt)
        beginning = self._beginning(one, len(one.ids), self._positions(one), self._pixels(one))
        never = {int(one.ids[-1]), *self._image_tokens}
        other = next(token for token in reversed(one.ids.tolist()) if token not in never)
        return self._decoder.looks_ahead(beginning, other)

    def _shared(self, asked: Sequence[ImagePrompt]) -> int:
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

    def _in_one_batch(
        self, waiting: Sequence[tuple[int, list[ImagePrompt], int]]
    ) -> list[PromptPrefix]:
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

    def _apart(self, image: int, asked: Sequence[ImagePrompt]) -> Iterator[list[PromptPrefix]]:
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
        self, one: ImagePrompt, length: int, positions: Tensor | None, pixels: dict[str, Any]
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
    ) -> PromptPrefix:
        last = None if positions is None else positions[:, -max(len(ids), 1) :]
        return PromptPrefix(*who, cached, row, ids.to(self._model.device), last)

    def _positions(self, one: ImagePrompt) -> Tensor | None:
        found = self._decoder.positions(one.ids, one.per_token, one.pixels)
        return None if found is None else found.to(self._model.device)

    def _pixels(self, one: ImagePrompt) -> dict[str, Any]:
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


def _same_image(asked: Sequence[ImagePrompt]) -> bool:
    """Whether the image's inputs are free of the prompts; InstructBLIP's hold the prompt as well."""
    return all(
        torch.equal(values, one.pixels[name])
        for one in asked[1:]
        for name, values in asked[0].pixels.items()
        if isinstance(values, Tensor) and not values.is_floating_point()
    )


def _stack(one: ImagePrompt, other: ImagePrompt) -> bool:
    """Whether the images' inputs can be joined along their first axis."""
    return _shapes(one.pixels) == _shapes(other.pixels)


def _shapes(pixels: dict[str, Any]) -> dict[str, Any]:
    return {
        name: tuple(values.shape[1:]) if isinstance(values, Tensor) else name
        for name, values in pixels.items()
    }
