"""Tiny random models of the Qwen-VL families, with a tokenizer of bytes and answers."""

from __future__ import annotations

from typing import Any

from tests.evaluator.scorers.common import hf, later, torch
from tests.evaluator.scorers.tiny_dual import SMALL

_SPECIALS = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>",
    "<|image_pad|>", "<|video_pad|>",
)  # fmt: skip
_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['content'] is string %}{{ m['content'] }}{% else %}{% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ c['text'] }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
Tiny = tuple[Any, Any]
"""A model and its processor."""


def qwen_tokenizer(*specials: str) -> Any:
    """Bytes, and Yes, No, yes, no as tokens of their own, with and without a space."""
    alphabet = later("tokenizers.pre_tokenizers").ByteLevel.alphabet()
    vocab = {letter: i for i, letter in enumerate(sorted(alphabet))}
    merges: list[tuple[str, str]] = []
    for word in ("Yes", "No", "yes", "no"):
        for letters in (list(word), ["Ġ", *word]):
            for end in range(2, len(letters) + 1):
                pair = ("".join(letters[: end - 1]), letters[end - 1])
                if pair not in merges:
                    merges.append(pair)
                    vocab.setdefault("".join(pair), len(vocab))
    tokenizer = hf.Qwen2Tokenizer(vocab=vocab, merges=merges)
    tokenizer.add_special_tokens({"additional_special_tokens": [*_SPECIALS, *specials]})
    tokenizer.pad_token = "<|endoftext|>"
    tokenizer.eos_token = "<|im_end|>"
    return tokenizer


def text_settings(tokenizer: Any, **more: Any) -> dict[str, Any]:
    """Of a small decoder."""
    return {
        **SMALL, "num_key_value_heads": 2, "vocab_size": len(tokenizer),
        "max_position_embeddings": 512, "initializer_range": 0.2, "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id, **more,
    }  # fmt: skip


def random_model(kind: Any, config: Any) -> Any:
    """With the same weights each time."""
    torch.manual_seed(0)
    return kind(config).eval()


def _qwen(name: str, patch: int, vision: dict[str, Any], videos: str = "", **text: Any) -> Tiny:
    """A model of two layers, its image tokens counted on three axes, and its processor."""
    tokenizer = qwen_tokenizer()
    tower = {
        "depth": 2, "hidden_size": 32, "num_heads": 4, "spatial_merge_size": 2,
        "temporal_patch_size": 2, "patch_size": patch, **vision,
    }  # fmt: skip
    ids = {
        f"{part}_id": tokenizer.convert_tokens_to_ids(token)
        for part, token in (
            ("image_token", "<|image_pad|>"), ("video_token", "<|video_pad|>"),
            ("vision_start_token", "<|vision_start|>"), ("vision_end_token", "<|vision_end|>"),
        )
    }  # fmt: skip
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 1e4}
    settings = text_settings(tokenizer, rope_parameters=rope, **text)
    config = getattr(hf, f"{name}Config")(text_config=settings, vision_config=tower, **ids)
    images = hf.Qwen2VLImageProcessorPil(
        min_pixels=4 * patch**2, max_pixels=64 * patch**2, patch_size=patch
    )
    processor = getattr(hf, f"{name}Processor")(
        images,
        tokenizer,
        getattr(hf, f"{videos or name}VideoProcessor")(),
        chat_template=_TEMPLATE,
    )
    return random_model(getattr(hf, f"{name}ForConditionalGeneration"), config), processor


def qwen2_vl() -> Tiny:
    """Qwen2-VL."""
    return _qwen("Qwen2VL", 14, {"embed_dim": 32, "mlp_ratio": 2})


def qwen2_5_vl() -> Tiny:
    """Qwen2.5-VL, with window attention in its vision tower."""
    sizes = {"out_hidden_size": 32, "intermediate_size": 37}
    windows = {"window_size": 56, "fullatt_block_indexes": [1]}
    return _qwen("Qwen2_5_VL", 14, {**sizes, **windows}, videos="Qwen2VL")


def qwen3_vl() -> Tiny:
    """Qwen3-VL, whose vision tower feeds several layers of the decoder."""
    sizes = {"out_hidden_size": 32, "intermediate_size": 37}
    places = {"num_position_embeddings": 64, "deepstack_visual_indexes": [0]}
    return _qwen("Qwen3VL", 16, {**sizes, **places}, head_dim=8)
