"""Towers of dual encoders, from `transformers` and open_clip, and formulas of their cosine."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import open_clip  # type: ignore[import-untyped]
import torch
from numpy.typing import NDArray
from open_clip.tokenizer import (  # type: ignore[import-untyped]
    HFTokenizer,
    SimpleTokenizer,
)
from open_clip.transform import (  # type: ignore[import-untyped]
    PreprocessCfg,
    image_transform_v2,
)
from torch import Tensor
from transformers import AlignModel, AutoImageProcessor, AutoTokenizer, CLIPModel, SiglipModel

from benchmarks.errors import PlatformError, SubmitterError
from evaluator.scorers.checkpoints import Source, check_class
from evaluator.scorers.loading import (
    dtype_of,
    load_processor,
    load_transformers,
    reading,
    refuse_missing,
)
from evaluator.scorers.models.inputs import Processed, ShortestCropped, ToPixels
from evaluator.scorers.registry import Runtime, ScorerRow

Cosines = NDArray[np.float64]
Formula = Literal[
    "cos",
    "cos_clamped",
    "cos_times_100",
    "cos_times_100_clamped",
    "hessel",
    "scaled",
    "logit",
    "sigmoid",
]


@dataclass(frozen=True, slots=True)
class Sharpness:
    """What training fitted between cosine and logit."""

    scale: float = 1.0  # exp(logit_scale), or 1 / temperature
    bias: float = 0.0  # logit_bias; 0 where the model has none


def sigmoid(cosines: Cosines, sharpness: Sharpness) -> Cosines:
    """1 / (1 + exp(-logit)), 0..1 (Zhai et al. 2023, section 3)."""
    # exp of what is never positive cannot overflow.
    raw = sharpness.scale * cosines + sharpness.bias
    small = np.exp(-np.abs(raw))
    return np.asarray(np.where(raw >= 0, 1, small) / (1 + small), np.float64)


FORMULAS: Mapping[Formula, Callable[[Cosines, Sharpness], Cosines]] = {
    "cos": lambda cosines, _: cosines,
    "cos_clamped": lambda cosines, _: np.maximum(cosines, 0),
    "cos_times_100": lambda cosines, _: 100 * cosines,
    "cos_times_100_clamped": lambda cosines, _: np.maximum(100 * cosines, 0),
    "hessel": lambda cosines, _: 2.5 * np.maximum(cosines, 0),  # Hessel et al. 2021, equation 1
    "scaled": lambda cosines, fitted: fitted.scale * cosines,
    "logit": lambda cosines, fitted: fitted.scale * cosines + fitted.bias,
    "sigmoid": sigmoid,
}
"""From the cosine of each pair to its score."""


def unit_vectors(features: Tensor) -> NDArray[np.float32]:
    """Each row divided by its length.

    No epsilon: the features of a model whose weights are small can be of length 1e-10, and stay
    directions. A row of zeros has none and becomes NaN.

    `features`: shape (n, d), in any precision.
    Returns: Shape (n, d), float32.
    """
    wide = features.detach().double()
    found: NDArray[np.float32] = (
        (wide / wide.norm(dim=-1, keepdim=True)).to(torch.float32).cpu().numpy()
    )
    return found


def row_cosines(first: NDArray[np.float32], second: NDArray[np.float32]) -> Cosines:
    """Cosines of unit vectors, row by row.

    Not a matrix product, whose last digits would depend on its shape.

    `first`: shape (k, d); `second`: shape (k, d).
    Returns: Shape (k,).
    """
    product = first.astype(np.float64) * second.astype(np.float64)
    return np.asarray(product.sum(axis=-1), np.float64)


CLASSES = {"clip": CLIPModel, "align": AlignModel, "siglip": SiglipModel}
"""By `model_type` of a checkpoint."""


class HfTokens:
    """A tokenizer of `transformers`, with the cleaning that open_clip does before it."""

    def __init__(self, tokenizer: Any, clean: Callable[[str], str] = str) -> None:
        self._tokenizer = tokenizer
        self._clean = clean
        self.pad: int = tokenizer.pad_token_id

    def whole(self, texts: Sequence[str]) -> list[list[int]]:
        """All numbers of each text, with those of its start and end."""
        return self._numbers(texts, truncation=False, verbose=False)

    def cut(self, texts: Sequence[str], length: int) -> list[list[int]]:
        """The same, at most `length`, the end's number kept."""
        return self._numbers(texts, truncation=True, max_length=length)

    def _numbers(self, texts: Sequence[str], **how: Any) -> list[list[int]]:
        cleaned = [self._clean(text) for text in texts]
        found: list[list[int]] = self._tokenizer(cleaned, padding=False, **how)["input_ids"]
        return found


class HfTowers:
    """Both towers of a model of `transformers`."""

    def __init__(self, model: Any, kind: str) -> None:
        self._model = model
        # SigLIP was trained without a mask: it reads its padding, and pools the last place.
        self.sees_padding = kind == "siglip"
        self.device: torch.device = model.device
        self.dtype: torch.dtype = model.dtype
        self.sharpness = _sharpness(model)

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


def load_transformers_towers(
    source: Source, row: ScorerRow, runtime: Runtime
) -> tuple[HfTowers, int]:
    """The model of a checkpoint, and the most token numbers it reads."""
    kind = check_class(source, tuple(CLASSES))
    model = load_transformers(CLASSES[kind], source, row, runtime)
    return HfTowers(model, kind), int(model.config.text_config.max_position_embeddings)


def load_reading(source: Source, runtime: Runtime) -> tuple[HfTokens, Processed]:
    """Tokenizer and image processor of a checkpoint."""
    tokenizer = load_processor(AutoTokenizer, source, runtime, pil=False)
    return HfTokens(tokenizer), Processed(load_processor(AutoImageProcessor, source, runtime))


def authors_transform(processor: Any) -> ShortestCropped:
    """What OpenAI's own code does to an image, with size and colours of an image processor."""
    return ShortestCropped(
        processor.size["shortest_edge"], processor.image_mean, processor.image_std
    )


def name_of(source: Source, architecture: str) -> str:
    """What open_clip calls a model: an architecture, or a folder with a configuration."""
    return architecture or f"local-dir:{source.place}"


class OpenClipTokens:
    """CLIP's own byte pairs, as open_clip has them."""

    pad = 0

    def __init__(self, tokenizer: SimpleTokenizer) -> None:
        self._tokenizer = tokenizer

    def whole(self, texts: Sequence[str]) -> list[list[int]]:
        """All numbers of each text, with those of its start and end."""
        first, last = self._tokenizer.sot_token_id, self._tokenizer.eot_token_id
        return [[first, *self._tokenizer.encode(text), last] for text in texts]

    def cut(self, texts: Sequence[str], length: int) -> list[list[int]]:
        """The same, at most `length`, the end's number kept."""
        last = self._tokenizer.eot_token_id
        return [
            ids if len(ids) <= length else [*ids[: length - 1], last] for ids in self.whole(texts)
        ]


def load_tokens(source: Source, architecture: str) -> OpenClipTokens | HfTokens:
    """The tokenizer of a checkpoint; the one of CLIP comes with open_clip."""
    with reading(source, "tokenizer"):
        text = (open_clip.get_model_config(name_of(source, architecture)) or {}).get("text_cfg", {})
        more = dict(text.get("tokenizer_kwargs", {}))
        if text.get("hf_tokenizer_name"):
            place = source.place if source.place.is_dir() else source.place.parent
            theirs = HFTokenizer(str(place), **more)
            return HfTokens(theirs.tokenizer, theirs.clean_fn)
        return OpenClipTokens(SimpleTokenizer(**more))


WEIGHTS = (
    "open_clip_model.safetensors",
    "open_clip_pytorch_model.safetensors",
    "open_clip_pytorch_model.bin",
)
"""Names under which repositories keep them, best first."""


class OpenClipTowers:
    """Both towers of an open_clip model."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._text = model if isinstance(model, open_clip.CLIP) else model.text
        self.length: int = self._text.context_length
        self.device: torch.device = next(model.parameters()).device
        self.dtype: torch.dtype = next(model.visual.parameters()).dtype
        self.ignores_padding = _ignores_padding(self._text)
        self.sharpness = _sharpness(model)

    @property
    def image_settings(self) -> Mapping[str, Any]:
        """Size and colours of images, as the configuration says."""
        found: Mapping[str, Any] = self._model.visual.preprocess_cfg
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


def load_open_clip_towers(
    source: Source, row: ScorerRow, runtime: Runtime, *, architecture: str, tag: str
) -> OpenClipTowers:
    """The model of a checkpoint, every weight from it."""
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
    """Size, colours and resize of the images that these weights were trained on."""
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
