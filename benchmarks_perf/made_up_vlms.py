"""Small random vision-language models of the shape that real ones have, and their processors."""

from __future__ import annotations

from typing import Any

import torch
from tokenizers.pre_tokenizers import ByteLevel
from transformers import (
    CLIPImageProcessorPil,
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedModel,
    Qwen2Tokenizer,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
    Qwen2VLImageProcessorPil,
    Qwen2VLProcessor,
    Qwen2VLVideoProcessor,
)

SPECIALS = (
    "<|endoftext|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<image>",
)
WORDS = (
    "Yes",
    "Does this figure show",
    "Please answer Yes or No.",
    "a red ball",
    "two dogs and",
    "a tall tree",
    "some houses",
    "USER",
    "ASSISTANT",
)
"""Words of the texts, so that they have about as many tokens as with a real tokenizer."""
TEMPLATE = (
    "{{% for m in messages %}}USER: {{% for c in m['content'] %}}"
    "{{% if c['type'] == 'image' %}}{image}\n{{% else %}}{{{{ c['text'] }}}}{{% endif %}}"
    "{{% endfor %}} ASSISTANT:{{% endfor %}}"
)


def tokenizer() -> Qwen2Tokenizer:
    """Bytes, and the words above by the pieces that they are joined from."""
    vocab = {letter: i for i, letter in enumerate(sorted(ByteLevel.alphabet()))}
    merges: list[tuple[str, str]] = []
    for word in sorted({word for phrase in WORDS for word in phrase.split()}):
        for letters in (list(word), ["Ġ", *word]):
            for end in range(2, len(letters) + 1):
                pair = ("".join(letters[: end - 1]), letters[end - 1])
                if pair not in merges:
                    merges.append(pair)
                    vocab.setdefault("".join(pair), len(vocab))
    kind: Any = Qwen2Tokenizer
    made: Qwen2Tokenizer = kind(vocab=vocab, merges=merges)
    made.add_special_tokens({"additional_special_tokens": list(SPECIALS)})
    made.pad_token = "<|endoftext|>"
    return made


def qwen2_vl_like(width: int = 256, layers: int = 6) -> tuple[PreTrainedModel, Any]:
    """Of 448 x 448 pixels it makes 256 image tokens."""
    text = tokenizer()
    ids: Any = text.convert_tokens_to_ids
    rope = {"rope_type": "default", "mrope_section": [8, 12, 12], "rope_theta": 1e4}
    vision = {"depth": 4, "embed_dim": 128, "hidden_size": width, "num_heads": 4, "mlp_ratio": 4}
    vision |= {"patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2}
    made: Any = Qwen2VLConfig
    config = made(
        text_config={**_text(width, layers, len(text)), "rope_parameters": rope},
        vision_config=vision,
        image_token_id=ids("<|image_pad|>"),
        video_token_id=ids("<|video_pad|>"),
        vision_start_token_id=ids("<|vision_start|>"),
        vision_end_token_id=ids("<|vision_end|>"),
    )
    images = Qwen2VLImageProcessorPil(min_pixels=784, max_pixels=448 * 448)
    template = TEMPLATE.format(image="<|vision_start|><|image_pad|><|vision_end|>")
    processor = Qwen2VLProcessor(images, text, Qwen2VLVideoProcessor(), chat_template=template)
    return _random(Qwen2VLForConditionalGeneration, config), processor


def llava_like(width: int = 256, layers: int = 6) -> tuple[PreTrainedModel, Any]:
    """Of any image it makes 576 image tokens (336 x 336 pixels)."""
    text = tokenizer()
    vision = CLIPVisionConfig(
        hidden_size=128,
        num_attention_heads=4,
        num_hidden_layers=4,
        intermediate_size=512,
        image_size=336,
        patch_size=14,
    )
    made: Any = LlavaConfig
    config = made(
        vision_config=vision,
        text_config=LlamaConfig(**_text(width, layers, len(text))),
        image_token_index=text.convert_tokens_to_ids("<image>"),
    )
    size = {"height": 336, "width": 336}
    processor = LlavaProcessor(
        CLIPImageProcessorPil(size={"shortest_edge": 336}, crop_size=size),
        text,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=TEMPLATE.format(image="<image>"),
    )
    return _random(LlavaForConditionalGeneration, config), processor


def _text(width: int, layers: int, vocabulary: int) -> dict[str, Any]:
    return {
        "hidden_size": width,
        "num_attention_heads": width // 64,
        "num_key_value_heads": width // 128,
        "num_hidden_layers": layers,
        "intermediate_size": 4 * width,
        "vocab_size": vocabulary,
        "max_position_embeddings": 2048,
        "initializer_range": 0.05,
    }


def _random(kind: Any, config: Any) -> PreTrainedModel:
    torch.manual_seed(0)
    model: PreTrainedModel = kind(config).eval()
    return model
