"""Tiny random dual encoders, saved as their authors' checkpoints are laid out; rows and pictures."""

from __future__ import annotations

import io
import json
import string
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
from PIL import Image

from evaluator.scorers.registry import Checkpoint, Runtime, ScorerRow
from tests.evaluator.scorers.common import hf, later, safetensors, torch

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
    rng = np.random.default_rng(seed)
    return Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))


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


def save_clip(folder: Path, *, negative: bool = False, end: int | None = None) -> Path:
    """A CLIP that reads single letters.

    Args:
        folder: where to.
        negative: turns the text's vectors round, so that cosines change their sign.
        end: number of the end of a text that its configuration names; None: the right one.
    """
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
