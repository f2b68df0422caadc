"""Phi-4-multimodal from a checkpoint of its authors' own code, with the vision LoRA merged.

Those checkpoints (`phi4mm`; CROCScore's is one) hold each weight of the decoder once and two LoRAs
beside it, one per modality. For images the sum W + (alpha / r) B A of the vision LoRA takes part.
The library's own class reads the merged weights without code from the checkpoint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import (
    Phi4MultimodalConfig,
    Phi4MultimodalFeatureExtractor,
    Phi4MultimodalForCausalLM,
    Phi4MultimodalImageProcessor,
    Phi4MultimodalProcessor,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from benchmarks.errors import SubmitterError
from evaluator.scorers.models.vlm_setting import Setting

IMAGE_TOKEN = "<|endoftext10|>"  # noqa: S105 - a token of a text
AUDIO_TOKEN = "<|endoftext11|>"  # noqa: S105
_BASE = "base_layer."
_LORA = re.compile(r"(?P<layer>.+)\.lora_(?P<half>[AB])\.(?P<adapter>\w+)\.weight")
_IMAGE = "model.embed_tokens_extend.image_embed."
_RENAMED = {
    f"{_IMAGE}img_projection.0.": f"{_IMAGE}img_projection_up.",
    f"{_IMAGE}img_projection.2.": f"{_IMAGE}img_projection_down.",
    f"{_IMAGE}glb_GN": f"{_IMAGE}global_img_feature_extensor",
    f"{_IMAGE}sub_GN": f"{_IMAGE}sub_img_feature_extensor",
}
_NOT_READ = (".audio_embed.", ".position_ids")
"""Parts of names: the ear takes no part, and positions are counted, not learned."""
_SMALL_EAR = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_blocks": 1,
    "num_attention_heads": 2,
    "ext_pw_out_channel": 16,
    "depthwise_separable_out_channel": 16,
    "nemo_conv_channels": 16,
}
"""The library's class cannot do without an ear; it is taken out again."""
_KEPT_SETTINGS = (
    "attention_dropout",
    "bos_token_id",
    "embd_pdrop",
    "eos_token_id",
    "hidden_act",
    "hidden_size",
    "initializer_range",
    "intermediate_size",
    "max_position_embeddings",
    "num_attention_heads",
    "num_hidden_layers",
    "num_key_value_heads",
    "original_max_position_embeddings",
    "pad_token_id",
    "partial_rotary_factor",
    "resid_pdrop",
    "rms_norm_eps",
    "rope_scaling",
    "rope_theta",
    "sliding_window",
    "tie_word_embeddings",
    "vocab_size",
)


def merged(
    weights: Mapping[str, Tensor], scale: float, adapter: str = "vision"
) -> dict[str, Tensor]:
    """Weights of the library's class: one LoRA added to the layers it belongs to, others dropped.

    Args:
        weights: as the authors' code saves them.
        scale: alpha / r of the adapter.
        adapter: its name.

    Returns:
        By the library's names. Sums are made in float32 and kept in the layer's own precision.

    Raises:
        SubmitterError: `checkpoint_wrong_class`, half of a LoRA is missing or has no layer.
    """
    halves: dict[str, dict[str, Tensor]] = {}
    found: dict[str, Tensor] = {}
    for name, values in weights.items():
        part = _LORA.fullmatch(name)
        if part is None:
            if not any(unread in name for unread in _NOT_READ):
                found[native_name(name)] = values
        elif part["adapter"] == adapter and not any(unread in name for unread in _NOT_READ):
            halves.setdefault(native_name(f"{part['layer']}.weight"), {})[part["half"]] = values
    for name, half in halves.items():
        if set(half) != {"A", "B"} or name not in found:
            raise SubmitterError(
                "checkpoint_wrong_class", f"The {adapter} LoRA of {name} is not whole."
            )
        change = half["B"].float() @ half["A"].float()
        found[name] = (found[name].float() + scale * change).to(found[name].dtype)
    return found


def native_name(name: str) -> str:
    """The library's name of a weight that is not a LoRA's."""
    plain = name.replace(_BASE, "")
    for theirs, ours in _RENAMED.items():
        if plain.startswith(theirs):
            return ours + plain[len(theirs) :]
    return plain


def native_config(saved: Mapping[str, Any]) -> Phi4MultimodalConfig:
    """The library's configuration; the vision tower's shape is the same in all checkpoints.

    Args:
        saved: `config.json` of a `phi4mm` checkpoint.
    """
    vision: dict[str, Any] = dict(saved.get("vision_config", {}))
    layer = saved.get("embd_layer", {}).get("image_embd_layer", {})
    if "crop_size" in layer:
        vision.setdefault("crop_size", layer["crop_size"])
    kept = {name: saved[name] for name in _KEPT_SETTINGS if name in saved}
    made: Any = Phi4MultimodalConfig
    config: Phi4MultimodalConfig = made(**kept, vision_config=vision, audio_config=_SMALL_EAR)
    return config


def load_phi4(setting: Setting) -> tuple[PreTrainedModel, Phi4MultimodalProcessor]:
    """Model and processor of a `phi4mm` checkpoint, on the device.

    Raises:
        SubmitterError: `checkpoint_wrong_class`, weights or the LoRA's settings are missing.
    """
    saved = json.loads((setting.source.place / "config.json").read_bytes())
    lora = saved.get("vision_lora")
    if not lora:
        raise SubmitterError(
            "checkpoint_wrong_class", f"{setting.source}: config.json has no vision_lora."
        )
    shards = sorted(setting.source.place.glob("*.safetensors"))
    weights = {name: values for path in shards for name, values in load_file(path).items()}
    config = native_config(saved)
    kind: Any = Phi4MultimodalForCausalLM
    model, report = kind.from_pretrained(
        None,
        config=config,
        state_dict=merged(weights, lora["lora_alpha"] / lora["r"]),
        dtype=setting.torch_dtype,
        output_loading_info=True,
    )
    _check(report, setting)
    model.model.embed_tokens_extend.audio_embed = nn.Identity()
    placed: PreTrainedModel = model.to(setting.runtime.device).eval()
    return placed, _processor(setting)


def _check(report: Mapping[str, Any], setting: Setting) -> None:
    """Whether all weights were found that are read.

    Raises:
        SubmitterError: `checkpoint_wrong_class`.
    """
    missing = [name for name in report["missing_keys"] if ".audio_embed." not in name]
    strange = [*missing, *report["unexpected_keys"], *report["mismatched_keys"]]
    if strange:
        raise SubmitterError(
            "checkpoint_wrong_class",
            f"{setting.source}: {len(strange)} weights do not fit, among them {strange[0]}.",
        )


def _processor(setting: Setting) -> Phi4MultimodalProcessor:
    """Up to 36 crops of 448 pixels and the whole image, as its authors' processor makes them."""
    tokenizer = setting.from_folder(PreTrainedTokenizerFast)
    for kind, token in (("image", IMAGE_TOKEN), ("audio", AUDIO_TOKEN)):
        setattr(tokenizer, f"{kind}_token", token)
        setattr(tokenizer, f"{kind}_token_id", tokenizer.convert_tokens_to_ids(token))
    images = setting.from_folder(Phi4MultimodalImageProcessor)
    return Phi4MultimodalProcessor(images, Phi4MultimodalFeatureExtractor(), tokenizer)
