"""Tiny random encoder-decoder VLMs."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn
    from transformers import BertTokenizer, PreTrainedModel, T5Config, T5Tokenizer

SIDE = 32


def t5_tokenizer() -> T5Tokenizer:
    """Characters, and the answers as words."""
    from transformers import T5Tokenizer

    pieces = ["<pad>", "</s>", "<unk>", "▁", "▁Yes", "▁No", "▁yes", "▁no"]
    pieces += [letter for letter in string.printable if not letter.isspace()]
    scores = {"▁Yes": -0.5, "▁No": -0.5, "▁yes": -0.5, "▁no": -0.5}
    return T5Tokenizer(vocab=[(piece, scores.get(piece, -2.0)) for piece in pieces], extra_ids=0)


def bert_tokenizer(*specials: str) -> BertTokenizer:
    """Characters, yes and no."""
    from transformers import BertTokenizer

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "yes", "no", *string.ascii_lowercase]
    words += [f"##{letter}" for letter in string.ascii_lowercase] + ["?", ".", '"', ":"]
    words += specials
    return BertTokenizer(vocab={word: i for i, word in enumerate(words)})


def t5_config(tokenizer: T5Tokenizer) -> T5Config:
    """FLAN's kind of T5, whose output head is its own."""
    from transformers import T5Config

    made: Any = T5Config
    config: T5Config = made(
        vocab_size=len(tokenizer),
        d_model=32,
        d_kv=8,
        d_ff=37,
        num_layers=2,
        num_heads=4,
        feed_forward_proj="gated-gelu",
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=1,
        initializer_factor=0.3,
    )
    config.tie_word_embeddings = False
    return config


def _vision() -> dict[str, Any]:
    sizes = {"hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2}
    return {**sizes, "intermediate_size": 37, "image_size": SIDE, "patch_size": 16}


def _qformer(vocabulary: int) -> dict[str, Any]:
    return {
        "hidden_size": 32,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "intermediate_size": 37,
        "encoder_hidden_size": 32,
        "cross_attention_frequency": 2,
        "vocab_size": vocabulary,
        "max_position_embeddings": 256,
    }


def blip2(instruct: bool = False) -> tuple[PreTrainedModel, Any]:
    """BLIP-2 or InstructBLIP with a T5."""
    import torch
    from torch import nn
    from transformers import (
        Blip2Config,
        Blip2ForConditionalGeneration,
        Blip2Processor,
        BlipImageProcessorPil,
        InstructBlipConfig,
        InstructBlipForConditionalGeneration,
        InstructBlipProcessor,
    )

    tokenizer, bert = t5_tokenizer(), bert_tokenizer("[DEC]")
    images = BlipImageProcessorPil(size={"height": SIDE, "width": SIDE})
    if instruct:
        processor: Any = InstructBlipProcessor(images, tokenizer, bert, num_query_tokens=4)
        made: Any = InstructBlipConfig
        kind: Any = InstructBlipForConditionalGeneration
    else:
        processor = Blip2Processor(images, tokenizer, num_query_tokens=4)
        made, kind = Blip2Config, Blip2ForConditionalGeneration
    config = made(
        vision_config=_vision(),
        qformer_config=_qformer(len(bert)),
        text_config=t5_config(processor.tokenizer).to_dict(),
        num_query_tokens=4,
        image_token_index=processor.tokenizer.convert_tokens_to_ids("<image>"),
    )
    torch.manual_seed(0)
    model = kind(config)
    shaken(model)
    own = torch.randn_like(model.language_model.shared.weight)
    model.language_model.lm_head.weight = nn.Parameter(0.3 * own)
    return model.eval(), processor


def shaken(model: nn.Module) -> None:
    """Vision towers start out near zero, where an image would change nothing."""
    from torch import nn

    for name, values in model.named_parameters():
        if not name.startswith("language_model") and values.ndim > 1:
            nn.init.normal_(values, std=0.2)


def blip_vqa() -> tuple[PreTrainedModel, Any]:
    """BLIP for question answering; [DEC] and [ENC] end its vocabulary."""
    import torch
    from torch import nn
    from transformers import (
        BlipConfig,
        BlipForQuestionAnswering,
        BlipImageProcessorPil,
        BlipProcessor,
    )

    tokenizer = bert_tokenizer("[DEC]", "[ENC]")
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "intermediate_size": 37,
        "encoder_hidden_size": 32,
        "max_position_embeddings": 64,
        "bos_token_id": tokenizer.convert_tokens_to_ids("[DEC]"),
        "sep_token_id": tokenizer.sep_token_id,
        "eos_token_id": tokenizer.sep_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "is_decoder": True,
    }
    torch.manual_seed(0)
    model = BlipForQuestionAnswering(BlipConfig(text_config=text, vision_config=_vision()))
    for values in model.parameters():
        if values.ndim > 1:
            nn.init.normal_(values, std=0.2)
    images = BlipImageProcessorPil(size={"height": SIDE, "width": SIDE})
    return model.eval(), BlipProcessor(images, tokenizer)


def clip_flant5_folders(folder: Path) -> dict[str, Path]:
    """Folders of CLIP-FlanT5's parts, laid out as on the Hub."""
    import torch
    from safetensors.torch import save_file
    from torch import nn
    from transformers import (
        CLIPImageProcessorPil,
        CLIPVisionConfig,
        CLIPVisionModel,
        T5ForConditionalGeneration,
    )

    torch.manual_seed(0)
    places = {role: folder / role for role in ("model", "vision", "tokenizer")}
    tokenizer = t5_tokenizer()
    tokenizer.save_pretrained(places["tokenizer"])
    T5ForConditionalGeneration(t5_config(tokenizer)).save_pretrained(places["model"])
    projector = nn.Sequential(nn.Linear(24, 32), nn.GELU(), nn.Linear(32, 32))
    weights = {f"mm_projector.{name}": v for name, v in projector.state_dict().items()}
    save_file(weights, places["model"] / "projector.safetensors")
    config = places["model"] / "config.json"
    saved = json.loads(config.read_text()) | {"model_type": "clip_t5"}
    config.write_text(json.dumps(saved))
    vision = CLIPVisionConfig(
        hidden_size=24,
        num_attention_heads=4,
        num_hidden_layers=3,
        intermediate_size=37,
        image_size=28,
        patch_size=14,
        initializer_range=0.2,
    )
    CLIPVisionModel(vision).save_pretrained(places["vision"])
    size = {"height": 28, "width": 28}
    images = CLIPImageProcessorPil(size={"shortest_edge": 28}, crop_size=size)
    images.save_pretrained(places["vision"])
    return places
