"""BLIP-2's matching head, and weights that LAVIS or BLIP code wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn
from transformers import (
    AttentionInterface,
    AttentionMaskInterface,
    Blip2Config,
    Blip2ForImageTextRetrieval,
)
from transformers.initialization import no_init_weights
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from benchmarks.errors import SubmitterError
from evaluator.scorers.checkpoints import Source, resolve
from evaluator.scorers.loading import fill
from evaluator.scorers.registry import Runtime, ScorerRow

_SHOWN = 3


@dataclass(frozen=True)
class Renaming:
    r"""What becomes of each weight."""

    # (pattern, replacement) of whole names; the first that matches counts. `\1` stands for a group
    # of the pattern
    rules: tuple[tuple[str, str], ...]
    unused: tuple[str, ...] = ()  # patterns of weights that take no part in a score

    def new_name(self, name: str) -> str | None:
        """The name of a weight here; None where it is unknown."""
        for pattern, replacement in self.rules:
            if found := re.fullmatch(pattern, name):
                return found.expand(replacement)
        return None

    def used(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The weights that take part, under their old names."""
        unused = re.compile("|".join(f"(?:{pattern})" for pattern in self.unused) or r"(?!)")
        return {name: value for name, value in state.items() if not unused.fullmatch(name)}

    def renamed(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The weights that take part, under their new names."""
        names = {name: self.new_name(name) for name in self.used(state)}
        unknown = [name for name, new in names.items() if new is None]
        if unknown:
            raise SubmitterError(
                "checkpoint_wrong_class",
                f"The checkpoint holds weights that this metric has no place for: {_some(unknown)}.",
                "Is it the checkpoint of another model?",
            )
        return {new: state[name] for name, new in names.items() if new is not None}


def fuse_biases(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """EVA's query and value biases as one of queries, keys and values: [q, 0, v].

    `state`: with `....qkv.q_bias` and `....qkv.v_bias` of shape (d,).
    Returns: The state with `....qkv.bias` of shape (3 d,) in their place.
    """
    fused = {
        name: value for name, value in state.items() if not name.endswith(("q_bias", "v_bias"))
    }
    for name in state:
        if not name.endswith(("q_bias", "v_bias")):
            continue
        layer = name[: -len("q_bias")]
        query, value = (weight(state, f"{layer}{which}_bias") for which in "qv")
        fused[f"{layer}bias"] = torch.cat([query, torch.zeros_like(query), value])
    return fused


def authors_file(row: ScorerRow, runtime: Runtime) -> Source:
    """The file the authors published, or one that `models.convert` made of it."""
    own = runtime.folders.get("model")
    if own is None or own.is_dir():
        return resolve(row, runtime)
    by_path = row.checkpoints["model"].model_copy(update={"file": ""})
    checkpoints = {**row.checkpoints, "model": by_path}
    return resolve(row.model_copy(update={"checkpoints": checkpoints}), runtime, "model")


def weight(state: Mapping[str, Tensor], name: str) -> Tensor:
    """One weight."""
    if name not in state:
        raise SubmitterError(
            "checkpoint_incomplete", f"The checkpoint lacks weights of the model: {name}."
        )
    return state[name]


def count_layers(state: Mapping[str, Tensor], pattern: str) -> int:
    """How many layers there are: one more than the greatest number that a pattern finds."""
    found = [int(match[1]) for name in state if (match := re.match(pattern, name))]
    return max(found, default=-1) + 1


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


NAME = "sdpa_shared_images"


def shared_images_attention(  # noqa: PLR0917 (the library calls it by position)
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    image_of_row: Tensor | None = None,
    **more: Any,
) -> tuple[Tensor, None]:
    """Scaled dot-product attention of r rows to n <= r images.

    `query`: shape (r, heads, tokens, d); `key`: shape (r, heads, keys, d), or (n, heads, keys, d)
    where rows share images; `image_of_row`: for each row its image, in ascending order from 0 to n
    - 1, shape (r,).
    Returns: Shape (r, tokens, heads, d), and None in place of weights.
    """
    if image_of_row is not None and key.shape[0] != query.shape[0]:
        key, value = key[image_of_row], value[image_of_row]
    attended: Tensor
    attended, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **more)
    return attended, None


@dataclass(frozen=True, slots=True)
class Match:
    """What the matching head says of one text with one image, in float32."""

    queries: Tensor  # logits (no match, match) of the query tokens, shape (q, 2)
    text: Tensor  # the same of the text's own tokens, from its first to its last, shape (t, 2)


@dataclass(frozen=True, slots=True)
class _Encoded:
    """Images that went through the vision tower."""

    images: Sequence[Tensor]  # kept, so that no other object takes their identity
    places: Mapping[int, int]  # identity of each image to its row of `states`
    states: Any  # shape (n, patches + 1, d)


class Blip2Matcher:
    """Vision tower, Q-Former and matching head of `Blip2ForImageTextRetrieval`.

    The steps are those of the model's `forward(use_image_text_matching_head=True)`, which returns
    the head's mean only and encodes an image anew for every text. The tokens go straight to the
    embeddings, so that none can be taken for a place of the image.
    """

    def __init__(
        self, model: Any, tokenizer: Any, image_processor: Any, max_tokens: int, batch_texts: int
    ) -> None:
        self._model = model
        # Positions count from the first token, so padding and cuts belong at the end.
        tokenizer.padding_side = tokenizer.truncation_side = "right"
        self._tokenizer = tokenizer
        self._image_processor = image_processor
        self._batch_texts = batch_texts
        positions = model.config.qformer_config.max_position_embeddings
        self._max_tokens = min(max_tokens, positions)
        self._last = _Encoded([], {}, None)
        # The Q-Former takes `image_of_row`, and fewer images than rows.
        AttentionInterface.register(NAME, shared_images_attention)
        AttentionMaskInterface.register(NAME, sdpa_mask)
        model.qformer.config._attn_implementation = NAME

    def prepare(self, image: Image.Image) -> Tensor:
        """Pixels for the vision tower, shape (3, height, width)."""
        made = self._image_processor(images=image, return_tensors="pt")
        pixels: Tensor = made["pixel_values"][0]
        return pixels

    def token_ids(self, text: str) -> list[int]:
        """[CLS], the text's tokens, [SEP]; at most `max_tokens`."""
        encoded = self._tokenizer(text, truncation=True, max_length=self._max_tokens)
        return list(encoded["input_ids"])

    def truncated(self, texts: Sequence[str]) -> list[bool]:
        """Whether the end of a text is cut."""
        whole = self._tokenizer(list(texts), truncation=False, verbose=False)["input_ids"]
        return [len(ids) > self._max_tokens for ids in whole]

    @torch.inference_mode()
    def match(self, images: Sequence[Tensor], texts: Sequence[Sequence[str]]) -> list[list[Match]]:
        """For each prepared image, what the head says of each of its own texts.

        An image that is given twice, or was in the call before, is not encoded again.
        """
        found = [dict[int, Match]() for _ in images]
        asked = [place for place, of_image in enumerate(texts) if of_image]
        if not asked:
            return [[] for _ in images]
        encoded = self._encoded([images[place] for place in asked])
        rows = sorted(
            (encoded.places[id(images[place])], place, column)
            for place in asked
            for column in range(len(texts[place]))
        )
        for start in range(0, len(rows), self._batch_texts):
            batch = rows[start : start + self._batch_texts]
            written = [(state, texts[place][column]) for state, place, column in batch]
            matches = self._match_rows(encoded.states, written)
            for (_, place, column), match in zip(batch, matches, strict=True):
                found[place][column] = match
        return [[of_image[column] for column in sorted(of_image)] for of_image in found]

    def _encoded(self, images: Sequence[Tensor]) -> _Encoded:
        """The states of at least these images; overall and element scores ask one after another."""
        if any(id(image) not in self._last.places for image in images):
            self._last = _Encoded([], {}, None)  # its memory is free before more is taken
            distinct = list({id(image): image for image in images}.values())
            pixels = torch.stack(distinct).to(self._model.device)
            states = self._model.vision_model(pixel_values=pixels).last_hidden_state
            places = {id(image): place for place, image in enumerate(distinct)}
            self._last = _Encoded(distinct, places, states)
        return self._last

    def _match_rows(self, states: Tensor, rows: Sequence[tuple[int, str]]) -> Iterator[Match]:
        """Rows run through their images in ascending order."""
        model = self._model
        text = self._tokenizer(
            [text for _, text in rows],
            padding=True,
            truncation=True,
            max_length=self._max_tokens,
            return_tensors="pt",
        ).to(model.device)
        places = torch.tensor([place for place, _ in rows], device=states.device)
        used, image_of_row = torch.unique_consecutive(places, return_inverse=True)
        queries = model.query_tokens.expand(len(rows), -1, -1)
        seen = text["attention_mask"].new_ones(queries.shape[:2])
        hidden = model.qformer(
            query_embeds=model.embeddings(input_ids=text["input_ids"], query_embeds=queries),
            query_length=queries.shape[1],
            attention_mask=torch.cat([seen, text["attention_mask"]], dim=1),
            encoder_hidden_states=states[used],
            image_of_row=image_of_row,
        ).last_hidden_state
        logits = model.itm_head(hidden.to(model.itm_head.weight.dtype)).float().cpu()
        lengths = text["attention_mask"].sum(dim=1).tolist()
        for of_row, length in zip(logits, lengths, strict=True):
            split = queries.shape[1]
            yield Match(of_row[:split], of_row[split : split + length])


def softmax_of_mean(logits: Tensor) -> float:
    """Probability of a match after averaging logits over queries: BLIP2-ITM's way.

    `logits`: shape (q, 2).
    """
    return float(logits.double().mean(dim=0).softmax(dim=0)[1])


def mean_of_softmax(logits: Tensor) -> float:
    """Mean over tokens of each one's probability of a match: FGA-BLIP2's way.

    `logits`: shape (t, 2), t >= 1.
    """
    return float(logits.double().softmax(dim=1)[:, 1].mean())


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
        (r"Qformer\.bert\.embeddings\.((?:word|position)_embeddings\.weight)", r"embeddings.\1"),
        (r"Qformer\.bert\.embeddings\.LayerNorm\.(.+)", r"qformer.layernorm.\1"),
        (
            _LAYER + r"(attention|crossattention)\.self\.((?:query|key|value)\..+)",
            r"qformer.encoder.layer.\1.\2.attention.\3",
        ),
        (_LAYER + r"((?:attention|crossattention)\.output\..+)", r"qformer.encoder.layer.\1.\2"),
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
class AttentionHeads:
    """Attention heads, which weights do not tell."""

    vision: int = 16
    text: int = 12  # of the Q-Former, or of the text encoder


def blip2_config(state: Mapping[str, Tensor], heads: AttentionHeads) -> Blip2Config:
    """The configuration that fits weights under `transformers`' names."""
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
        "num_attention_heads": heads.text,
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
    state: Mapping[str, Tensor], source: Source, heads: AttentionHeads, dtype: torch.dtype
) -> Blip2ForImageTextRetrieval:
    """The model of LAVIS weights, in evaluation mode on the CPU."""
    named = fuse_biases(RENAMING.renamed(state))
    config = blip2_config(named, heads)
    with no_init_weights():
        model = Blip2ForImageTextRetrieval(config)
    fill(model, named, source)
    model.vision_model.post_layernorm.eps = LAVIS_NORM_EPSILON
    model.vision_model.to(dtype)
    model.eval()
    return model
