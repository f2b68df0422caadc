"""Dual encoders: image and text become vectors apart, and the score is a formula of their cosine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field, model_validator
from torch import Tensor

from benchmarks.errors import PlatformError
from evaluator.scorers.checkpoints import Source, resolve
from evaluator.scorers.loading import environment
from evaluator.scorers.models import dual_towers
from evaluator.scorers.models.dual_towers import (
    FORMULAS,
    Formula,
    Sharpness,
    row_cosines,
    unit_vectors,
)
from evaluator.scorers.models.inputs import (
    ImageReading,
    LongestPadded,
    Padding,
    Squashed,
    TextReading,
    Tokens,
    ToPixels,
    Truncation,
    stack,
)
from evaluator.scorers.registry import Family, Frozen, Loaded, Runtime, ScorerRow
from evaluator.scoring.contract import Vectors

CROC_SIDE = 224


class DualOptions(Frozen):
    """What differs between rows."""

    formula: Formula  # From cosine to score; see `dual_towers.FORMULAS`
    backend: Literal["hf", "open_clip"] = "hf"  # Library whose layout the checkpoint has
    architecture: str = ""
    """open_clip's name of the model; empty: the checkpoint's own configuration."""
    tag: str = ""  # open_clip's name of the weights: activation and colours are looked up under it
    prefix: str = ""  # Put before every prompt
    max_length: int = Field(default=0, ge=0)
    """Token numbers of a text, start and end included; 0: as many as the model reads."""
    padding: Padding = "longest"
    """`longest` is exact where a mask or causality hides padding; SigLIP needs `max_length`."""
    truncation: Truncation = "end_kept"
    """`sliced` repeats a fault: over-long prompts lose the number of their end."""
    images: ImageReading = "checkpoint"
    """What is done to an image; `checkpoint`: what its own settings say."""
    cleaned: bool = False
    """Whether texts are mended as by CLIP's own tokenizer; open_clip's always does."""

    @model_validator(mode="after")
    def _one_library(self) -> DualOptions:
        if self.backend == "hf" and (self.architecture or self.tag):
            raise ValueError("architecture and tag are open_clip's")
        if self.tag and not self.architecture:
            raise ValueError("a tag is looked up under an architecture")
        if self.backend == "hf" and self.images == "longest_padded":
            raise ValueError("longest_padded is for open_clip")
        if self.backend == "open_clip" and (self.images == "clip" or self.cleaned):
            raise ValueError("open_clip reads images and texts as CLIP does without being told")
        return self


class Towers(Protocol):
    """A loaded model."""

    sharpness: Sharpness
    device: torch.device
    dtype: torch.dtype  # of its weights

    def images(self, pixels: Tensor) -> Tensor:
        """Projected features, shape (n, d), of pixels (n, 3, height, width)."""

    def texts(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Projected features, shape (n, d), of token numbers (n, t)."""


@dataclass(frozen=True, slots=True)
class DualEncoderScorer:
    """formula(cosine of the image's and the text's vector)."""

    towers: Towers  # the model
    to_pixels: ToPixels  # what is done to an image
    reading: TextReading  # how prompts are read
    formula: Formula  # name of it
    rows: int  # most texts of one call of the text tower

    def prepare(self, image: Image.Image) -> Tensor:
        """Pixels, shape (3, height, width), float32, in main memory."""
        return self.to_pixels(image)

    def score(self, images: Sequence[Any], prompts: Sequence[str]) -> list[float]:
        """One score per pair; each distinct image and text is encoded once."""
        if not prompts:
            return []
        distinct = {id(image): image for image in images}
        rows = {key: row for row, key in enumerate(distinct)}
        columns = {text: column for column, text in enumerate(dict.fromkeys(prompts))}
        seen = self.encode_images(list(distinct.values()))[[rows[id(image)] for image in images]]
        said = self.encode_texts(list(columns))[[columns[text] for text in prompts]]
        return [float(value) for value in self.similarity(seen, said)]

    @torch.inference_mode()
    def encode_images(self, images: Sequence[Tensor]) -> Vectors:
        """Unit vectors, shape (n, d)."""
        pixels = stack(images, self.towers.device, self.towers.dtype)
        return unit_vectors(self.towers.images(pixels))

    @torch.inference_mode()
    def encode_texts(self, prompts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (m, d)."""
        return unit_vectors(self.reading.encode(prompts, self.rows, self.towers.texts))

    def similarity(self, image_vectors: Vectors, text_vectors: Vectors) -> NDArray[np.float64]:
        """The score of each row's image with the same row's text, shape (k,)."""
        cosines = row_cosines(image_vectors, text_vectors)
        return FORMULAS[self.formula](cosines, self.towers.sharpness)

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Whether the end of each prompt is not read."""
        return self.reading.truncated(prompts)


def load(row: ScorerRow, options: DualOptions, runtime: Runtime) -> Loaded:
    """CLIP, ALIGN, SigLIP of `transformers`, and all models of open_clip."""
    model = resolve(row, runtime)
    sources = {"model": model}
    if options.backend == "open_clip":
        parts = _open_clip(row, options, runtime, model)
    else:
        if "processor" in row.checkpoints:
            sources["processor"] = resolve(row, runtime, "processor")
        parts = _transformers(row, runtime, sources)
    scorer = DualEncoderScorer(
        parts.towers,
        _pixels(options, parts),
        _reading(row, options, parts),
        options.formula,
        runtime.batch_texts,
    )
    told = environment(row, runtime, sources, image_processor=parts.described)
    return Loaded(scorer, told, f"{options.images}: {parts.described}")


@dataclass(frozen=True, slots=True)
class _Parts:
    towers: Towers
    tokens: Tokens
    pixels: ToPixels
    described: str  # The image processor with its settings
    length: int  # Most token numbers the model reads
    sees_padding: bool
    settings: Any = None


def _transformers(row: ScorerRow, runtime: Runtime, sources: dict[str, Source]) -> _Parts:
    towers, length = dual_towers.load_transformers_towers(sources["model"], row, runtime)
    place = sources.get("processor", sources["model"])
    tokens, pixels = dual_towers.load_reading(place, runtime)
    described, seen = pixels.described, towers.sees_padding
    return _Parts(towers, tokens, pixels, described, length, seen, pixels.processor)


def _open_clip(row: ScorerRow, options: DualOptions, runtime: Runtime, source: Source) -> _Parts:
    architecture, tag = options.architecture, options.tag
    towers = dual_towers.load_open_clip_towers(
        source, row, runtime, architecture=architecture, tag=tag
    )
    settings = dual_towers.preprocessing(towers, row, architecture=architecture, tag=tag)
    return _Parts(
        towers,
        dual_towers.load_tokens(source, architecture),
        dual_towers.transform(settings),
        f"open_clip {asdict(settings)}",
        towers.length,
        sees_padding=not towers.ignores_padding,
        settings=settings,
    )


def _pixels(options: DualOptions, parts: _Parts) -> ToPixels:
    if options.images == "squashed_224":
        return Squashed(CROC_SIDE, parts.pixels)
    if options.images == "clip":
        return dual_towers.authors_transform(parts.settings)
    if options.images == "longest_padded":
        size = parts.settings.size
        side = size if isinstance(size, int) else size[0]
        return LongestPadded(side, parts.settings.mean, parts.settings.std)
    return parts.pixels


def _reading(row: ScorerRow, options: DualOptions, parts: _Parts) -> TextReading:
    length = options.max_length or parts.length
    if length > parts.length:
        raise PlatformError(
            "bad_scorer_row",
            f"{row.name}: max_length {length}, but the model reads {parts.length} at most.",
        )
    padding = options.padding
    if padding == "longest" and parts.sees_padding:
        # Rows filled up to their neighbours would make a score depend on its batch.
        padding = "max_length"
    return TextReading(
        parts.tokens, length, options.prefix, padding, options.truncation, options.cleaned
    )


FAMILY = Family("dual encoder", DualOptions, load)
