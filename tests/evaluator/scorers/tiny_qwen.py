"""Tiny random models of the Qwen-VL families, with a tokenizer of bytes and answers."""

from __future__ import annotations

from typing import Any

import torch
from tokenizers.pre_tokenizers import ByteLevel
from transformers import (
    PreTrainedModel,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2_5_VLProcessor,
    Qwen2Tokenizer,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
    Qwen2VLImageProcessorPil,
    Qwen2VLProcessor,
    Qwen2VLVideoProcessor,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
    Qwen3VLProcessor,
    Qwen3VLVideoProcessor,
)

QWEN_SPECIALS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
QWEN_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['content'] is string %}{{ m['content'] }}{% else %}{% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ c['text'] }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SEED = 0


def qwen_tokenizer() -> Qwen2Tokenizer:
    """Bytes, and Yes, No, yes, no as tokens of their own, with and without a space."""
    vocab = {letter: i for i, letter in enumerate(sorted(ByteLevel.alphabet()))}
    merges: list[tuple[str, str]] = []
    for word in ("Yes", "No", "yes", "no"):
        for letters in (list(word), ["Ġ", *word]):
            for end in range(2, len(letters) + 1):
                pair = ("".join(letters[: end - 1]), letters[end - 1])
                if pair not in merges:
                    merges.append(pair)
                    vocab.setdefault("".join(pair), len(vocab))
    kind: Any = Qwen2Tokenizer
    tokenizer: Qwen2Tokenizer = kind(vocab=vocab, merges=merges)
    tokenizer.add_special_tokens({"additional_special_tokens": list(QWEN_SPECIALS)})
    tokenizer.pad_token = "<|endoftext|>"
    tokenizer.eos_token = "<|im_end|>"
    return tokenizer


def text_settings(tokenizer: Any, **more: Any) -> dict[str, Any]:
    """Of a small decoder."""
    return {
        "hidden_size": 32,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_hidden_layers": 2,
        "intermediate_size": 37,
        "vocab_size": len(tokenizer),
        "max_position_embeddings": 512,
        "initializer_range": 0.2,
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        **more,
    }


def _qwen_ids(tokenizer: Any) -> dict[str, Any]:
    names = {
        "image_token_id": "<|image_pad|>",
        "video_token_id": "<|video_pad|>",
        "vision_start_token_id": "<|vision_start|>",
        "vision_end_token_id": "<|vision_end|>",
    }
    return {key: tokenizer.convert_tokens_to_ids(token) for key, token in names.items()}


def qwen2_vl() -> tuple[PreTrainedModel, Any]:
    """Qwen2-VL, its image tokens counted on three axes."""
    tokenizer = qwen_tokenizer()
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 1e4}
    vision: dict[str, Any] = {
        "depth": 2,
        "embed_dim": 32,
        "hidden_size": 32,
        "num_heads": 4,
        "mlp_ratio": 2,
    }
    vision |= {"patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2}
    config = Qwen2VLConfig(
        text_config=text_settings(tokenizer, rope_parameters=rope),
        vision_config=vision,
        **_qwen_ids(tokenizer),
    )
    images = Qwen2VLImageProcessorPil(min_pixels=784, max_pixels=12544)
    processor = Qwen2VLProcessor(
        images, tokenizer, Qwen2VLVideoProcessor(), chat_template=QWEN_TEMPLATE
    )
    return random_model(Qwen2VLForConditionalGeneration, config), processor


def qwen2_5_vl() -> tuple[PreTrainedModel, Any]:
    """Qwen2.5-VL, with window attention in its vision tower."""
    tokenizer = qwen_tokenizer()
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 1e4}
    vision: dict[str, Any] = {"depth": 2, "hidden_size": 32, "out_hidden_size": 32, "num_heads": 4}
    vision |= {"intermediate_size": 37, "patch_size": 14, "spatial_merge_size": 2}
    vision |= {"temporal_patch_size": 2, "window_size": 56, "fullatt_block_indexes": [1]}
    config = Qwen2_5_VLConfig(
        text_config=text_settings(tokenizer, rope_parameters=rope),
        vision_config=vision,
        **_qwen_ids(tokenizer),
    )
    images = Qwen2VLImageProcessorPil(min_pixels=784, max_pixels=12544)
    processor = Qwen2_5_VLProcessor(
        images, tokenizer, Qwen2VLVideoProcessor(), chat_template=QWEN_TEMPLATE
    )
    return random_model(Qwen2_5_VLForConditionalGeneration, config), processor


def qwen3_vl() -> tuple[PreTrainedModel, Any]:
    """Qwen3-VL, whose vision tower feeds several layers of the decoder."""
    tokenizer = qwen_tokenizer()
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 1e4}
    vision: dict[str, Any] = {"depth": 2, "hidden_size": 32, "out_hidden_size": 32, "num_heads": 4}
    vision |= {"intermediate_size": 37, "patch_size": 16, "spatial_merge_size": 2}
    vision |= {"temporal_patch_size": 2, "num_position_embeddings": 64}
    vision |= {"deepstack_visual_indexes": [0]}
    config = Qwen3VLConfig(
        text_config=text_settings(tokenizer, rope_parameters=rope, head_dim=8),
        vision_config=vision,
        **_qwen_ids(tokenizer),
    )
    images = Qwen2VLImageProcessorPil(min_pixels=1024, max_pixels=16384, patch_size=16)
    processor = Qwen3VLProcessor(
        images, tokenizer, Qwen3VLVideoProcessor(), chat_template=QWEN_TEMPLATE
    )
    return random_model(Qwen3VLForConditionalGeneration, config), processor


def random_model(kind: Any, config: Any) -> PreTrainedModel:
    """With the same weights each time."""
    torch.manual_seed(SEED)
    model: PreTrainedModel = kind(config).eval()
    return model
