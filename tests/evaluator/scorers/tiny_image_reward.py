"""A small random ImageReward as the authors lay its weights out."""

from __future__ import annotations

import itertools

import torch
from torch import nn
from transformers import BlipTextConfig, BlipTextModel, BlipVisionConfig, BlipVisionModel

from tests.evaluator.scorers.tiny_blip2 import spread

WIDTHS = (32, 24, 12, 8, 4, 1)
"""Of the head; its five layers stand at 0, 2, 4, 6 and 7."""


class TinyReward(nn.Module):
    """Encoders of the library, and the head as a chain of linear layers and dropouts."""

    def __init__(self, n_words: int) -> None:
        super().__init__()
        vision = BlipVisionConfig(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=37,
            image_size=32,
            patch_size=16,
            layer_norm_eps=1e-6,
        )
        text = BlipTextConfig(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=37,
            encoder_hidden_size=32,
            vocab_size=n_words,
            max_position_embeddings=64,
        )
        self.vision = BlipVisionModel(vision)
        self.text = BlipTextModel(text, add_pooling_layer=False)
        first, second, third, fourth, fifth = (
            nn.Linear(*pair) for pair in itertools.pairwise(WIDTHS)
        )
        self.layers = nn.Sequential(
            first, nn.Dropout(), second, nn.Dropout(), third, nn.Dropout(), fourth, fifth
        )
        spread(self, seed=1, std=0.2)
        self.eval()

    def authors_state(self) -> dict[str, torch.Tensor]:
        """The weights under the authors' names, with those that no score needs."""
        state = {
            "blip.vision_proj.weight": torch.ones(2, 2),
            "blip.text_proj.bias": torch.ones(2),
            "blip.text_encoder.embeddings.position_ids": torch.arange(64)[None],
        }
        for name, value in self.state_dict().items():
            old = name
            for new, original in (
                ("vision.embeddings.class_embedding", "vision.cls_token"),
                ("vision.embeddings.position_embedding", "vision.pos_embed"),
                ("vision.embeddings.patch_embedding", "vision.patch_embed.proj"),
                ("vision.encoder.layers", "vision.blocks"),
                ("vision.post_layernorm", "vision.norm"),
                ("self_attn.projection", "attn.proj"),
                ("self_attn", "attn"),
                ("layer_norm", "norm"),
                ("vision.", "blip.visual_encoder."),
                ("text.", "blip.text_encoder."),
            ):
                old = old.replace(new, original)
            state["mlp." + old if old.startswith("layers.") else old] = value
        return state
