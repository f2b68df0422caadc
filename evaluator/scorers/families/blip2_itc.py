"""BLIP-2's image-text contrast: an image is as many vectors as there are query tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field
from torch import Tensor
from transformers import AutoImageProcessor, AutoTokenizer, Blip2ForImageTextRetrieval

from evaluator.scorers.checkpoints import resolve
from evaluator.scorers.loading import environment, load_processor, load_transformers
from evaluator.scorers.models.dual_towers import HfTokens, unit_vectors
from evaluator.scorers.models.inputs import Processed, TextReading, ToPixels, stack
from evaluator.scorers.registry import Family, Frozen, Loaded, Runtime, ScorerRow
from evaluator.scoring.contract import Vectors


class Blip2ItcOptions(Frozen):
    """What differs between rows."""

    max_tokens: int = Field(default=32, ge=3, le=512)
    """Tokens of a text, with [CLS] and [SEP]: 32 in LAVIS, 35 in t2v_metrics."""


@dataclass(frozen=True, slots=True)
class Blip2ItcScorer:
    """Largest cosine, over the query tokens, of the image's vectors with the text's; -1..1.

    The steps are those of the model's own forward pass with `use_image_text_matching_head=False`,
    each tower on its own.
    """

    model: Any  # `Blip2ForImageTextRetrieval` on its device, in evaluation mode
    to_pixels: ToPixels  # its image processor
    reading: TextReading  # its tokenizer
    rows: int  # most texts of one call of the text tower

    def prepare(self, image: Image.Image) -> Tensor:
        """Pixels, shape (3, height, width), float32, in main memory."""
        return self.to_pixels(image)

    def score(self, images: Sequence[Any], prompts: Sequence[str]) -> list[float]:
        """One score per pair."""
        if not prompts:
            return []
        found = self.similarity(self.encode_images(images), self.encode_texts(prompts))
        return [float(value) for value in found]

    @torch.inference_mode()
    def encode_images(self, images: Sequence[Tensor]) -> Vectors:
        """The unit vectors of all query tokens, one after the other: shape (n, queries x d)."""
        model = self.model
        pixels = stack(images, model.device, model.vision_model.dtype)
        states = model.vision_model(pixel_values=pixels).last_hidden_state
        hidden = model.qformer(
            query_embeds=model.query_tokens.expand(len(images), -1, -1),
            encoder_hidden_states=states,
            encoder_attention_mask=torch.ones(
                states.shape[:2], dtype=torch.long, device=model.device
            ),
        ).last_hidden_state
        projected = model.vision_projection(hidden.to(model.vision_projection.weight.dtype))
        return unit_vectors(projected).reshape(len(images), -1)

    @torch.inference_mode()
    def encode_texts(self, prompts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (m, d)."""
        return unit_vectors(self.reading.encode(prompts, self.rows, self._texts))

    def similarity(self, image_vectors: Vectors, text_vectors: Vectors) -> NDArray[np.float64]:
        """The score of each row's image with the same row's text, shape (k,)."""
        width = text_vectors.shape[1]
        queries = image_vectors.reshape(len(image_vectors), -1, width).astype(np.float64)
        cosines = (queries * text_vectors.astype(np.float64)[:, None, :]).sum(axis=-1)
        return np.asarray(cosines.max(axis=1), np.float64)

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Whether the end of each prompt is not read."""
        return self.reading.truncated(prompts)

    def _texts(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Projected state of [CLS], shape (n, d)."""
        model = self.model
        hidden = model.qformer(
            query_embeds=model.embeddings(input_ids=ids.to(model.device)),
            query_length=0,
            attention_mask=mask.to(model.device),
        ).last_hidden_state[:, 0]
        projected: Tensor = model.text_projection(hidden.to(model.text_projection.weight.dtype))
        return projected


def load(row: ScorerRow, options: Blip2ItcOptions, runtime: Runtime) -> Loaded:
    """BLIP-2 as `transformers` lays it out for retrieval."""
    source = resolve(row, runtime)
    model = load_transformers(
        Blip2ForImageTextRetrieval, source, row, runtime, accepted=("blip-2",)
    )
    pixels = Processed(load_processor(AutoImageProcessor, source, runtime))
    tokens = HfTokens(load_processor(AutoTokenizer, source, runtime, pil=False))
    scorer = Blip2ItcScorer(
        model, pixels, TextReading(tokens, options.max_tokens), runtime.batch_texts
    )
    told = environment(row, runtime, {"model": source}, image_processor=pixels.described)
    return Loaded(scorer, told, pixels.described)


FAMILY = Family("dual encoder with several vectors per image", Blip2ItcOptions, load)
