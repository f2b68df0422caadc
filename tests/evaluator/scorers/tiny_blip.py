"""Tiny random models of the BLIP family and of T5: BLIP-2's two kinds, BLIP-VQA, ImageReward."""

from __future__ import annotations

import json
import string
from itertools import pairwise
from pathlib import Path
from typing import Any

from PIL import Image

from tests.evaluator.scorers.common import hf, safetensors, torch
from tests.evaluator.scorers.tiny_dual import SIDE, SMALL, VISION, bert_tokenizer, picture, saved
from tests.evaluator.scorers.tiny_qwen import Tiny

_WORDS = "a the of on two red blue cat dog mat house man woman hat runs in and big small"
_QFORMER = {**SMALL, "encoder_hidden_size": 32, "cross_attention_frequency": 2}


def word_tokenizer() -> Any:
    """BERT's, with some common words whole."""
    return bert_tokenizer(*_WORDS.split())


def t5_tokenizer(*answers: str) -> Any:
    """Characters, and the answers as words."""
    words = answers or ("▁Yes", "▁No", "▁yes", "▁no")
    pieces = ["<pad>", "</s>", "<unk>", "▁", *words]
    pieces += [letter for letter in string.printable if not letter.isspace()]
    vocab = [(piece, -0.5 if piece in words else -2.0) for piece in pieces]
    return hf.T5Tokenizer(vocab=vocab, extra_ids=0)


def t5_config(tokenizer: Any) -> Any:
    """FLAN's kind of T5, whose output head is its own."""
    config = hf.T5Config(
        vocab_size=len(tokenizer), d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4,
        feed_forward_proj="gated-gelu", decoder_start_token_id=0, pad_token_id=0, eos_token_id=1,
        initializer_factor=0.3,
    )  # fmt: skip
    config.tie_word_embeddings = False
    return config


def square(side: int = SIDE) -> Any:
    """Squeezes images to a square."""
    return hf.BlipImageProcessorPil(size={"height": side, "width": side})


def spread(model: Any, seed: int = 0, std: float = 0.2) -> Any:
    """Draw all weights anew: the library's own are too near 0 for an image to matter."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in model.named_parameters():
            drawn = torch.randn(value.shape, generator=generator)
            norm = "norm" in name.lower() and value.ndim == 1
            value.copy_(1 + 0.1 * drawn if norm else std * drawn)
    return model.eval()


def blip2_t5(instruct: bool = False) -> Tiny:
    """BLIP-2 or InstructBLIP with a T5 whose output head is its own."""
    tokenizer, bert = t5_tokenizer(), bert_tokenizer("[DEC]")
    name, parts = ("InstructBlip", [bert]) if instruct else ("Blip2", [])
    processor = getattr(hf, f"{name}Processor")(square(), tokenizer, *parts, num_query_tokens=4)
    config = getattr(hf, f"{name}Config")(
        vision_config=VISION,
        qformer_config={**_QFORMER, "vocab_size": len(bert), "max_position_embeddings": 256},
        text_config=t5_config(processor.tokenizer).to_dict(),
        num_query_tokens=4,
        image_token_index=processor.tokenizer.convert_tokens_to_ids("<image>"),
    )
    torch.manual_seed(0)
    model = getattr(hf, f"{name}ForConditionalGeneration")(config)
    for part, values in model.named_parameters():
        if not part.startswith("language_model") and values.ndim > 1:
            torch.nn.init.normal_(values, std=0.2)
    own = torch.randn_like(model.language_model.shared.weight)
    model.language_model.lm_head.weight = torch.nn.Parameter(0.3 * own)
    return model.eval(), processor


def blip_vqa() -> Tiny:
    """BLIP for question answering; [DEC] and [ENC] end its vocabulary."""
    tokenizer = bert_tokenizer("yes", "no", "[DEC]", "[ENC]")
    end = {f"{name}_token_id": tokenizer.sep_token_id for name in ("sep", "eos")}
    text = {
        **SMALL, **end, "vocab_size": len(tokenizer), "encoder_hidden_size": 32,
        "max_position_embeddings": 64, "is_decoder": True,
        "bos_token_id": tokenizer.convert_tokens_to_ids("[DEC]"),
        "pad_token_id": tokenizer.pad_token_id,
    }  # fmt: skip
    model = hf.BlipForQuestionAnswering(hf.BlipConfig(text_config=text, vision_config=VISION))
    return spread(model), hf.BlipProcessor(square(), tokenizer)


def clip_flant5_folders(folder: Path) -> dict[str, Path]:
    """Folders of CLIP-FlanT5's parts, laid out as on the Hub."""
    torch.manual_seed(0)
    places = {role: folder / role for role in ("model", "vision", "tokenizer")}
    tokenizer = t5_tokenizer()
    saved(places["tokenizer"], tokenizer)
    saved(places["model"], hf.T5ForConditionalGeneration(t5_config(tokenizer)))
    nn = torch.nn
    projector = nn.Sequential(nn.Linear(24, 32), nn.GELU(), nn.Linear(32, 32))
    weights = {f"mm_projector.{name}": v for name, v in projector.state_dict().items()}
    safetensors.save_file(weights, places["model"] / "projector.safetensors")
    config = places["model"] / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"model_type": "clip_t5"}))
    vision = {**SMALL, "hidden_size": 24, "num_hidden_layers": 3, "initializer_range": 0.2}
    tower = hf.CLIPVisionModel(hf.CLIPVisionConfig(**vision, image_size=28, patch_size=14))
    crop = {"height": 28, "width": 28}
    images = hf.CLIPImageProcessorPil(size={"shortest_edge": 28}, crop_size=crop)
    saved(places["vision"], tower, images)
    return places


def blip2_matching(tokenizer: Any, side: int = SIDE, **more: Any) -> Any:
    """BLIP-2 with its heads for matching and contrast; 4 query tokens."""
    config = hf.Blip2Config(
        vision_config={**VISION, "image_size": side},
        qformer_config={
            **_QFORMER, "vocab_size": len(tokenizer) + 1, "use_qformer_text_input": True,
            "max_position_embeddings": 128,
        },
        num_query_tokens=4,
        image_text_hidden_size=16,
        **more,
    )  # fmt: skip
    return spread(hf.Blip2ForImageTextRetrieval(config))


def to_lavis(model: Any) -> dict[str, Any]:
    """The weights as LAVIS names them, with those that no score needs."""
    state: dict[str, Any] = {}
    for name, value in model.state_dict().items():
        if name.endswith("self_attn.qkv.bias"):
            block = "visual_encoder.blocks." + name.split(".")[3] + ".attn."
            query, keys, values = value.chunk(3)
            assert not keys.any()
            state |= {block + "q_bias": query.clone(), block + "v_bias": values.clone()}
            continue
        old = _renamed(
            name,
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
        )
        state[f"Qformer.bert.{old}" if old.startswith("embeddings.") else old] = value
    words = state["Qformer.bert.embeddings.word_embeddings.weight"]
    return state | {
        "temp": torch.tensor(0.07),
        "mask_proj.layers.0.weight": torch.ones(2, 32),
        "Qformer.bert.embeddings.position_ids": torch.arange(128)[None],
        "Qformer.cls.predictions.decoder.weight": words,
    }


def without_key_biases(model: Any) -> Any:
    """EVA's attention has no bias of its keys."""
    with torch.no_grad():
        for layer in model.vision_model.encoder.layers:
            bias = layer.self_attn.qkv.bias
            bias[len(bias) // 3 : 2 * len(bias) // 3] = 0
    return model


def reward_model(n_words: int) -> Any:
    """ImageReward: encoders of the library, and the head as linear layers and dropouts."""
    nn = torch.nn
    vision = hf.BlipVisionConfig(**VISION, layer_norm_eps=1e-6)
    text = hf.BlipTextConfig(
        **SMALL, encoder_hidden_size=32, vocab_size=n_words, max_position_embeddings=64
    )
    # Of the head; its five layers stand at 0, 2, 4, 6 and 7.
    first, second, third, fourth, fifth = (
        nn.Linear(*pair) for pair in pairwise((32, 24, 12, 8, 4, 1))
    )
    drop = nn.Dropout
    model = nn.Module()
    model.vision = hf.BlipVisionModel(vision)
    model.text = hf.BlipTextModel(text, add_pooling_layer=False)
    model.layers = nn.Sequential(first, drop(), second, drop(), third, drop(), fourth, fifth)
    return spread(model, seed=1)


def reward_state(model: Any) -> dict[str, Any]:
    """The weights under the authors' names, with those that no score needs."""
    state = {
        "blip.vision_proj.weight": torch.ones(2, 2),
        "blip.text_proj.bias": torch.ones(2),
        "blip.text_encoder.embeddings.position_ids": torch.arange(64)[None],
    }
    for name, value in model.state_dict().items():
        old = _renamed(
            name,
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
        )
        state["mlp." + old if old.startswith("layers.") else old] = value
    return state


def _renamed(name: str, *steps: tuple[str, str]) -> str:
    for ours, theirs in steps:
        name = name.replace(ours, theirs)
    return name


def wide_pictures(count: int) -> list[Image.Image]:
    """Coloured noise, wider than high."""
    return [picture(seed, 60, 40) for seed in range(count)]
