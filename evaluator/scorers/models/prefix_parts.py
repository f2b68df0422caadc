"""Sequences in two parts, and the copying of what the first part left in a decoder's cache."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import Cache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer


@dataclass(frozen=True)
class Beginning:
    """The first tokens of a sequence, with the image.

    Attributes:
        ids: token ids, shape (length,).
        positions: as the model counts them, shape (axes, length); None: one axis, from its own
            first position on.
        per_token: other inputs with one value per token, each of shape (1, length).
        pixels: inputs that hold the image.
    """

    ids: Tensor
    positions: Tensor | None = None
    per_token: Mapping[str, Tensor] = field(default_factory=dict)
    pixels: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Rest:
    """Tokens that follow a beginning.

    Attributes:
        beginning: its index.
        ids: token ids, shape (length,), length at least 1.
        positions: shape (axes, length), where the model counts on several axes; else None.
        keep: of how many last tokens the logits are wanted.
    """

    beginning: int
    ids: Tensor
    positions: Tensor | None
    keep: int


@dataclass
class Cached:
    """Beginnings that went through the decoder.

    Attributes:
        cache: keys and values, one row per beginning; never changed once made.
        mask: 1 for tokens, 0 for padding, shape (rows, length).
        logits: of the last token of each beginning, float32, shape (rows, vocabulary).
    """

    cache: Cache
    mask: Tensor
    logits: Tensor


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


def joined(pixels: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
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


def wanted_places(rests: Sequence[Rest], device: torch.device) -> Tensor:
    """Whose logits are wanted: (places,) for one rest, (rests, places) for more."""
    most = max(rest.keep for rest in rests)
    rows = [[max(len(rest.ids) - most + k, 0) for k in range(most)] for rest in rests]
    places = torch.tensor(rows, device=device)
    return places[0] if len(rests) == 1 else places
