"""Dual encoders of open_clip."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import open_clip  # type: ignore[import-untyped]
import torch
from open_clip.transform import (  # type: ignore[import-untyped]
    PreprocessCfg,
    image_transform_v2,
)
from torch import Tensor

from benchmarks.errors import PlatformError, SubmitterError
from evaluator.scorers.checkpoints import Source
from evaluator.scorers.loading import dtype_of, reading, refuse_missing
from evaluator.scorers.models.dual_formulas import Sharpness
from evaluator.scorers.models.image_reading import ToPixels
from evaluator.scorers.models.open_clip_tokens import name_of
from evaluator.scorers.row import ScorerRow
from evaluator.scorers.runtime import Runtime

WEIGHTS = (
    "open_clip_model.safetensors",
    "open_clip_pytorch_model.safetensors",
    "open_clip_pytorch_model.bin",
)
"""Names under which repositories keep them, best first."""


class OpenClipTowers:
    """Both towers of an open_clip model.

    Args:
        model: on its device.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._text = model if isinstance(model, open_clip.CLIP) else model.text
        self.length: int = self._text.context_length
        self.ignores_padding = _ignores_padding(self._text)
        bias = getattr(model, "logit_bias", None)
        self.sharpness = Sharpness(
            float(model.logit_scale.detach().double().exp()),
            0.0 if bias is None else float(bias.detach()),
        )

    @property
    def image_settings(self) -> Mapping[str, Any]:
        """Size and colours of images, as the configuration says."""
        found: Mapping[str, Any] = self._model.visual.preprocess_cfg
        return found

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        found: torch.device = next(self._model.parameters()).device
        return found

    @property
    def dtype(self) -> torch.dtype:
        """Of its weights."""
        found: torch.dtype = next(self._model.visual.parameters()).dtype
        return found

    def images(self, pixels: Tensor) -> Tensor:
        """Projected features, shape (n, d), of pixels (n, 3, height, width)."""
        found: Tensor = self._model.encode_image(pixels, normalize=False)
        return found

    def texts(self, ids: Tensor, mask: Tensor) -> Tensor:  # noqa: ARG002 (it sees none)
        """Projected features, shape (n, d), of token numbers (n, t)."""
        ids = ids.to(self.device)
        if ids.shape[1] == self.length or not self.ignores_padding:
            found: Tensor = self._model.encode_text(ids, normalize=False)
            return found
        return self._short(ids)

    def _short(self, ids: Tensor) -> Tensor:
        """As `encode_text`, on fewer places than its causal mask is made for."""
        text, places = self._text, ids.shape[1]
        kind = text.transformer.get_cast_dtype()
        states = text.token_embedding(ids).to(kind) + text.positional_embedding[:places].to(kind)
        states = text.transformer(states, attn_mask=text.attn_mask[:places, :places])
        states = text.ln_final(states)
        # The end has the highest number of all.
        ends = states[torch.arange(len(ids), device=ids.device), ids.argmax(dim=-1)]
        projection = text.text_projection
        found: Tensor = ends
        if isinstance(projection, torch.nn.Linear):
            found = projection(ends)
        elif projection is not None:
            found = ends @ projection
        return found


def _ignores_padding(text: Any) -> bool:
    """Whether nothing after the end of a text can reach its vector."""
    pool = getattr(text, "text_pool_type", getattr(text, "pool_type", ""))
    causal = getattr(text, "attn_mask", None) is not None
    plain = getattr(text, "cls_emb", None) is None and not getattr(text, "use_pad_mask", False)
    return pool == "argmax" and causal and plain


def load_towers(
    source: Source, row: ScorerRow, runtime: Runtime, *, architecture: str, tag: str
) -> OpenClipTowers:
    """The model of a checkpoint, every weight from it.

    Args:
        source: folder, or file of weights.
        row: names the precision.
        runtime: device and precision.
        architecture: open_clip's name of it; empty: the folder's own configuration.
        tag: open_clip's name of the weights; tells the activation they were trained with.

    Raises:
        SubmitterError: `checkpoint_wrong_class`, `checkpoint_incomplete`, `checkpoint_damaged`.
    """
    quick = bool(tag) and bool(_published(row, architecture, tag).get("quick_gelu", False))
    with reading(source, "configuration"), _unwarned():
        model = open_clip.create_model(
            name_of(source, architecture),
            load_weights=False,
            pretrained_text=False,
            force_quick_gelu=quick,
        )
    weights = _weights(source)
    with reading(source, "weights"):
        keys = open_clip.load_checkpoint(model, str(weights), strict=False, weights_only=True)
    refuse_missing(source, keys.missing_keys)
    if keys.unexpected_keys:
        raise SubmitterError(
            "checkpoint_wrong_class",
            f"{source} holds weights that {architecture or 'its configuration'} has no place for: "
            f"{', '.join(keys.unexpected_keys[:3])}.",
        )
    return OpenClipTowers(model.to(runtime.device, dtype_of(row, runtime)).eval())


def preprocessing(
    towers: OpenClipTowers, row: ScorerRow, *, architecture: str, tag: str
) -> PreprocessCfg:
    """Size, colours and resize of the images that these weights were trained on.

    Raises:
        PlatformError: `bad_scorer_row`.
    """
    settings = dict(towers.image_settings)
    if tag:
        published = _published(row, architecture, tag)
        names = ("mean", "std", "interpolation", "resize_mode")
        settings |= {name: published[name] for name in names if name in published}
    return PreprocessCfg(**settings)


def transform(settings: PreprocessCfg) -> ToPixels:
    """What open_clip does to an image; resizes with Pillow."""
    made: ToPixels = image_transform_v2(settings, is_train=False)
    return made


@contextmanager
def _unwarned() -> Iterator[None]:
    """Keep to itself that a model is made without weights: they are put in right after."""
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)
    try:
        yield
    finally:
        root.setLevel(level)


def _published(row: ScorerRow, architecture: str, tag: str) -> Mapping[str, Any]:
    """What open_clip's table says of a set of weights."""
    found: Mapping[str, Any] = open_clip.get_pretrained_cfg(architecture, tag)
    if not found:
        raise PlatformError(
            "bad_scorer_row", f"{row.name}: open_clip has no weights {tag!r} of {architecture!r}."
        )
    return found


def _weights(source: Source) -> Path:
    """The file of weights in a folder."""
    if source.place.is_file():
        return source.place
    found = next((source.place / name for name in WEIGHTS if (source.place / name).is_file()), None)
    if found is None:
        raise SubmitterError(
            "checkpoint_wrong_class",
            f"{source} holds no weights of open_clip; wanted: {' or '.join(WEIGHTS)}.",
        )
    return found
