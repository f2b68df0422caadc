"""Tiny random vision-language models of other makers, and what plain calls of a model give."""

from __future__ import annotations

from typing import Any

from PIL import Image

from tests.evaluator.scorers.common import hf, torch
from tests.evaluator.scorers.tiny_dual import SMALL
from tests.evaluator.scorers.tiny_qwen import (
    Tiny,
    qwen2_5_vl,
    qwen2_vl,
    qwen3_vl,
    qwen_tokenizer,
    random_model,
    text_settings,
)

_TEMPLATE = (
    "{% for m in messages %}USER: {% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}<image>\n{% else %}{{ c['text'] }}{% endif %}{% endfor %}"
    "{% endfor %} ASSISTANT:"
)
_TOWER = {**SMALL, "image_size": 28, "patch_size": 14, "initializer_range": 0.2}
_SQUARE = {"height": 28, "width": 28}


def llava() -> Tiny:
    """LLaVA-1.5, with bytes and the answers as words."""
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2}
    for piece in (
        *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "▁Yes", "▁No", "▁yes", "▁no", *"YesNoyn"
    ):  # fmt: skip
        vocab.setdefault(piece, len(vocab))
    tokenizer = hf.LlamaTokenizer(vocab=vocab, merges=[])
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
    tokenizer.pad_token = "<unk>"
    reading = {"vision_feature_select_strategy": "default"}
    config = hf.LlavaConfig(
        vision_config=hf.CLIPVisionConfig(**{**_TOWER, "num_hidden_layers": 3}),
        text_config=hf.LlamaConfig(**text_settings(tokenizer)),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_layer=-2,
        **reading,
    )
    images = hf.CLIPImageProcessorPil(size={"shortest_edge": 28}, crop_size=_SQUARE)
    more = {"patch_size": 14, "num_additional_image_tokens": 1, **reading}
    processor = hf.LlavaProcessor(images, tokenizer, chat_template=_TEMPLATE, **more)
    return random_model(hf.LlavaForConditionalGeneration, config), processor


def gemma3() -> Tiny:
    """Gemma 3: image tokens see each other, and a layer sees a window of 16 tokens."""
    tokenizer = qwen_tokenizer("<boi>", "<eoi>", "<img>")
    for name, token in (("boi", "<boi>"), ("eoi", "<eoi>"), ("image", "<img>")):
        setattr(tokenizer, f"{name}_token", token)
        setattr(tokenizer, f"{name}_token_id", tokenizer.convert_tokens_to_ids(token))
    layers = {"sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"]}
    config = hf.Gemma3Config(
        vision_config=_TOWER,
        text_config=text_settings(tokenizer, head_dim=8, query_pre_attn_scalar=8, **layers),
        mm_tokens_per_image=4,
        boi_token_index=tokenizer.boi_token_id,
        eoi_token_index=tokenizer.eoi_token_id,
        image_token_index=tokenizer.image_token_id,
    )
    processor = hf.Gemma3Processor(
        hf.Gemma3ImageProcessorPil(size=_SQUARE), tokenizer, image_seq_length=4,
        chat_template=_TEMPLATE.replace("<image>\n", "<boi>"),
    )  # fmt: skip
    model = random_model(hf.Gemma3ForConditionalGeneration, config)
    torch.nn.init.normal_(model.model.multi_modal_projector.mm_input_projection_weight)
    return model, processor


def paligemma() -> Tiny:
    """PaliGemma, which reads image and prompt in both directions."""
    tokenizer = qwen_tokenizer("<image>")
    tokenizer.bos_token = "<|im_start|>"
    config = hf.PaliGemmaConfig(
        vision_config={**_TOWER, "model_type": "siglip_vision_model", "vision_use_head": False},
        text_config={**text_settings(tokenizer), "model_type": "gemma", "head_dim": 8},
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        projection_dim=32,
        hidden_size=32,
    )
    images = hf.SiglipImageProcessorPil(size=_SQUARE)
    images.image_seq_length = 4
    model = random_model(hf.PaliGemmaForConditionalGeneration, config)
    return model, hf.PaliGemmaProcessor(images, tokenizer)


MAKERS = {
    "qwen2_vl": qwen2_vl,
    "qwen2_5_vl": qwen2_5_vl,
    "qwen3_vl": qwen3_vl,
    "llava": llava,
    "gemma3": gemma3,
}


def chat_inputs(processor: Any, image: Image.Image, prompt: str) -> Any:
    """One image and one prompt through the template of the checkpoint."""
    content = [{"type": "image", "image": image}, {"type": "text", "text": prompt}]
    return processor.apply_chat_template(
        [{"role": "user", "content": content}],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        return_tensors="pt",
    )


def independent_logprobs(tiny: Tiny, image: Image.Image, prompt: str, answer: list[int]) -> Any:
    """Log p of each token of an answer by one plain call of the library's model."""
    model, processor = tiny
    inputs = chat_inputs(processor, image, prompt)
    fills = {"attention_mask": 1, "mm_token_type_ids": 0, "token_type_ids": 0}
    tails = {"input_ids": answer} | {name: [fill] * len(answer) for name, fill in fills.items()}
    for name, tail in tails.items():
        if name in inputs:
            inputs[name] = torch.cat([inputs[name], torch.tensor([tail])], dim=1)
    if hasattr(model.model, "rope_deltas"):
        model.model.rope_deltas = None
    with torch.no_grad():
        logits = model(**inputs).logits[0, -len(answer) - 1 : -1].float()
    return torch.log_softmax(logits, dim=-1)[torch.arange(len(answer)), torch.tensor(answer)]
