"""Tiny random models of the Qwen-VL families, with a tokenizer of bytes and answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedModel, Qwen2Tokenizer

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
TOWER = {
    "depth": 2,
    "hidden_size": 32,
    "num_heads": 4,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
}


def qwen_tokenizer() -> Qwen2Tokenizer:
    """Bytes, and Yes, No, yes, no as tokens of their own, with and without a space."""
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import Qwen2Tokenizer

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


def _put_together(
    config: Any,
    model: Any,
    parts: tuple[Any, Any],
    images: Any,
    vision: dict[str, Any],
    **text: Any,
) -> tuple[PreTrainedModel, Any]:
    """A model of two layers, its image tokens counted on three axes, and its processor.

    Args:
        config: class of the configuration.
        model: class of the model.
        parts: classes of the processor and of its part for videos.
        images: the image processor.
        vision: of the vision tower, beside what all of them share.
        text: of the decoder, beside what all of them share.
    """
    processor, videos = parts
    tokenizer = qwen_tokenizer()
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 1e4}
    made = config(
        text_config=text_settings(tokenizer, rope_parameters=rope, **text),
        vision_config={**TOWER, **vision},
        **_qwen_ids(tokenizer),
    )
    together = processor(images, tokenizer, videos(), chat_template=QWEN_TEMPLATE)
    return random_model(model, made), together


def qwen2_vl() -> tuple[PreTrainedModel, Any]:
    """Qwen2-VL."""
    from transformers import (
        Qwen2VLConfig,
        Qwen2VLForConditionalGeneration,
        Qwen2VLImageProcessorPil,
        Qwen2VLProcessor,
        Qwen2VLVideoProcessor,
    )

    return _put_together(
        Qwen2VLConfig,
        Qwen2VLForConditionalGeneration,
        (Qwen2VLProcessor, Qwen2VLVideoProcessor),
        Qwen2VLImageProcessorPil(min_pixels=784, max_pixels=12544),
        {"embed_dim": 32, "mlp_ratio": 2, "patch_size": 14},
    )


def qwen2_5_vl() -> tuple[PreTrainedModel, Any]:
    """Qwen2.5-VL, with window attention in its vision tower."""
    from transformers import (
        Qwen2_5_VLConfig,
        Qwen2_5_VLForConditionalGeneration,
        Qwen2_5_VLProcessor,
        Qwen2VLImageProcessorPil,
        Qwen2VLVideoProcessor,
    )

    windows = {"window_size": 56, "fullatt_block_indexes": [1]}
    return _put_together(
        Qwen2_5_VLConfig,
        Qwen2_5_VLForConditionalGeneration,
        (Qwen2_5_VLProcessor, Qwen2VLVideoProcessor),
        Qwen2VLImageProcessorPil(min_pixels=784, max_pixels=12544),
        {"out_hidden_size": 32, "intermediate_size": 37, "patch_size": 14, **windows},
    )


def qwen3_vl() -> tuple[PreTrainedModel, Any]:
    """Qwen3-VL, whose vision tower feeds several layers of the decoder."""
    from transformers import (
        Qwen2VLImageProcessorPil,
        Qwen3VLConfig,
        Qwen3VLForConditionalGeneration,
        Qwen3VLProcessor,
        Qwen3VLVideoProcessor,
    )

    places = {"num_position_embeddings": 64, "deepstack_visual_indexes": [0]}
    return _put_together(
        Qwen3VLConfig,
        Qwen3VLForConditionalGeneration,
        (Qwen3VLProcessor, Qwen3VLVideoProcessor),
        Qwen2VLImageProcessorPil(min_pixels=1024, max_pixels=16384, patch_size=16),
        {"out_hidden_size": 32, "intermediate_size": 37, "patch_size": 16, **places},
        head_dim=8,
    )


def random_model(kind: Any, config: Any) -> PreTrainedModel:
    """With the same weights each time."""
    import torch

    torch.manual_seed(SEED)
    model: PreTrainedModel = kind(config).eval()
    return model
