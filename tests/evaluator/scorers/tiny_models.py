"""Tiny models of every kind, with the weights and processors that checkpoints have."""

from __future__ import annotations

import io
import json
import string
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
from PIL import Image

from evaluator.scorers.registry import Checkpoint, Runtime, ScorerRow
from tests.evaluator.scorers.common import hf, later, safetensors, torch
from tests.kit.pictures import noise

SIDE = 32
PROMPTS = (
    "a red cube on a blue ball",
    "two dogs",
    "a very small green house beside a tall tree, in the rain",
)
LONG = ("a cat and " * 30 + "a dog", "a cat and " * 30 + "a red bus")
"""Both longer than any model here reads; they differ behind the cut only."""
LONG_FROM_THE_START = ("one cat " * 60, "two dogs " * 60)
SMALL = {
    "hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 37,
}  # fmt: skip
VISION = {**SMALL, "image_size": SIDE, "patch_size": 16}
_SQUARE = {"height": SIDE, "width": SIDE}
_CHARACTERS = string.ascii_lowercase + string.digits + string.punctuation


def picture(seed: int, width: int = 56, height: int = 56) -> Image.Image:
    """Noise in colour."""
    return noise(seed, width, height)


def pictures(count: int = 4) -> list[Image.Image]:
    """No two of one size."""
    draw = np.random.default_rng(7)
    shapes = [(40 + 9 * i, 64 - 7 * i, 3) for i in range(count)]
    return [Image.fromarray(draw.integers(0, 256, shape, np.uint8)) for shape in shapes]


def row(
    family: str = "dual_encoder", checkpoint: dict[str, Any] | None = None, **options: Any
) -> ScorerRow:
    """A row whose one checkpoint a test replaces by a folder."""
    given = Checkpoint.model_validate({"id": "nobody/tiny", **(checkpoint or {})})
    return ScorerRow(
        name="tiny", family=family, title="Tiny", summary="Tiny.", formula="f", source="tests",
        checkpoints={"model": given}, options=options,
    )  # fmt: skip


def here(folder: Path, **more: Any) -> Runtime:
    """Read the model from a folder."""
    return Runtime(folders={"model": folder}, **more)


def bert_tokenizer(*words: str) -> Any:
    """BERT's: some words whole, all others by their letters."""
    pieces = [*_CHARACTERS, *("##" + each for each in _CHARACTERS), *words]
    known = dict.fromkeys(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces])
    return hf.BertTokenizer(vocab={piece: i for i, piece in enumerate(known)})


def saved(folder: Path, *parts: Any) -> Path:
    """A model and what reads for it, in a folder as the Hub's are."""
    for part in parts:
        part.save_pretrained(folder)
    return folder


def save_bert(folder: Path) -> tuple[Any, Any]:
    """A small encoder of texts, saved; the model and its tokenizer."""
    tokenizer = bert_tokenizer("a", "cat", "two", "dogs", *"0123456789")
    config = hf.BertConfig(
        vocab_size=len(tokenizer), hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=32,
    )  # fmt: skip
    torch.manual_seed(0)
    model = hf.BertModel(config).eval()
    saved(folder, model, tokenizer)
    return model, tokenizer


def save_clip(folder: Path, *, negative: bool = False, end: int | None = None) -> Path:
    """A CLIP that reads single letters."""
    letters = [chr(code) for code in range(33, 127)]
    ends = ["<|startoftext|>", "<|endoftext|>"]
    pieces = [*letters, *(letter + "</w>" for letter in letters), *ends]
    tokenizer = hf.CLIPTokenizer(vocab={piece: i for i, piece in enumerate(pieces)}, merges=[])
    torch.manual_seed(1)
    text = {
        **SMALL, "max_position_embeddings": 77, "vocab_size": len(tokenizer),
        "bos_token_id": tokenizer.bos_token_id, "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id if end is None else end,
    }  # fmt: skip
    config = hf.CLIPConfig(text_config=text, vision_config=VISION, projection_dim=24)
    model = _spread(hf.CLIPModel(config))
    if negative:
        model.text_projection.weight.data.neg_()
    images = hf.CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size=_SQUARE)
    return saved(folder, model, tokenizer, images)


def save_align(folder: Path) -> Path:
    """An ALIGN: EfficientNet and BERT."""
    torch.manual_seed(2)
    tokenizer = bert_tokenizer()
    vision = {
        "image_size": SIDE, "kernel_sizes": [3, 3, 5], "in_channels": [32, 16, 24],
        "out_channels": [16, 24, 30], "hidden_dim": 64, "strides": [1, 1, 2],
        "num_block_repeats": [1, 1, 2], "expand_ratios": [1, 6, 6], "depthwise_padding": [],
    }  # fmt: skip
    text = {**SMALL, "vocab_size": len(tokenizer), "max_position_embeddings": 128}
    config = hf.AlignConfig(text_config=text, vision_config=vision, projection_dim=64)
    images = hf.EfficientNetImageProcessor(
        size={"height": 40, "width": 40}, do_center_crop=True, crop_size=_SQUARE
    )
    return saved(folder, hf.AlignModel(config), tokenizer, images)


def save_siglip(folder: Path) -> Path:
    """A SigLIP that reads single letters; one number ends and pads, as in the real ones."""
    torch.manual_seed(3)
    content = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(_CHARACTERS), *PROMPTS]), model_writer=content,
        vocab_size=90, hard_vocab_limit=False, pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
        minloglevel=2,
    )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "spiece.model").write_bytes(content.getvalue())
    tokenizer = hf.SiglipTokenizer(str(folder / "spiece.model"))
    text = {**SMALL, "vocab_size": len(tokenizer), "max_position_embeddings": 64}
    model = hf.SiglipModel(hf.SiglipConfig(text_config=text, vision_config=VISION))
    model.logit_scale.data.fill_(2.0)
    model.logit_bias.data.fill_(-1.5)
    return saved(folder, model, tokenizer, hf.SiglipImageProcessor(size=_SQUARE))


def open_clip_configuration(**more: Any) -> dict[str, Any]:
    """Of a small model of open_clip; its tokenizer's vocabulary is the real one."""
    text = {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 4, "layers": 2}
    vision = {"image_size": SIDE, "layers": 2, "width": 32, "head_width": 8, "patch_size": 16}
    text |= more.pop("text", {})
    return {"embed_dim": 16, "vision_cfg": vision, "text_cfg": text, **more}


def save_open_clip(folder: Path, **more: Any) -> Path:
    """A model of open_clip, as `push_to_hf_hub` writes it."""
    folder.mkdir(parents=True, exist_ok=True)
    preprocess = {
        "mean": [0.5, 0.4, 0.3], "std": [0.3, 0.25, 0.2],
        "interpolation": "bicubic", "resize_mode": "shortest",
    }  # fmt: skip
    written = {"model_cfg": open_clip_configuration(**more), "preprocess_cfg": preprocess}
    (folder / "open_clip_config.json").write_text(json.dumps(written))
    torch.manual_seed(5)
    model = _spread(later("open_clip").create_model(f"local-dir:{folder}", load_weights=False))
    state = {name: value.contiguous() for name, value in model.state_dict().items()}
    safetensors.save_file(state, folder / "open_clip_model.safetensors")
    return folder


def _spread(model: Any) -> Any:
    """Larger weights than a fresh model's, so that its vectors differ from each other."""
    for weight in model.parameters():
        if weight.ndim > 1:
            torch.nn.init.normal_(weight, std=0.2)
    return model


_WORDS = "a the of on two red blue cat dog mat house man woman hat runs in and big small"
_QFORMER = {**SMALL, "encoder_hidden_size": 32, "cross_attention_frequency": 2}


def word_tokenizer() -> Any:
    """BERT's, with some common words whole."""
    return bert_tokenizer(*_WORDS.split())


def t5_tokenizer(*answers: str, without: str = "") -> Any:
    """Characters but some, and the answers as words."""
    words = answers or ("▁Yes", "▁No", "▁yes", "▁no")
    pieces = ["<pad>", "</s>", "<unk>", "▁", *words]
    pieces += [one for one in string.printable if not one.isspace() and one not in without]
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


def blip2_t5(instruct: bool = False, tokenizer: Any = None) -> Tiny:
    """BLIP-2 or InstructBLIP with a T5 whose output head is its own."""
    tokenizer, bert = tokenizer or t5_tokenizer(), bert_tokenizer("[DEC]")
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
        **SMALL, encoder_hidden_size=32, vocab_size=n_words, max_position_embeddings=160
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
        "blip.text_encoder.embeddings.position_ids": torch.arange(160)[None],
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
Tiny = tuple[Any, Any]  # A model and its processor


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


def save_language_model(folder: Path) -> Path:
    """A Qwen2 without a chat template; as checkpoints come, it is to be sampled, with a penalty."""
    tokenizer = qwen_tokenizer()
    tokenizer.chat_template = None
    settings = text_settings(tokenizer, max_position_embeddings=2048, initializer_range=0.5)
    model = random_model(hf.Qwen2ForCausalLM, hf.Qwen2Config(**settings))
    model.generation_config.do_sample = True
    model.generation_config.repetition_penalty = 3.0
    return saved(folder, model, tokenizer)


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
        images, tokenizer, getattr(hf, f"{videos or name}VideoProcessor")(), chat_template=_TEMPLATE
    )
    return random_model(getattr(hf, f"{name}ForConditionalGeneration"), config), processor


def qwen2_vl(**text: Any) -> Tiny:
    """Qwen2-VL."""
    return _qwen("Qwen2VL", 14, {"embed_dim": 32, "mlp_ratio": 2}, **text)


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


_VLM_TEMPLATE = (
    "{% for m in messages %}USER: {% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}<image>\n{% else %}{{ c['text'] }}{% endif %}{% endfor %}"
    "{% endfor %} ASSISTANT:"
)
_TOWER = {**SMALL, "image_size": 28, "patch_size": 14, "initializer_range": 0.2}
_VLM_SQUARE = {"height": 28, "width": 28}


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
    images = hf.CLIPImageProcessorPil(size={"shortest_edge": 28}, crop_size=_VLM_SQUARE)
    more = {"patch_size": 14, "num_additional_image_tokens": 1, **reading}
    processor = hf.LlavaProcessor(images, tokenizer, chat_template=_VLM_TEMPLATE, **more)
    return random_model(hf.LlavaForConditionalGeneration, config), processor


def llava_onevision() -> Tiny:
    """LLaVA-OneVision: an image as a whole and in tiles, whose tokens follow each other."""
    tokenizer = qwen_tokenizer("<image>", "<video>")
    grid = [[28, 28], [28, 56], [56, 28]]
    config = hf.LlavaOnevisionConfig(
        vision_config={**_TOWER, "model_type": "siglip_vision_model", "vision_use_head": False},
        text_config=hf.Qwen2Config(**text_settings(tokenizer)),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        video_token_index=tokenizer.convert_tokens_to_ids("<video>"),
        image_grid_pinpoints=grid,
    )
    images = hf.LlavaOnevisionImageProcessorPil(size=_VLM_SQUARE, image_grid_pinpoints=grid)
    processor = hf.LlavaOnevisionProcessor(
        images, tokenizer, hf.LlavaOnevisionVideoProcessor(size=_VLM_SQUARE),
        num_image_tokens=4, vision_feature_select_strategy="full", chat_template=_VLM_TEMPLATE,
        vision_aspect_ratio="anyres_max_9",
    )  # fmt: skip
    return random_model(hf.LlavaOnevisionForConditionalGeneration, config), processor


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
        hf.Gemma3ImageProcessorPil(size=_VLM_SQUARE), tokenizer, image_seq_length=4,
        chat_template=_VLM_TEMPLATE.replace("<image>\n", "<boi>"),
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
    images = hf.SiglipImageProcessorPil(size=_VLM_SQUARE)
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
