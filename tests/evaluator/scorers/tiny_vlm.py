"""Tiny random vision-language models, saved as folders that the loaders read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from tokenizers.pre_tokenizers import ByteLevel
from transformers import (
    CLIPImageProcessorPil,
    CLIPVisionConfig,
    Gemma3Config,
    Gemma3ForConditionalGeneration,
    Gemma3ImageProcessorPil,
    Gemma3Processor,
    LlamaConfig,
    LlamaTokenizer,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PaliGemmaConfig,
    PaliGemmaForConditionalGeneration,
    PaliGemmaProcessor,
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
    SiglipImageProcessorPil,
)

from evaluator.scorers.row import Checkpoint, ScorerRow

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
LLAVA_TEMPLATE = (
    "{% for m in messages %}USER: {% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}<image>\n{% else %}{{ c['text'] }}{% endif %}{% endfor %}"
    "{% endfor %} ASSISTANT:"
)
SEED = 0


def picture(seed: int, width: int = 56, height: int = 56) -> Image.Image:
    """Noise in colour."""
    rng = np.random.default_rng(seed)
    return Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))


def row_of(**changes: Any) -> ScorerRow:
    """A row whose checkpoints come from folders."""
    given: dict[str, Any] = {
        "name": "tiny",
        "family": "vlm_likelihood",
        "title": "Tiny",
        "summary": "Made for tests.",
        "formula": "p",
        "source": "tests",
        "checkpoints": {"model": Checkpoint(id="made/up")},
    }
    return ScorerRow(**{**given, **changes})


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


def _text(tokenizer: Any, **more: Any) -> dict[str, Any]:
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
        text_config=_text(tokenizer, rope_parameters=rope),
        vision_config=vision,
        **_qwen_ids(tokenizer),
    )
    images = Qwen2VLImageProcessorPil(min_pixels=784, max_pixels=12544)
    processor = Qwen2VLProcessor(
        images, tokenizer, Qwen2VLVideoProcessor(), chat_template=QWEN_TEMPLATE
    )
    return _random(Qwen2VLForConditionalGeneration, config), processor


def qwen2_5_vl() -> tuple[PreTrainedModel, Any]:
    """Qwen2.5-VL, with window attention in its vision tower."""
    tokenizer = qwen_tokenizer()
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 1e4}
    vision: dict[str, Any] = {"depth": 2, "hidden_size": 32, "out_hidden_size": 32, "num_heads": 4}
    vision |= {"intermediate_size": 37, "patch_size": 14, "spatial_merge_size": 2}
    vision |= {"temporal_patch_size": 2, "window_size": 56, "fullatt_block_indexes": [1]}
    config = Qwen2_5_VLConfig(
        text_config=_text(tokenizer, rope_parameters=rope),
        vision_config=vision,
        **_qwen_ids(tokenizer),
    )
    images = Qwen2VLImageProcessorPil(min_pixels=784, max_pixels=12544)
    processor = Qwen2_5_VLProcessor(
        images, tokenizer, Qwen2VLVideoProcessor(), chat_template=QWEN_TEMPLATE
    )
    return _random(Qwen2_5_VLForConditionalGeneration, config), processor


def qwen3_vl() -> tuple[PreTrainedModel, Any]:
    """Qwen3-VL, whose vision tower feeds several layers of the decoder."""
    tokenizer = qwen_tokenizer()
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 1e4}
    vision: dict[str, Any] = {"depth": 2, "hidden_size": 32, "out_hidden_size": 32, "num_heads": 4}
    vision |= {"intermediate_size": 37, "patch_size": 16, "spatial_merge_size": 2}
    vision |= {"temporal_patch_size": 2, "num_position_embeddings": 64}
    vision |= {"deepstack_visual_indexes": [0]}
    config = Qwen3VLConfig(
        text_config=_text(tokenizer, rope_parameters=rope, head_dim=8),
        vision_config=vision,
        **_qwen_ids(tokenizer),
    )
    images = Qwen2VLImageProcessorPil(min_pixels=1024, max_pixels=16384, patch_size=16)
    processor = Qwen3VLProcessor(
        images, tokenizer, Qwen3VLVideoProcessor(), chat_template=QWEN_TEMPLATE
    )
    return _random(Qwen3VLForConditionalGeneration, config), processor


def llama_tokenizer() -> LlamaTokenizer:
    """Bytes, and the answers as words."""
    vocab: dict[str, int] = {"<unk>": 0, "<s>": 1, "</s>": 2}
    for byte in range(256):
        vocab[f"<0x{byte:02X}>"] = len(vocab)
    for piece in ("▁", "▁Yes", "▁No", "▁yes", "▁no", *"YesNoyn"):
        vocab.setdefault(piece, len(vocab))
    tokenizer = LlamaTokenizer(vocab=vocab, merges=[])
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
    tokenizer.pad_token = "<unk>"
    return tokenizer


def llava() -> tuple[PreTrainedModel, Any]:
    """LLaVA-1.5."""
    tokenizer: Any = llama_tokenizer()
    vision = CLIPVisionConfig(
        hidden_size=32,
        num_attention_heads=4,
        num_hidden_layers=3,
        intermediate_size=37,
        image_size=28,
        patch_size=14,
        initializer_range=0.2,
    )
    config = LlavaConfig(
        vision_config=vision,
        text_config=LlamaConfig(**_text(tokenizer)),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_layer=-2,
        vision_feature_select_strategy="default",
    )
    images = CLIPImageProcessorPil(
        size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28}
    )
    processor = LlavaProcessor(
        images,
        tokenizer,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=LLAVA_TEMPLATE,
    )
    return _random(LlavaForConditionalGeneration, config), processor


def gemma3() -> tuple[PreTrainedModel, Any]:
    """Gemma 3: image tokens see each other, and a layer sees a window of 16 tokens."""
    tokenizer: Any = qwen_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": ["<boi>", "<eoi>", "<img>"]})
    for name, token in (("boi", "<boi>"), ("eoi", "<eoi>"), ("image", "<img>")):
        setattr(tokenizer, f"{name}_token", token)
        setattr(tokenizer, f"{name}_token_id", tokenizer.convert_tokens_to_ids(token))
    layers = {"sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"]}
    made: Any = Gemma3Config
    config = made(
        vision_config=_tower(),
        text_config=_text(tokenizer, head_dim=8, query_pre_attn_scalar=8, **layers),
        mm_tokens_per_image=4,
        boi_token_index=tokenizer.boi_token_id,
        eoi_token_index=tokenizer.eoi_token_id,
        image_token_index=tokenizer.image_token_id,
    )
    processor = Gemma3Processor(
        Gemma3ImageProcessorPil(size={"height": 28, "width": 28}),
        tokenizer,
        image_seq_length=4,
        chat_template=LLAVA_TEMPLATE.replace("<image>\n", "<boi>"),
    )
    model: Any = _random(Gemma3ForConditionalGeneration, config)
    torch.nn.init.normal_(model.model.multi_modal_projector.mm_input_projection_weight)
    return model, processor


def paligemma() -> tuple[PreTrainedModel, Any]:
    """PaliGemma, which reads image and prompt in both directions."""
    tokenizer: Any = qwen_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
    tokenizer.bos_token = "<|im_start|>"
    made: Any = PaliGemmaConfig
    config = made(
        vision_config={**_tower(), "model_type": "siglip_vision_model", "vision_use_head": False},
        text_config={**_text(tokenizer), "model_type": "gemma", "head_dim": 8},
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        projection_dim=32,
        hidden_size=32,
    )
    images: Any = SiglipImageProcessorPil(size={"height": 28, "width": 28})
    images.image_seq_length = 4
    return _random(PaliGemmaForConditionalGeneration, config), PaliGemmaProcessor(images, tokenizer)


def _tower() -> dict[str, Any]:
    sizes = {"hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2}
    places = {"image_size": 28, "patch_size": 14, "initializer_range": 0.2}
    return {**sizes, **places, "intermediate_size": 37}


MAKERS = {
    "qwen2_vl": qwen2_vl,
    "qwen2_5_vl": qwen2_5_vl,
    "qwen3_vl": qwen3_vl,
    "llava": llava,
    "gemma3": gemma3,
}


def saved(model: PreTrainedModel, processor: Any, folder: Path) -> Path:
    """A folder as the Hub's are."""
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def _random(kind: Any, config: Any) -> PreTrainedModel:
    torch.manual_seed(SEED)
    model: PreTrainedModel = kind(config).eval()
    return model


def independent_logprobs(
    model: PreTrainedModel, processor: Any, image: Image.Image, prompt: str, answer: list[int]
) -> torch.Tensor:
    """Log p of each token of an answer by one plain call of the library's model."""
    content = [{"type": "image", "image": image}, {"type": "text", "text": prompt}]
    inputs = processor.apply_chat_template(
        [{"role": "user", "content": content}],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        return_tensors="pt",
    )
    for name, fill in (
        ("input_ids", None),
        ("attention_mask", 1),
        ("mm_token_type_ids", 0),
        ("token_type_ids", 0),
    ):
        if name in inputs:
            tail = answer if fill is None else [fill] * len(answer)
            inputs[name] = torch.cat([inputs[name], torch.tensor([tail])], dim=1)
    if hasattr(model.model, "rope_deltas"):
        model.model.rope_deltas = None
    with torch.no_grad():
        logits = model(**inputs).logits[0, -len(answer) - 1 : -1].float()
    return torch.log_softmax(logits, dim=-1)[torch.arange(len(answer)), torch.tensor(answer)]
