"""Batches of a chat VLM in training: question, image, and the answer as target.

Labels are -100 but at the answer. Rows are padded on the right, and what is read of a row stands at its
own places, so padding changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from benchmarks.errors import SubmitterError
from evaluator.scorers.models.chat import ChatVLM
from evaluator.scorers.models.vlm_inputs import ChatText, ImagePrompt

IGNORED = -100
_LAYERS = 2


@dataclass(frozen=True)
class Answered:
    """A question to an image, and the answer's tokens."""

    asked: ImagePrompt
    answer: Tensor  # token ids, the end token last, shape (length,)


def padded_batches(rows: Sequence[Answered], pad_id: int) -> list[dict[str, Any]]:
    """Rows as inputs of the model, with `targets` of the same shape as `input_ids`.

    Rows whose images' inputs cannot be joined stand in batches of their own.
    """
    return [_one_batch(group, pad_id) for group in _groups(rows)]


def _groups(rows: Sequence[Answered]) -> Iterator[list[Answered]]:
    groups: dict[str, list[Answered]] = {}
    for row in rows:
        shapes = {
            name: tuple(v.shape[1:]) if isinstance(v, Tensor) else name
            for name, v in row.asked.pixels.items()
        }
        groups.setdefault(repr(shapes), []).append(row)
    yield from groups.values()


def _one_batch(rows: Sequence[Answered], pad_id: int) -> dict[str, Any]:
    ids = [torch.cat([row.asked.ids, row.answer]) for row in rows]
    width = max(map(len, ids))
    targets = [torch.cat([torch.full_like(row.asked.ids, IGNORED), row.answer]) for row in rows]
    first = rows[0].asked
    return {
        "input_ids": _padded(ids, width, pad_id),
        "attention_mask": _padded([torch.ones_like(one) for one in ids], width, 0),
        "targets": _padded(targets, width, IGNORED),
        **{
            name: _padded([row.asked.per_token[name][0] for row in rows], width, 0)
            for name in first.per_token
        },
        **{name: torch.cat([row.asked.pixels[name] for row in rows]) for name in first.pixels},
    }


def _padded(rows: Sequence[Tensor], width: int, fill: int) -> Tensor:
    return torch.stack([functional.pad(one, (0, width - len(one)), value=fill) for one in rows])


def labels_of(targets: Tensor, *, first_only: bool) -> Tensor:
    """The targets that the loss counts: of each answer the first token, or all."""
    wanted = targets != IGNORED
    if first_only:
        wanted &= wanted.cumsum(dim=1) == 1
    return targets.masked_fill(~wanted, IGNORED)


def answer_losses(
    model: PreTrainedModel, batch: dict[str, Any], *, first_only: bool
) -> dict[str, Tensor]:
    """`total`, the cross-entropy of the tokens that are labelled, and that of the first token of an
    answer (`answer`) and of those behind it (`end`); each a mean over rows.
    """  # noqa: D205
    inputs = {name: value for name, value in batch.items() if name != "targets"}
    targets = batch["targets"]
    # Logits of a place are those of the token behind it.
    following = targets[:, 1:]
    places = (following != IGNORED).any(dim=0).nonzero()[:, 0]
    logits = model(**inputs, use_cache=False, logits_to_keep=places).logits.float()
    wanted = following[:, places]
    lost = functional.cross_entropy(
        logits.flatten(0, 1), wanted.flatten(), ignore_index=IGNORED, reduction="none"
    ).view_as(wanted)
    first = labels_of(wanted, first_only=True) != IGNORED
    every = wanted != IGNORED
    return {
        "total": _mean(lost, first if first_only else every),
        "answer": _mean(lost, first),
        "end": _mean(lost.detach(), every & ~first),
    }


def _mean(lost: Tensor, counted: Tensor) -> Tensor:
    """Mean over rows of each one's mean over what is counted."""
    return ((lost * counted).sum(dim=1) / counted.sum(dim=1)).mean()


def freeze_but_vision_and_last_layers(model: PreTrainedModel, *, head: bool = False) -> None:
    """Freeze all but what is not the language model, and its last two layers.

    `head`: whether the output head is trained as well.

    Raises:
        SubmitterError: `head_tied`: the head is the table of input embeddings, which would be
            trained with it; `unfit_base`: the language model has no layers that can be told.
    """
    decoder: Any = model.get_decoder()
    layers, embeddings = getattr(decoder, "layers", None), model.get_input_embeddings()
    if not isinstance(layers, nn.ModuleList):
        raise SubmitterError(
            "unfit_base",
            f"The layers of {type(model).__name__} cannot be told from its other parts.",
            "Train another chat VLM of transformers, such as Qwen2-VL.",
        )
    last: nn.Module | None = model.get_output_embeddings()
    language = [layers, embeddings, last, getattr(decoder, "norm", None)]
    model.requires_grad_(True)
    for part in language:
        if part is not None:
            part.requires_grad_(False)
    for layer in layers[-_LAYERS:]:
        layer.requires_grad_(True)
    if not head or last is None:
        return
    if last.weight is embeddings.weight:
        raise SubmitterError(
            "head_tied",
            "The output head of this model is its table of input embeddings: both would be trained.",
            "Leave `head` out, or take a model whose head has weights of its own.",
        )
    last.requires_grad_(True)


def refuse_looking_ahead(model: PreTrainedModel, text: ChatText) -> None:
    """Refuse a model whose image tokens see the text behind them: there they would see the answer."""
    vlm = ChatVLM(model, text, {}, "nothing")
    if vlm.looks_ahead(vlm.prepare(Image.new("RGB", (64, 64), "grey")), "Is it grey?"):
        raise SubmitterError(
            "unfit_base",
            f"{type(model).__name__} reads image and text in both directions, and would read the "
            "answer before it gives it.",
            "Train a model that reads from left to right, such as Qwen2-VL.",
        )
