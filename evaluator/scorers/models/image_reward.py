"""ImageReward from parts of `transformers`: BLIP's encoders and a linear reward head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import BlipTextConfig, BlipTextModel, BlipVisionConfig, BlipVisionModel
from transformers.initialization import no_init_weights

from evaluator.scorers.checkpoints import Source
from evaluator.scorers.loading import fill
from evaluator.scorers.models.lavis_weights import Renaming, count_layers, weight

REWARD_MEAN = 0.16717362830052426
REWARD_DEVIATION = 1.0333394966054072
"""Of the raw reward on the authors' data; the score is standardised with them."""

_VIT = r"blip\.visual_encoder\.blocks\.(\d+)\."
_BERT = r"blip\.text_encoder\."
RENAMING = Renaming(
    rules=(
        (r"blip\.visual_encoder\.cls_token", r"vision.embeddings.class_embedding"),
        (r"blip\.visual_encoder\.pos_embed", r"vision.embeddings.position_embedding"),
        (r"blip\.visual_encoder\.patch_embed\.proj\.(.+)", r"vision.embeddings.patch_embedding.\1"),
        (_VIT + r"norm([12])\.(.+)", r"vision.encoder.layers.\1.layer_norm\2.\3"),
        (_VIT + r"attn\.qkv\.(.+)", r"vision.encoder.layers.\1.self_attn.qkv.\2"),
        (_VIT + r"attn\.proj\.(.+)", r"vision.encoder.layers.\1.self_attn.projection.\2"),
        (_VIT + r"mlp\.(fc[12]\..+)", r"vision.encoder.layers.\1.mlp.\2"),
        (r"blip\.visual_encoder\.norm\.(.+)", r"vision.post_layernorm.\1"),
        (
            _BERT + r"(embeddings\.(?:word_embeddings|position_embeddings|LayerNorm)\..+)",
            r"text.\1",
        ),
        (
            _BERT + r"(encoder\.layer\.\d+\.(?:attention|crossattention)"
            r"\.(?:self\.(?:query|key|value)|output\.(?:dense|LayerNorm))\..+)",
            r"text.\1",
        ),
        (
            _BERT + r"(encoder\.layer\.\d+\.(?:intermediate|output)\.(?:dense|LayerNorm)\..+)",
            r"text.\1",
        ),
        (r"mlp\.layers\.(\d+\..+)", r"head.\1"),
    ),
    unused=(_BERT + r"embeddings\.position_ids", r"blip\.(?:vision|text)_proj\..+"),
)


@dataclass(frozen=True, slots=True)
class Heads:
    """Attention heads, which weights do not tell."""

    vision: int = 16
    text: int = 12


class ImageRewardModel(nn.Module):
    """Vision tower, text encoder that attends to it, and a head without activations.

    Args:
        vision: of the vision tower.
        text: of the text encoder.
        widths: of the head, from the text encoder's width to 1.
    """

    def __init__(
        self, vision: BlipVisionConfig, text: BlipTextConfig, widths: Mapping[str, tuple[int, int]]
    ) -> None:
        super().__init__()
        self.vision = BlipVisionModel(vision)
        self.text = BlipTextModel(text, add_pooling_layer=False)
        # Named by their places in the authors' module, where dropout stands between them.
        self.head = nn.ModuleDict({name: nn.Linear(*width) for name, width in widths.items()})

    def encode_images(self, pixels: Tensor) -> Tensor:
        """States of the patches, shape (n, patches + 1, d)."""
        states: Tensor = self.vision(pixel_values=pixels).last_hidden_state
        return states

    def reward(self, states: Tensor, ids: Tensor, mask: Tensor) -> Tensor:
        """Standardised rewards of n texts with an image each, shape (n,).

        Args:
            states: of the images, shape (n, patches + 1, d).
            ids: of the texts' tokens, [CLS] first, padded, shape (n, t).
            mask: 1 where there is a token, shape (n, t).
        """
        hidden = self.text(
            input_ids=ids, attention_mask=mask, encoder_hidden_states=states, is_decoder=False
        ).last_hidden_state[:, 0]
        for layer in self.head.values():
            hidden = layer(hidden)
        rewards: Tensor = (hidden.float().squeeze(1) - REWARD_MEAN) / REWARD_DEVIATION
        return rewards


def from_authors(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The released weights under the names of `ImageRewardModel`.

    Raises:
        SubmitterError: `checkpoint_wrong_class`, unknown weights.
    """
    return RENAMING.renamed(state)


def vision_config(state: Mapping[str, Tensor], heads: int) -> BlipVisionConfig:
    """The vision tower that fits renamed weights: BLIP's ViT, whose layer norms add 1e-6."""
    patches = weight(state, "vision.embeddings.patch_embedding.weight")
    places = weight(state, "vision.embeddings.position_embedding").shape[1] - 1
    return BlipVisionConfig(
        hidden_size=patches.shape[0],
        patch_size=patches.shape[-1],
        image_size=round(places**0.5) * patches.shape[-1],
        intermediate_size=weight(state, "vision.encoder.layers.0.mlp.fc1.weight").shape[0],
        num_hidden_layers=count_layers(state, r"vision\.encoder\.layers\.(\d+)\."),
        num_attention_heads=heads,
        layer_norm_eps=1e-6,
    )


def text_config(state: Mapping[str, Tensor], heads: int) -> BlipTextConfig:
    """The text encoder that fits renamed weights: BERT with cross-attention in every layer."""
    words = weight(state, "text.embeddings.word_embeddings.weight")
    first = "text.encoder.layer.0."
    config = BlipTextConfig(
        vocab_size=words.shape[0],
        hidden_size=words.shape[1],
        encoder_hidden_size=weight(state, f"{first}crossattention.self.key.weight").shape[1],
        intermediate_size=weight(state, f"{first}intermediate.dense.weight").shape[0],
        num_hidden_layers=count_layers(state, r"text\.encoder\.layer\.(\d+)\."),
        num_attention_heads=heads,
        max_position_embeddings=weight(state, "text.embeddings.position_embeddings.weight").shape[
            0
        ],
        is_decoder=True,  # has cross-attention; attention is bidirectional all the same
    )
    # Its attention adds the mask to the scores, which only this kind of mask is made for.
    config._attn_implementation = "eager"
    return config


def build_image_reward(
    state: Mapping[str, Tensor], source: Source, heads: Heads, dtype: torch.dtype
) -> ImageRewardModel:
    """The model of the released weights, in evaluation mode on the CPU.

    Raises:
        SubmitterError: `checkpoint_wrong_class`, `checkpoint_incomplete`, `checkpoint_damaged`.
    """
    named = from_authors(state)
    places = sorted(
        (name for name in named if name.startswith("head.") and name.endswith("weight")),
        key=lambda name: int(name.split(".")[1]),
    )
    widths = {name.split(".")[1]: (named[name].shape[1], named[name].shape[0]) for name in places}
    vision, text = vision_config(named, heads.vision), text_config(named, heads.text)
    with no_init_weights():
        model = ImageRewardModel(vision, text, widths)
    return fill(model, named, source).to(dtype).eval()
