"""MPS: an image's tokens attend to those of its prompt that bear on what people prefer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, scaled_dot_product_attention, silu
from transformers import AutoConfig, AutoImageProcessor, AutoTokenizer, CLIPConfig, CLIPModel
from transformers.initialization import no_init_weights

from evaluator.scorers.answering import SharedImageScorer
from evaluator.scorers.checkpoints import Source, check_class, resolve
from evaluator.scorers.loading import (
    dtype_of,
    environment,
    fill,
    load_processor,
    read_weights,
    reading,
)
from evaluator.scorers.models.blip import Renaming, authors_file, count_layers, weight
from evaluator.scorers.models.inputs import Processed, stack
from evaluator.scorers.registry import Family, Frozen, Loaded, Runtime, ScorerRow
from evaluator.scoring.contract import Verdict

_BLOCK = r"(?:mps\.)?cross_model\.layers\.(\d+)\."
RENAMING = Renaming(
    rules=(
        (r"(?:mps\.)?model\.(.+)", r"clip.\1"),
        (_BLOCK + r"0\.fn\.(.+)", r"blocks.\1.cross.\2"),
        (_BLOCK + r"1\.fn\.(.+)", r"blocks.\1.own.\2"),
    ),
    unused=(r"(?:mps\.)?model\.(?:text|vision)_model\.embeddings\.position_ids",),
)


class Options(Frozen):
    """What differs between rows."""

    condition: str  # Words of what people judge images by
    threshold: (
        float  # Above this share of the largest product, a token of the prompt is attended to
    )


def gated(values: Tensor) -> Tensor:
    """SwiGLU: the first half of the last axis times SiLU of the second."""
    plain, gate = values.chunk(2, dim=-1)
    found: Tensor = silu(gate) * plain
    return found


def by_heads(values: Tensor, heads: int) -> Tensor:
    """Shape (n, tokens, heads d) as (n, heads, tokens, d)."""
    found: Tensor = values.unflatten(-1, (heads, -1)).transpose(1, 2)
    return found


class CrossAttention(nn.Module):
    """Attention to another text with one head of keys and values, and a layer beside it.

    Its parts are named as in the authors' file.
    """

    def __init__(self, width: int, heads: int, head: int, inner: int) -> None:
        super().__init__()
        self._heads = heads
        self.norm = nn.LayerNorm(width)
        self.to_q = nn.Linear(width, heads * head, bias=False)
        self.to_kv = nn.Linear(width, 2 * head, bias=False)
        self.to_out = nn.Linear(heads * head, width, bias=False)
        self.ff = nn.ModuleDict(
            {
                "0": nn.Linear(width, 2 * inner, bias=False),
                "2": nn.Linear(inner, width, bias=False),
            }
        )

    def forward(self, states: Tensor, context: Tensor, attended: Tensor) -> Tensor:
        """What is added to states (n, tokens, width); context (n, t, width), attended (n, t)."""
        normed = self.norm(states)
        keys, values = (one[:, None] for one in self.to_kv(context).chunk(2, dim=-1))
        queries = by_heads(self.to_q(normed), self._heads)
        shape = (-1, self._heads, -1, -1)
        seen = scaled_dot_product_attention(
            queries, keys.expand(shape), values.expand(shape), attended[:, None, None]
        )
        beside = self.ff["2"](gated(self.ff["0"](normed)))
        found: Tensor = self.to_out(seen.transpose(1, 2).flatten(2)) + beside
        return found


class SelfAttention(nn.Module):
    """Attention with rotary positions and one head of keys and values, and a layer beside it.

    Its parts are named as in the authors' file.
    """

    def __init__(self, width: int, heads: int, head: int, inner: int) -> None:
        super().__init__()
        self._heads = heads
        self._sizes = (heads * head, head, head, 2 * inner)
        self.norm = nn.LayerNorm(width)
        self.rotary_emb = nn.Module()
        self.rotary_emb.register_buffer("inv_freq", torch.empty(head // 2))
        self.fused_attn_ff_proj = nn.Linear(width, sum(self._sizes), bias=False)
        self.attn_out = nn.Linear(heads * head, width, bias=False)
        self.ff_out = nn.ModuleDict({"1": nn.Linear(inner, width, bias=False)})

    def forward(self, states: Tensor) -> Tensor:
        """What is added to states, shape (n, tokens, width)."""
        parts = self.fused_attn_ff_proj(self.norm(states)).split(self._sizes, dim=-1)
        queries, keys = (
            self._turned(by_heads(parts[0], self._heads)),
            self._turned(parts[1][:, None]),
        )
        shape = (-1, self._heads, -1, -1)
        seen = scaled_dot_product_attention(
            queries, keys.expand(shape), parts[2][:, None].expand(shape)
        )
        beside = self.ff_out["1"](gated(parts[3]))
        found: Tensor = self.attn_out(seen.transpose(1, 2).flatten(2)) + beside
        return found

    def _turned(self, values: Tensor) -> Tensor:
        """Values of shape (..., tokens, d), each pair (i, i + d/2) turned by its token's angle."""
        steps = torch.arange(values.shape[-2], device=values.device)
        angles = torch.outer(steps, self.rotary_emb.get_buffer("inv_freq").float()).repeat(1, 2)
        first, second = values.chunk(2, dim=-1)
        turned = values * angles.cos() + torch.cat([-second, first], dim=-1) * angles.sin()
        return turned.to(values.dtype)


class MPSModel(nn.Module):
    """CLIP and blocks of cross-attention from the image's tokens to the text's."""

    def __init__(self, config: CLIPConfig, n_blocks: int, sizes: Sequence[int]) -> None:
        super().__init__()
        self.clip: Any = CLIPModel(config)
        self.blocks = nn.ModuleList(
            nn.ModuleDict({"cross": CrossAttention(*sizes), "own": SelfAttention(*sizes)})
            for _ in range(n_blocks)
        )

    def image_tokens(self, pixels: Tensor) -> Tensor:
        """Projected states, the class token's first, shape (n, patches + 1, d)."""
        states: Tensor = self.clip.visual_projection(
            self.clip.vision_model(pixel_values=pixels).last_hidden_state
        )
        return states

    def text_tokens(self, ids: Tensor) -> Tensor:
        """Projected states of all places, padding too, shape (n, t, d)."""
        states: Tensor = self.clip.text_projection(
            self.clip.text_model(input_ids=ids).last_hidden_state
        )
        return states

    def scores(self, images: Tensor, texts: Tensor, ends: Tensor, attended: Tensor) -> Tensor:
        """exp(logit_scale) cos(end of the text, class token after the blocks), shape (n,).

        `images`: from `image_tokens`; `texts`: from `text_tokens`; `ends`: place of each text's
        end, shape (n,); `attended`: whether a token of a text is attended to, shape (n, t).
        """
        states = images
        for block in self.blocks:
            parts: Any = block
            states = states + parts["cross"](states, texts, attended)
            states = states + parts["own"](states)
        end = texts[torch.arange(len(texts), device=texts.device), ends]
        cosines = cosine_similarity(end.double(), states[:, 0].double(), dim=-1)
        found: Tensor = self.clip.logit_scale.double().exp() * cosines
        return found


def attended_tokens(texts: Tensor, condition: Tensor, threshold: float) -> Tensor:
    """Whether each token of each text is attended to, shape (n, t).

    Its largest product with a token of the condition, as a share of the largest of its own text,
    must be above the threshold. (The authors take the largest of a batch, of one text in their
    scripts.)

    `texts`: shape (n, t, d); `condition`: shape (c, d).
    """
    largest = (texts @ condition.T).amax(dim=-1).float()
    return largest / largest.amax(dim=-1, keepdim=True) > threshold


class MPS(SharedImageScorer):
    """See `MPSModel.scores`; each image and each text of a call is encoded once."""

    def __init__(
        self, model: MPSModel, tokenizer: Any, images: Processed, options: Options, rows: int
    ) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._to_pixels = images
        self._length = model.clip.config.text_config.max_position_embeddings
        self._threshold = options.threshold
        self._rows = rows
        with torch.inference_mode():
            self._condition = model.text_tokens(self._ids([options.condition]))[0]

    def prepare(self, image: Image.Image) -> Tensor:
        """Pixels, shape (3, height, width)."""
        return self._to_pixels(image)

    @torch.inference_mode()
    def score_texts(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]]
    ) -> list[list[Verdict]]:
        """For each image, one score per prompt of its own list."""
        rows = [(place, prompt) for place, its in enumerate(prompts) for prompt in its]
        found: list[list[Verdict]] = [[] for _ in images]
        if not rows:
            return found
        clip = self._model.clip
        tokens = self._model.image_tokens(stack(images, clip.device, clip.dtype))
        for start in range(0, len(rows), self._rows):
            batch = rows[start : start + self._rows]
            places = [place for place, _ in batch]
            scores = self._scores(tokens[places], [prompt for _, prompt in batch])
            for place, score in zip(places, scores, strict=True):
                found[place].append(score)
        return found

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Whether the end of each prompt is cut."""
        whole = self._tokenizer(list(prompts), truncation=False, verbose=False)["input_ids"]
        return [len(ids) > self._length for ids in whole]

    def _scores(self, images: Tensor, prompts: list[str]) -> list[Verdict]:
        ids = self._ids(prompts)
        texts = self._model.text_tokens(ids)
        attended = attended_tokens(texts, self._condition, self._threshold)
        ends = (ids == self._tokenizer.eos_token_id).int().argmax(dim=1)
        scores = self._model.scores(images, texts, ends, attended).tolist()
        return [
            Verdict.of(score)
            if any_
            else Verdict(math.nan, "no word of the prompt bears on what people judge images by")
            for score, any_ in zip(scores, attended.any(dim=1).tolist(), strict=True)
        ]

    def _ids(self, texts: list[str]) -> Tensor:
        """Token numbers filled up to the model's length, shape (n, t)."""
        ids: Tensor = self._tokenizer(
            texts,
            padding="max_length",
            truncation=True,
            max_length=self._length,
            return_tensors="pt",
        )["input_ids"]
        return ids.to(self._model.clip.device)


def build(
    state: Mapping[str, Tensor], source: Source, config: CLIPConfig, dtype: torch.dtype
) -> MPSModel:
    """The model of the authors' weights, in evaluation mode on the CPU."""
    named = RENAMING.renamed(state)
    first = "blocks.0.cross."
    head = weight(named, f"{first}to_kv.weight").shape[0] // 2
    queries, width = weight(named, f"{first}to_q.weight").shape
    inner = weight(named, f"{first}ff.2.weight").shape[1]
    n_blocks = count_layers(named, r"blocks\.(\d+)\.")
    with no_init_weights():
        model = MPSModel(config, n_blocks, (width, queries // head, head, inner))
    return fill(model, named, source).to(dtype).eval()


def load(row: ScorerRow, options: Options, runtime: Runtime) -> Loaded:
    """MPS, rebuilt from CLIP's configuration and read from a table of the authors' weights."""
    source, base = authors_file(row, runtime), resolve(row, runtime, "base")
    check_class(base, ("clip",))
    tokenizer = load_processor(AutoTokenizer, base, runtime, pil=False)
    images = Processed(load_processor(AutoImageProcessor, base, runtime))
    with reading(base, "configuration"):
        config = AutoConfig.from_pretrained(base.place, local_files_only=True)
    model = build(read_weights(source, runtime), source, config, dtype_of(row, runtime))
    scorer = MPS(model.to(runtime.device), tokenizer, images, options, runtime.batch_texts)
    told = environment(
        row, runtime, {"model": source, "base": base}, image_processor=images.described
    )
    return Loaded(scorer, told)


FAMILY = Family("conditioned preference", Options, load)
