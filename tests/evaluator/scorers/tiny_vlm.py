"""Tiny random vision-language models, saved as folders that the loaders read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from evaluator.scorers.row import Checkpoint, ScorerRow
from tests.evaluator.scorers.tiny_qwen import (
    qwen2_5_vl,
    qwen2_vl,
    qwen3_vl,
    qwen_tokenizer,
    random_model,
    text_settings,
)

if TYPE_CHECKING:
    import torch
    from transformers import LlamaTokenizer, PreTrainedModel

LLAVA_TEMPLATE = (
    "{% for m in messages %}USER: {% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}<image>\n{% else %}{{ c['text'] }}{% endif %}{% endfor %}"
    "{% endfor %} ASSISTANT:"
)


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


def llama_tokenizer() -> LlamaTokenizer:
    """Bytes, and the answers as words."""
    from transformers import LlamaTokenizer

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
    from transformers import (
        CLIPImageProcessorPil,
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
    )

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
        text_config=LlamaConfig(**text_settings(tokenizer)),
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
    return random_model(LlavaForConditionalGeneration, config), processor


def gemma3() -> tuple[PreTrainedModel, Any]:
    """Gemma 3: image tokens see each other, and a layer sees a window of 16 tokens."""
    import torch
    from transformers import (
        Gemma3Config,
        Gemma3ForConditionalGeneration,
        Gemma3ImageProcessorPil,
        Gemma3Processor,
    )

    tokenizer: Any = qwen_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": ["<boi>", "<eoi>", "<img>"]})
    for name, token in (("boi", "<boi>"), ("eoi", "<eoi>"), ("image", "<img>")):
        setattr(tokenizer, f"{name}_token", token)
        setattr(tokenizer, f"{name}_token_id", tokenizer.convert_tokens_to_ids(token))
    layers = {"sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"]}
    made: Any = Gemma3Config
    config = made(
        vision_config=_tower(),
        text_config=text_settings(tokenizer, head_dim=8, query_pre_attn_scalar=8, **layers),
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
    model: Any = random_model(Gemma3ForConditionalGeneration, config)
    torch.nn.init.normal_(model.model.multi_modal_projector.mm_input_projection_weight)
    return model, processor


def paligemma() -> tuple[PreTrainedModel, Any]:
    """PaliGemma, which reads image and prompt in both directions."""
    from transformers import (
        PaliGemmaConfig,
        PaliGemmaForConditionalGeneration,
        PaliGemmaProcessor,
        SiglipImageProcessorPil,
    )

    tokenizer: Any = qwen_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
    tokenizer.bos_token = "<|im_start|>"
    made: Any = PaliGemmaConfig
    config = made(
        vision_config={**_tower(), "model_type": "siglip_vision_model", "vision_use_head": False},
        text_config={**text_settings(tokenizer), "model_type": "gemma", "head_dim": 8},
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        projection_dim=32,
        hidden_size=32,
    )
    images: Any = SiglipImageProcessorPil(size={"height": 28, "width": 28})
    images.image_seq_length = 4
    return random_model(PaliGemmaForConditionalGeneration, config), PaliGemmaProcessor(
        images, tokenizer
    )


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


def independent_logprobs(
    model: PreTrainedModel, processor: Any, image: Image.Image, prompt: str, answer: list[int]
) -> torch.Tensor:
    """Log p of each token of an answer by one plain call of the library's model."""
    import torch

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
