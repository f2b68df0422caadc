"""A small random BLIP-2 with its matching head, and what is needed to score with it."""

from __future__ import annotations

import string
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    import torch
    from transformers import BertTokenizer, BlipImageProcessorPil

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = "a the of on two red blue cat dog mat house man woman hat runs in and big small"


def bert_tokenizer() -> BertTokenizer:
    """Common words whole, everything else by its letters."""
    from transformers import BertTokenizer

    pieces = [*string.ascii_lowercase, *string.digits, *string.punctuation]
    vocabulary = dict.fromkeys([*SPECIAL, *WORDS.split(), *pieces, *(f"##{p}" for p in pieces)])
    return BertTokenizer(vocab={word: place for place, word in enumerate(vocabulary)})


def spread(model: torch.nn.Module, seed: int, std: float) -> None:
    """Draw all weights anew: the library's own are too near 0 for an image to matter."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in model.named_parameters():
            drawn = torch.randn(value.shape, generator=generator)
            value.copy_(
                1 + 0.1 * drawn if "norm" in name.lower() and value.ndim == 1 else std * drawn
            )


def tiny_blip2(tokenizer: BertTokenizer, side: int = 32, **more: Any) -> Any:
    """32 wide, 2 layers, 4 query tokens."""
    from transformers import Blip2Config, Blip2ForImageTextRetrieval

    size = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 37,
    }
    qformer = {
        **size,
        "vocab_size": len(tokenizer) + 1,
        "encoder_hidden_size": 32,
        "cross_attention_frequency": 2,
        "use_qformer_text_input": True,
        "max_position_embeddings": 128,
    }
    config = Blip2Config(
        vision_config={**size, "image_size": side, "patch_size": 16},
        qformer_config=qformer,
        num_query_tokens=4,
        image_text_hidden_size=16,
        **more,
    )
    model: Any = Blip2ForImageTextRetrieval(config)
    spread(model, seed=0, std=0.2)
    return model.eval()


def square_processor(side: int) -> BlipImageProcessorPil:
    """Squeezes images to a square."""
    from transformers import BlipImageProcessorPil

    return BlipImageProcessorPil(size={"height": side, "width": side})


def save_blip2(folder: Path, model: Any, tokenizer: BertTokenizer, side: int = 32) -> Path:
    """As a folder that `from_pretrained` reads."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    square_processor(side).save_pretrained(folder)
    return folder


def made_up_images(count: int, seed: int = 0) -> list[Image.Image]:
    """Coloured noise, wider than high."""
    drawn = np.random.default_rng(seed).integers(0, 256, (count, 40, 60, 3), dtype=np.uint8)
    return [Image.fromarray(pixels) for pixels in drawn]


def to_lavis(model: Any) -> dict[str, torch.Tensor]:
    """The weights as LAVIS names them, with those that no score needs."""
    import torch

    state: dict[str, torch.Tensor] = {}
    for name, value in model.state_dict().items():
        if name.endswith("self_attn.qkv.bias"):
            block = "visual_encoder.blocks." + name.split(".")[3] + ".attn."
            query, keys, values = value.chunk(3)
            assert not keys.any()
            state |= {block + "q_bias": query.clone(), block + "v_bias": values.clone()}
            continue
        old = name
        for new, original in (
            ("vision_model.embeddings.class_embedding", "visual_encoder.cls_token"),
            ("vision_model.embeddings.position_embedding", "visual_encoder.pos_embed"),
            ("vision_model.embeddings.patch_embedding", "visual_encoder.patch_embed.proj"),
            ("vision_model.encoder.layers", "visual_encoder.blocks"),
            ("self_attn.projection", "attn.proj"),
            ("self_attn", "attn"),
            ("layer_norm", "norm"),
            ("vision_model.post_layernorm", "ln_vision"),
            ("attention.attention", "attention.self"),
            ("qformer.layernorm", "Qformer.bert.embeddings.LayerNorm"),
            ("qformer.encoder", "Qformer.bert.encoder"),
            ("vision_projection", "vision_proj"),
            ("text_projection", "text_proj"),
        ):
            old = old.replace(new, original)
        if old.startswith("embeddings."):
            old = f"Qformer.bert.{old}"
        state[old] = value
    words = state["Qformer.bert.embeddings.word_embeddings.weight"]
    return state | {
        "temp": torch.tensor(0.07),
        "mask_proj.layers.0.weight": torch.ones(2, 32),
        "Qformer.bert.embeddings.position_ids": torch.arange(128)[None],
        "Qformer.cls.predictions.decoder.weight": words,
    }


def without_key_biases(model: Any) -> Any:
    """EVA's attention has no bias of its keys."""
    import torch

    with torch.no_grad():
        for layer in model.vision_model.encoder.layers:
            bias = layer.self_attn.qkv.bias
            bias[len(bias) // 3 : 2 * len(bias) // 3] = 0
    return model


def check_cut_after(scorer: Any, n_words: int) -> None:
    """Prompts of so many words are read whole; one more is not read, and that is said."""
    whole = " ".join(["cat"] * n_words)
    assert scorer.truncated([whole, f"{whole} dog"]) == [False, True]
    image = [scorer.prepare(made_up_images(1)[0])]
    assert scorer.score(image, [whole]) == scorer.score(image, [f"{whole} dog"])


def check_image_matters(scorer: Any, prompt: str) -> None:
    """Two images with one prompt score differently."""
    first, second = scorer.score(
        [scorer.prepare(image) for image in made_up_images(2)], [prompt] * 2
    )
    assert abs(first - second) > 1e-3
