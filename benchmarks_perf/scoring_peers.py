"""The loops in which published code scores image-text pairs with CLIP, written anew.

All take the same weights, pixels and tokens as ours, so that cosines can be compared:

- CROC's wrapper of CLIPScore: an object of torchmetrics' `CLIPScore`, called for each pair. It
  declares `full_state_update`, so that a call runs both towers twice. Its value is 100 times the
  cosine, none below 0. torchmetrics is installed for this benchmark only, into a folder:

      pip install --target FOLDER --no-deps torchmetrics lightning-utilities

- T2IScoreScore's CLIPScore: processor and whole model for each pair, with gradients.
- t2v_metrics' `batch_forward`: 16 pairs at a time, each with an image and a text of its own,
  through open_clip.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import open_clip  # type: ignore[import-untyped]
import torch
from open_clip.tokenizer import SimpleTokenizer  # type: ignore[import-untyped]
from PIL import Image
from torchvision.transforms.functional import pil_to_tensor
from transformers import (
    CLIPConfig,
    CLIPModel,
    CLIPProcessor,
    CLIPTokenizer,
)
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

ImageText = tuple[bytes, str]
Loop = Callable[[Sequence[ImageText]], list[float]]
T2V_BATCH = 16
HOW_TO_INSTALL = (
    "torchmetrics is not there: pip install --target FOLDER --no-deps torchmetrics "
    "lightning-utilities, and name the folder with --torchmetrics"
)


@dataclass(frozen=True)
class Peers:
    """The same random CLIP in both libraries' layouts.

    Attributes:
        model: open_clip's ViT-B/32.
        transform: open_clip's preprocessing for it.
        layout: the same weights as a `CLIPModel`.
        processor: pixels by Pillow, open_clip's vocabulary.
    """

    model: Any
    transform: Callable[[Image.Image], torch.Tensor]
    layout: CLIPModel
    processor: Any

    @classmethod
    def of(cls, model: Any, transform: Callable[[Image.Image], torch.Tensor]) -> Peers:
        """Copy a ViT-B/32 of open_clip into the other layout."""
        tokenizer = SimpleTokenizer()
        processor = CLIPProcessor(CLIPImageProcessorPil(), _tokenizer(tokenizer))
        return cls(model.eval(), transform, _in_other_layout(model), processor)

    def croc_wrapper(self, folder: Path | None) -> Loop | None:
        """An object of torchmetrics, called per pair; None where torchmetrics is not there."""
        if folder is not None:
            sys.path.append(str(folder))
        if find_spec("torchmetrics") is None:
            return None
        layout = _FeaturesAsTensors(self.layout)
        metric = import_module("torchmetrics.multimodal").CLIPScore(
            lambda: (layout, self.processor)
        )

        def loop(pairs: Sequence[ImageText]) -> list[float]:
            with torch.no_grad():
                return [float(metric(pil_to_tensor(_opened(d)), text)) / 100 for d, text in pairs]

        return loop

    def ts2(self, pairs: Sequence[ImageText]) -> list[float]:
        """The whole model per pair, gradients on."""
        scores = []
        for data, text in pairs:
            inputs = self.processor(
                text=[text], images=_opened(data), return_tensors="pt", padding=True
            )
            logit = self.layout(**inputs).logits_per_image
            scores.append(float(logit.item() / self.layout.logit_scale.exp().item()))
        return scores

    def t2v(self, pairs: Sequence[ImageText]) -> list[float]:
        """Batches of 16 pairs."""
        tokenizer = open_clip.get_tokenizer("ViT-B-32")
        scores: list[float] = []
        for batch in _chunks(pairs, T2V_BATCH):
            pixels = torch.stack([self.transform(_opened(data)) for data, _ in batch])
            with torch.no_grad():
                images = self.model.encode_image(pixels, normalize=True)
                texts = self.model.encode_text(tokenizer([t for _, t in batch]), normalize=True)
            scores += (images * texts).sum(-1).tolist()
        return scores


class _FeaturesAsTensors(torch.nn.Module):
    """What torchmetrics expects of a model, and transformers gave until its version 5."""

    def __init__(self, model: CLIPModel) -> None:
        super().__init__()
        self.inner = model
        self.config = model.config

    def get_image_features(self, pixels: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self.inner.get_image_features(pixels).pooler_output
        return features

    def get_text_features(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self.inner.get_text_features(ids, mask).pooler_output
        return features


def _opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data)).convert("RGB")


def _chunks(pairs: Sequence[ImageText], size: int) -> Iterator[Sequence[ImageText]]:
    for start in range(0, len(pairs), size):
        yield pairs[start : start + size]


def _tokenizer(plain: SimpleTokenizer) -> CLIPTokenizer:
    """open_clip's byte pairs as a tokenizer of transformers; the same numbers."""
    names = {
        plain.sot_token_id: "<|startoftext|>",
        plain.eot_token_id: "<|endoftext|>",
    }
    vocabulary = {names.get(number, piece): number for piece, number in plain.encoder.items()}
    return CLIPTokenizer(vocab=vocabulary, merges=list(plain.bpe_ranks))


def _in_other_layout(model: Any) -> CLIPModel:
    """Weights of a ViT-B/32 of open_clip as a `CLIPModel`."""
    config = CLIPConfig(
        text_config={"hidden_act": "gelu", "eos_token_id": 49407, "bos_token_id": 49406},
        vision_config={"hidden_act": "gelu"},
        projection_dim=512,
    )
    layout = CLIPModel(config)
    state = dict(_renamed(model.state_dict()))
    told = layout.load_state_dict(state, strict=False)
    lacking = [name for name in told.missing_keys if not name.endswith("position_ids")]
    if lacking or told.unexpected_keys:
        raise ValueError(f"weights do not fit: {lacking[:3]} {told.unexpected_keys[:3]}")
    layout.eval()
    return layout


_PLAIN_NAMES = {
    "logit_scale": "logit_scale",
    "positional_embedding": "text_model.embeddings.position_embedding.weight",
    "token_embedding.weight": "text_model.embeddings.token_embedding.weight",
    "ln_final.": "text_model.final_layer_norm.",
    "visual.class_embedding": "vision_model.embeddings.class_embedding",
    "visual.positional_embedding": "vision_model.embeddings.position_embedding.weight",
    "visual.conv1.weight": "vision_model.embeddings.patch_embedding.weight",
    "visual.ln_pre.": "vision_model.pre_layrnorm.",
    "visual.ln_post.": "vision_model.post_layernorm.",
}
_IN_BLOCKS = {
    "ln_1.": "layer_norm1.",
    "ln_2.": "layer_norm2.",
    "mlp.c_fc.": "mlp.fc1.",
    "mlp.c_proj.": "mlp.fc2.",
    "attn.out_proj.": "self_attn.out_proj.",
}


def _renamed(state: dict[str, torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    for name, value in state.items():
        if name == "attn_mask":
            continue
        if name in {"text_projection", "visual.proj"}:
            tower = "text" if name == "text_projection" else "visual"
            yield f"{tower}_projection.weight", value.T
        elif "resblocks." in name:
            tower = "vision_model" if name.startswith("visual.") else "text_model"
            number, rest = name.split("resblocks.")[1].split(".", 1)
            yield from _of_block(f"{tower}.encoder.layers.{number}.", rest, value)
        else:
            old = next(old for old in _PLAIN_NAMES if name.startswith(old))
            yield _PLAIN_NAMES[old] + name.removeprefix(old), value


def _of_block(block: str, rest: str, value: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    if rest.startswith("attn.in_proj_"):
        kind = rest.removeprefix("attn.in_proj_")
        for letter, part in zip("qkv", value.chunk(3), strict=True):
            yield f"{block}self_attn.{letter}_proj.{kind}", part
        return
    old = next(old for old in _IN_BLOCKS if rest.startswith(old))
    yield block + _IN_BLOCKS[old] + rest.removeprefix(old), value
