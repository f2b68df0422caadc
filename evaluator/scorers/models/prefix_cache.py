"""A decoder's work on an image, done once and read by every prompt to it.

With causal attention the keys and values of a prompt's beginning do not depend on what follows. So
the image and all text before the prompts differ go through the decoder once; each prompt's rest
reads that cache. Rests of several prompts run together, padded on the right, where padding cannot
be seen by anything that counts; beginnings of several images are padded on the left and masked.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import Cache, PreTrainedModel

from evaluator.scorers.models.prefix_parts import (
    Beginning,
    Cached,
    Rest,
    axes,
    copied,
    joined,
    padded_left,
    padded_right,
    wanted_places,
)


class CachingDecoder:
    """Runs a decoder in two parts.

    Args:
        model: with a head, in eval mode.
        pad_id: any token that the embedding table holds.
    """

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
            **joined([one.pixels for one in beginnings]),
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
            keep=wanted_places(rests, ids.device),
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
