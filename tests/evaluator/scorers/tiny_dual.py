"""Tiny random dual encoders, saved as their authors' checkpoints are laid out."""

from __future__ import annotations

import io
import json
import string
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sentencepiece
from PIL import Image

from evaluator.scorers.row import Checkpoint, ScorerRow
from evaluator.scorers.runtime import Runtime

if TYPE_CHECKING:
    import torch
    from transformers import BertTokenizer, CLIPTokenizer

SIDE = 32
PROMPTS = (
    "a red cube on a blue ball",
    "two dogs",
    "a very small green house beside a tall tree, in the rain",
)
LONG = ("a cat and " * 30 + "a dog", "a cat and " * 30 + "a red bus")
"""Both longer than any model here reads; they differ behind the cut only."""
LONG_FROM_THE_START = ("one cat " * 60, "two dogs " * 60)

_TOWER = {
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 37,
}
_VISION = {**_TOWER, "image_size": SIDE, "patch_size": 16}
_SQUARE = {"height": SIDE, "width": SIDE}
_CHARACTERS = string.ascii_lowercase + string.digits + ".,'!?-"


def pictures(count: int = 4) -> list[Image.Image]:
    """Random images, no two of one size."""
    draw = np.random.default_rng(7)
    shapes = [(40 + 9 * i, 64 - 7 * i, 3) for i in range(count)]
    return [Image.fromarray(draw.integers(0, 256, shape, np.uint8)) for shape in shapes]


def row(
    family: str = "dual_encoder", checkpoint: dict[str, Any] | None = None, **options: Any
) -> ScorerRow:
    """A row whose one checkpoint a test replaces by a folder."""
    return ScorerRow(
        name="tiny",
        family=family,
        title="Tiny",
        summary="A tiny random model.",
        formula="as the test says",
        source="this test",
        checkpoints={"model": Checkpoint(id="nobody/tiny", **(checkpoint or {}))},
        options=options,
    )


def here(folder: Path, **more: Any) -> Runtime:
    """Read the model from a folder."""
    return Runtime(folders={"model": folder}, **more)


def clip_tokenizer() -> CLIPTokenizer:
    """CLIP's, with single letters as its only words."""
    from transformers import CLIPTokenizer

    letters = [chr(code) for code in range(33, 127)]
    pieces = [
        *letters,
        *(letter + "</w>" for letter in letters),
        "<|startoftext|>",
        "<|endoftext|>",
    ]
    return CLIPTokenizer(vocab={piece: i for i, piece in enumerate(pieces)}, merges=[])


def bert_tokenizer() -> BertTokenizer:
    """BERT's, with letters as pieces of words."""
    from transformers import BertTokenizer

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_CHARACTERS]
    pieces += ["##" + each for each in _CHARACTERS]
    return BertTokenizer(vocab={piece: i for i, piece in enumerate(pieces)})


def save_clip(folder: Path, *, negative: bool = False, end: int | None = None) -> Path:
    """A CLIP.

    Args:
        folder: where to.
        negative: turns the text's vectors round, so that cosines change their sign.
        end: number of the end of a text that its configuration names; None: the right one.
    """
    import torch
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel

    torch.manual_seed(1)
    tokenizer = clip_tokenizer()
    ends = {
        "vocab_size": len(tokenizer),
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id if end is None else end,
        "pad_token_id": tokenizer.pad_token_id,
    }
    text = {**_TOWER, "max_position_embeddings": 77, **ends}
    model = CLIPModel(CLIPConfig(text_config=text, vision_config=_VISION, projection_dim=24))
    _spread(model)
    if negative:
        model.text_projection.weight.data.neg_()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size=_SQUARE).save_pretrained(folder)
    return folder


def save_align(folder: Path) -> Path:
    """An ALIGN: EfficientNet and BERT."""
    import torch
    from transformers import AlignConfig, AlignModel, EfficientNetImageProcessor

    torch.manual_seed(2)
    tokenizer = bert_tokenizer()
    config = AlignConfig(
        text_config={**_TOWER, "vocab_size": len(tokenizer), "max_position_embeddings": 128},
        vision_config={
            "image_size": SIDE,
            "kernel_sizes": [3, 3, 5],
            "in_channels": [32, 16, 24],
            "out_channels": [16, 24, 30],
            "hidden_dim": 64,
            "strides": [1, 1, 2],
            "num_block_repeats": [1, 1, 2],
            "expand_ratios": [1, 6, 6],
            "depthwise_padding": [],
        },
        projection_dim=64,
    )
    AlignModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    EfficientNetImageProcessor(
        size={"height": 40, "width": 40}, do_center_crop=True, crop_size=_SQUARE
    ).save_pretrained(folder)
    return folder


def save_siglip(folder: Path) -> Path:
    """A SigLIP."""
    import torch
    from transformers import SiglipConfig, SiglipImageProcessor, SiglipModel, SiglipTokenizer

    torch.manual_seed(3)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = SiglipTokenizer(str(_sentence_pieces(folder)))
    text = {**_TOWER, "vocab_size": len(tokenizer), "max_position_embeddings": 64}
    model = SiglipModel(SiglipConfig(text_config=text, vision_config=_VISION))
    model.logit_scale.data.fill_(2.0)
    model.logit_bias.data.fill_(-1.5)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    SiglipImageProcessor(size=_SQUARE).save_pretrained(folder)
    return folder


def _sentence_pieces(folder: Path) -> Path:
    """A vocabulary of single letters, with the numbers of SigLIP's: pad is the end, 1."""
    content = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(_CHARACTERS), *PROMPTS]),
        model_writer=content,
        vocab_size=60,
        hard_vocab_limit=False,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        minloglevel=2,
    )
    place = folder / "spiece.model"
    place.write_bytes(content.getvalue())
    return place


def save_blip2(folder: Path) -> Path:
    """A BLIP-2 for retrieval, with 4 query tokens."""
    import torch
    from transformers import Blip2Config, Blip2ForImageTextRetrieval, BlipImageProcessor

    torch.manual_seed(4)
    tokenizer = bert_tokenizer()
    config = Blip2Config(
        vision_config={**_VISION, "initializer_range": 0.2},
        qformer_config={
            **_TOWER,
            "vocab_size": len(tokenizer) + 1,
            "encoder_hidden_size": 32,
            "cross_attention_frequency": 2,
            "use_qformer_text_input": True,
        },
        num_query_tokens=4,
        image_text_hidden_size=16,
    )
    model = Blip2ForImageTextRetrieval(config)
    _spread(model)
    torch.nn.init.normal_(model.query_tokens)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    BlipImageProcessor(size=_SQUARE).save_pretrained(folder)
    return folder


def open_clip_configuration(**more: Any) -> dict[str, Any]:
    """Of a small model of open_clip; its tokenizer's vocabulary is the real one."""
    return {
        "embed_dim": 16,
        "vision_cfg": {
            "image_size": SIDE,
            "layers": 2,
            "width": 32,
            "head_width": 8,
            "patch_size": 16,
        },
        "text_cfg": {
            "context_length": 77,
            "vocab_size": 49408,
            "width": 32,
            "heads": 4,
            "layers": 2,
            **more.pop("text", {}),
        },
        **more,
    }


def save_open_clip(folder: Path, **more: Any) -> Path:
    """A model of open_clip, as `push_to_hf_hub` writes it."""
    import open_clip  # type: ignore[import-untyped]
    import torch
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    preprocess = {
        "mean": [0.5, 0.4, 0.3],
        "std": [0.3, 0.25, 0.2],
        "interpolation": "bicubic",
        "resize_mode": "shortest",
    }
    configuration = open_clip_configuration(**more)
    written = {"model_cfg": configuration, "preprocess_cfg": preprocess}
    (folder / "open_clip_config.json").write_text(json.dumps(written))
    torch.manual_seed(5)
    model = open_clip.create_model(f"local-dir:{folder}", load_weights=False)
    _spread(model)
    state = {name: value.contiguous() for name, value in model.state_dict().items()}
    save_file(state, folder / "open_clip_model.safetensors")
    return folder


def _spread(model: torch.nn.Module) -> None:
    """Larger weights than a fresh model's, so that its vectors differ from each other."""
    import torch

    for weight in model.parameters():
        if weight.ndim > 1:
            torch.nn.init.normal_(weight, std=0.2)
