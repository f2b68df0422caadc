"""Loads a VLM of any kind that is known here, by what its checkpoint's configuration says."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from benchmarks.errors import SubmitterError
from evaluator.scorers.answering import AnswerModel, Reading
from evaluator.scorers.checkpoints import Source, resolve
from evaluator.scorers.models.chat import ChatVLM, load_chat_vlm
from evaluator.scorers.models.encoder_decoders import (
    load_blip_vqa,
    load_clip_flant5,
    load_seq2seq_vlm,
)
from evaluator.scorers.models.vlm_inputs import Setting
from evaluator.scorers.registry import Runtime, ScorerRow

Loader = Callable[[Setting], AnswerModel]

_LOADERS: dict[str, Loader] = {
    "blip": load_blip_vqa,
    "blip-2": load_seq2seq_vlm,
    "instructblip": load_seq2seq_vlm,
    "clip_t5": load_clip_flant5,
}
"""By `model_type`; any other is taken for a decoder that reads images and text."""


BESIDE = {"clip_t5": ("vision", "tokenizer")}
"""Roles of checkpoints that a kind of VLM is put together from besides its own."""


def load_answer_model(
    row: ScorerRow, runtime: Runtime, role: str = "model", reading: Reading | None = None
) -> AnswerModel:
    """The VLM of a row's checkpoint, with the adapter that fits its `model_type`."""
    source = resolve(row, runtime, role)
    kind = model_type(source)
    beside = {
        other: resolve(row, runtime, other)
        for other in BESIDE.get(kind, ())
        if other in row.checkpoints
    }
    dtype = runtime.dtype or row.dtype
    setting = Setting(source, kind, runtime, dtype, reading or Reading(), beside)
    if _saved(source).get("use_decoder_only_language_model"):
        return load_chat_vlm(setting)
    return _LOADERS.get(kind, load_chat_vlm)(setting)


def load_decoder(row: ScorerRow, runtime: Runtime, reading: Reading) -> ChatVLM:
    """The VLM of a row that only a decoder can be asked by."""
    model = load_answer_model(row, runtime, reading=reading)
    if not isinstance(model, ChatVLM):
        raise SubmitterError(
            "checkpoint_wrong_class",
            f"{row.name} reads what a decoder writes; {row.checkpoints['model'].id} is none.",
            "Name a model such as Qwen/Qwen3-VL-8B-Instruct.",
        )
    return model


def model_type(source: Source) -> str:
    """The `model_type` of a checkpoint's folder."""
    return str(_saved(source)["model_type"])


def _saved(source: Source) -> dict[str, Any]:
    """The configuration of a checkpoint's folder, with a `model_type`."""
    problem: Exception | None = None
    try:
        found = json.loads((source.place / "config.json").read_bytes())
    except (OSError, ValueError) as error:
        found, problem = None, error
    if not isinstance(found, dict) or "model_type" not in found:
        raise SubmitterError(
            "checkpoint_wrong_class",
            f"{source} has no config.json that names a model_type.",
            "A folder as transformers saves it is wanted.",
        ) from problem
    return found
