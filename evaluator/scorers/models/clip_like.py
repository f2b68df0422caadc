"""Dual encoders of `transformers`: CLIP, ALIGN, SigLIP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import (
    AlignModel,
    AutoImageProcessor,
    AutoTokenizer,
    CLIPModel,
    SiglipModel,
)

from evaluator.scorers.checkpoints import Source, check_class
from evaluator.scorers.loading import load_processor, load_transformers
from evaluator.scorers.models.dual_formulas import Sharpness
from evaluator.scorers.models.image_reading import Processed, ShortestCropped
from evaluator.scorers.row import ScorerRow
from evaluator.scorers.runtime import Runtime

CLASSES = {"clip": CLIPModel, "align": AlignModel, "siglip": SiglipModel}
"""By `model_type` of a checkpoint."""


class HfTokens:
    """A tokenizer of `transformers`."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.pad: int = tokenizer.pad_token_id

    def whole(self, texts: Sequence[str]) -> list[list[int]]:
        """All numbers of each text, with those of its start and end."""
        found: list[list[int]] = self._tokenizer(
            list(texts), truncation=False, padding=False, verbose=False
        )["input_ids"]
        return found

    def cut(self, texts: Sequence[str], length: int) -> list[list[int]]:
        """The same, at most `length`, the end's number kept."""
        found: list[list[int]] = self._tokenizer(
            list(texts), truncation=True, max_length=length, padding=False
        )["input_ids"]
        return found


class HfTowers:
    """Both towers of a model of `transformers`.

    Args:
        model: with `get_image_features` and `get_text_features`, on its device.
        kind: its `model_type`.
    """

    def __init__(self, model: Any, kind: str) -> None:
        self._model = model
        # SigLIP was trained without a mask: it reads its padding, and pools the last place.
        self.sees_padding = kind == "siglip"
        self.sharpness = _sharpness(model)

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        found: torch.device = self._model.device
        return found

    @property
    def dtype(self) -> torch.dtype:
        """Of its weights."""
        found: torch.dtype = self._model.dtype
        return found

    def images(self, pixels: Tensor) -> Tensor:
        """Projected features, shape (n, d), of pixels (n, 3, height, width)."""
        return features(self._model.get_image_features(pixel_values=pixels))

    def texts(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Projected features, shape (n, d), of token numbers (n, t)."""
        given = {"input_ids": ids.to(self.device)}
        if not self.sees_padding:
            given["attention_mask"] = mask.to(self.device)
        return features(self._model.get_text_features(**given))


def features(found: Any) -> Tensor:
    """The projected vectors in what a feature helper returns."""
    vectors: Tensor = found if isinstance(found, Tensor) else found.pooler_output
    return vectors


def _sharpness(model: Any) -> Sharpness:
    if hasattr(model, "temperature"):  # ALIGN
        return Sharpness(scale=1 / float(model.temperature.detach()))
    bias = getattr(model, "logit_bias", None)
    return Sharpness(
        scale=float(model.logit_scale.detach().double().exp()),
        bias=0.0 if bias is None else float(bias.detach()),
    )


def load_towers(source: Source, row: ScorerRow, runtime: Runtime) -> tuple[HfTowers, int]:
    """The model of a checkpoint, and the most token numbers it reads.

    Raises:
        SubmitterError: see `load_transformers`.
    """
    kind = check_class(source, tuple(CLASSES))
    model = load_transformers(CLASSES[kind], source, row, runtime)
    return HfTowers(model, kind), int(model.config.text_config.max_position_embeddings)


def load_reading(source: Source, runtime: Runtime) -> tuple[HfTokens, Processed]:
    """Tokenizer and image processor of a checkpoint.

    Raises:
        SubmitterError: `checkpoint_damaged`.
    """
    tokenizer = load_processor(AutoTokenizer, source, runtime, pil=False)
    return HfTokens(tokenizer), Processed(load_processor(AutoImageProcessor, source, runtime))


def authors_transform(processor: Any) -> ShortestCropped:
    """What OpenAI's own code does to an image, with size and colours of an image processor."""
    return ShortestCropped(
        processor.size["shortest_edge"], processor.image_mean, processor.image_std
    )
