"""BLIP-2 with its matching head from the weights that LAVIS saves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import Blip2Config, Blip2ForImageTextRetrieval
from transformers.initialization import no_init_weights

from evaluator.scorers.checkpoints import Source
from evaluator.scorers.loading import fill
from evaluator.scorers.models.lavis_weights import Renaming, count_layers, fuse_biases, weight

LAVIS_NORM_EPSILON = 1e-5
"""Of the layer norm after the vision tower: there it is torch's default, in the blocks 1e-6."""

_EVA = r"visual_encoder\.blocks\.(\d+)\."
_LAYER = r"Qformer\.bert\.encoder\.layer\.(\d+)\."
RENAMING = Renaming(
    rules=(
        (r"query_tokens", r"query_tokens"),
        (r"visual_encoder\.cls_token", r"vision_model.embeddings.class_embedding"),
        (r"visual_encoder\.pos_embed", r"vision_model.embeddings.position_embedding"),
        (
            r"visual_encoder\.patch_embed\.proj\.(weight|bias)",
            r"vision_model.embeddings.patch_embedding.\1",
        ),
        (_EVA + r"norm([12])\.(.+)", r"vision_model.encoder.layers.\1.layer_norm\2.\3"),
        (_EVA + r"attn\.(q_bias|v_bias)", r"vision_model.encoder.layers.\1.self_attn.qkv.\2"),
        (_EVA + r"attn\.qkv\.weight", r"vision_model.encoder.layers.\1.self_attn.qkv.weight"),
        (_EVA + r"attn\.proj\.(.+)", r"vision_model.encoder.layers.\1.self_attn.projection.\2"),
        (_EVA + r"mlp\.(fc[12]\..+)", r"vision_model.encoder.layers.\1.mlp.\2"),
        (r"ln_vision\.(.+)", r"vision_model.post_layernorm.\1"),
        (
            r"Qformer\.bert\.embeddings\.((?:word|position)_embeddings\.weight)",
            r"embeddings.\1",
        ),
        (r"Qformer\.bert\.embeddings\.LayerNorm\.(.+)", r"qformer.layernorm.\1"),
        (
            _LAYER + r"(attention|crossattention)\.self\.((?:query|key|value)\..+)",
            r"qformer.encoder.layer.\1.\2.attention.\3",
        ),
        (
            _LAYER + r"((?:attention|crossattention)\.output\..+)",
            r"qformer.encoder.layer.\1.\2",
        ),
        (
            _LAYER + r"((?:intermediate|output)(?:_query)?\.(?:dense|LayerNorm)\..+)",
            r"qformer.encoder.layer.\1.\2",
        ),
        (r"vision_proj\.(.+)", r"vision_projection.\1"),
        (r"text_proj\.(.+)", r"text_projection.\1"),
        (r"itm_head\.(.+)", r"itm_head.\1"),
    ),
    unused=(
        r"temp",
        r"Qformer\.bert\.embeddings\.position_ids",
        r"Qformer\.cls\..+",  # language modelling
        r"mask_proj\..+",  # FGA-BLIP2: finds the elements in training only
    ),
)


@dataclass(frozen=True, slots=True)
class Heads:
    """Attention heads, which weights do not tell."""

    vision: int = 16
    qformer: int = 12


def from_lavis(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """LAVIS' `Blip2Qformer` weights as those of `Blip2ForImageTextRetrieval`.

    Raises:
        SubmitterError: `checkpoint_wrong_class` (unknown weights), `checkpoint_incomplete`.
    """
    return fuse_biases(RENAMING.renamed(state))


def blip2_config(state: Mapping[str, Tensor], heads: Heads) -> Blip2Config:
    """The configuration that fits weights under `transformers`' names.

    Raises:
        SubmitterError: `checkpoint_incomplete`.
    """
    patches = weight(state, "vision_model.embeddings.patch_embedding.weight")
    places = weight(state, "vision_model.embeddings.position_embedding").shape[1] - 1
    queries = weight(state, "query_tokens")
    words = weight(state, "embeddings.word_embeddings.weight")
    qformer, first = r"qformer\.encoder\.layer\.(\d+)\.", "qformer.encoder.layer.0."
    n_layers = count_layers(state, qformer)
    n_crossing = len(
        {name for name in state if name.endswith("crossattention.attention.key.weight")}
    )
    vision = {
        "hidden_size": patches.shape[0],
        "patch_size": patches.shape[-1],
        "image_size": round(places**0.5) * patches.shape[-1],
        "intermediate_size": weight(state, "vision_model.encoder.layers.0.mlp.fc1.weight").shape[0],
        "num_hidden_layers": count_layers(state, r"vision_model\.encoder\.layers\.(\d+)\."),
        "num_attention_heads": heads.vision,
    }
    reader = {
        "hidden_size": queries.shape[2],
        "encoder_hidden_size": patches.shape[0],
        "vocab_size": words.shape[0],
        "max_position_embeddings": weight(state, "embeddings.position_embeddings.weight").shape[0],
        "intermediate_size": weight(state, f"{first}intermediate.dense.weight").shape[0],
        "num_hidden_layers": n_layers,
        "num_attention_heads": heads.qformer,
        "cross_attention_frequency": -(-n_layers // max(n_crossing, 1)),
        "use_qformer_text_input": True,
    }
    return Blip2Config(
        vision_config=vision,
        qformer_config=reader,
        num_query_tokens=queries.shape[1],
        image_text_hidden_size=weight(state, "vision_projection.weight").shape[0],
    )


def build_blip2(
    state: Mapping[str, Tensor], source: Source, heads: Heads, dtype: torch.dtype
) -> Blip2ForImageTextRetrieval:
    """The model of LAVIS weights, in evaluation mode on the CPU.

    Args:
        state: under LAVIS' names.
        source: for messages.
        heads: attention heads of the two parts.
        dtype: of the vision tower; what follows it runs in float32, as the authors' code does.

    Raises:
        SubmitterError: `checkpoint_wrong_class`, `checkpoint_incomplete`, `checkpoint_damaged`.
    """
    named = from_lavis(state)
    config = blip2_config(named, heads)
    with no_init_weights():
        model = Blip2ForImageTextRetrieval(config)
    fill(model, named, source)
    model.vision_model.post_layernorm.eps = LAVIS_NORM_EPSILON
    model.vision_model.to(dtype)
    model.eval()
    return model
