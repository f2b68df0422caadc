"""ImageReward and CycleReward: BLIP's text encoder reads the prompt beside the image; its first token is rated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from PIL import Image
from pydantic import Field
from torch import Tensor, nn
from transformers import (
    AutoTokenizer,
    BlipTextConfig,
    BlipTextModel,
    BlipVisionConfig,
    BlipVisionModel,
)
from transformers.initialization import no_init_weights
from transformers.utils.constants import OPENAI_CLIP_MEAN, OPENAI_CLIP_STD

from evaluator.scorers.answering import SharedImageScorer
from evaluator.scorers.checkpoints import Source, resolve
from evaluator.scorers.loading import dtype_of, environment, fill, load_processor, read_weights
from evaluator.scorers.models.blip import (
    Renaming,
    authors_file,
    count_layers,
    weight,
)
from evaluator.scorers.models.inputs import ShortestCropped, ToPixels
from evaluator.scorers.registry import Family, Frozen, Loaded, Runtime, ScorerRow

REWARD_MEAN = 0.16717362830052426
REWARD_DEVIATION = 1.0333394966054072
"""Of the raw reward on the authors' data; the score is standardised with them."""

_VIT = r"blip\.visual_encoder\.blocks\.(\d+)\."
_BERT = r"blip\.text_encoder\."
RENAMING = Renaming(
    rules=(
        (r"blip\.visual_encoder\.cls_token", r"vision.embeddings.class_embedding"),
        (r"blip\.visual_encoder\.pos_embed", r"vision.embeddings.position_embedding"),
        (r"blip\.visual_encoder\.patch_embed\.proj\.(.+)", r"vision.embeddings.patch_embedding.\1"),
        (_VIT + r"norm([12])\.(.+)", r"vision.encoder.layers.\1.layer_norm\2.\3"),
        (_VIT + r"attn\.qkv\.(.+)", r"vision.encoder.layers.\1.self_attn.qkv.\2"),
        (_VIT + r"attn\.proj\.(.+)", r"vision.encoder.layers.\1.self_attn.projection.\2"),
        (_VIT + r"mlp\.(fc[12]\..+)", r"vision.encoder.layers.\1.mlp.\2"),
        (r"blip\.visual_encoder\.norm\.(.+)", r"vision.post_layernorm.\1"),
        (
            _BERT + r"(embeddings\.(?:word_embeddings|position_embeddings|LayerNorm)\..+)",
            r"text.\1",
        ),
        (
            _BERT + r"(encoder\.layer\.\d+\.(?:attention|crossattention)"
            r"\.(?:self\.(?:query|key|value)|output\.(?:dense|LayerNorm))\..+)",
            r"text.\1",
        ),
        (
            _BERT + r"(encoder\.layer\.\d+\.(?:intermediate|output)\.(?:dense|LayerNorm)\..+)",
            r"text.\1",
        ),
        (r"mlp\.layers\.(\d+\..+)", r"head.\1"),
    ),
    unused=(_BERT + r"embeddings\.position_ids", r"blip\.(?:vision|text)_proj\..+"),
)


ACTIVATIONS: Mapping[str, type[nn.Module]] = {"none": nn.Identity, "gelu": nn.GELU}


class ImageRewardOptions(Frozen):
    """What differs between rows."""

    max_tokens: int = Field(default=35, ge=3, le=512)  # Tokens of a prompt, with [CLS] and [SEP]
    activation: Literal["none", "gelu"] = "none"  # Between the layers of the head
    standardised: bool = True  # Whether ImageReward's mean and deviation are taken out
    vision_heads: int = 16
    text_heads: int = 12


class ImageRewardModel(nn.Module):
    """Vision tower, text encoder that attends to it, and a head of linear layers.

    `activation`: between the head's layers; none follows the last.
    """

    def __init__(
        self,
        vision: BlipVisionConfig,
        text: BlipTextConfig,
        widths: Mapping[str, tuple[int, int]],
        activation: nn.Module,
    ) -> None:
        super().__init__()
        self.vision = BlipVisionModel(vision)
        self.text = BlipTextModel(text, add_pooling_layer=False)
        # Named by their places in the authors' module, where dropout stands between them.
        self.head = nn.ModuleDict({name: nn.Linear(*width) for name, width in widths.items()})
        self.activation = activation

    def encode_images(self, pixels: Tensor) -> Tensor:
        """States of the patches, shape (n, patches + 1, d)."""
        states: Tensor = self.vision(pixel_values=pixels).last_hidden_state
        return states

    def reward(self, states: Tensor, ids: Tensor, mask: Tensor) -> Tensor:
        """Raw rewards of n texts with an image each, shape (n,).

        `states`: of the images, shape (n, patches + 1, d); `ids`: of the texts' tokens, [CLS]
        first, padded, shape (n, t); `mask`: 1 where there is a token, shape (n, t).
        """
        hidden = self.text(
            input_ids=ids, attention_mask=mask, encoder_hidden_states=states, is_decoder=False
        ).last_hidden_state[:, 0]
        *inner, last = self.head.values()
        for layer in inner:
            hidden = self.activation(layer(hidden))
        rewards: Tensor = last(hidden).float().squeeze(1)
        return rewards


def vision_config(state: Mapping[str, Tensor], heads: int) -> BlipVisionConfig:
    """The vision tower that fits renamed weights: BLIP's ViT, whose layer norms add 1e-6."""
    patches = weight(state, "vision.embeddings.patch_embedding.weight")
    places = weight(state, "vision.embeddings.position_embedding").shape[1] - 1
    return BlipVisionConfig(
        hidden_size=patches.shape[0],
        patch_size=patches.shape[-1],
        image_size=round(places**0.5) * patches.shape[-1],
        intermediate_size=weight(state, "vision.encoder.layers.0.mlp.fc1.weight").shape[0],
        num_hidden_layers=count_layers(state, r"vision\.encoder\.layers\.(\d+)\."),
        num_attention_heads=heads,
        layer_norm_eps=1e-6,
    )


def text_config(state: Mapping[str, Tensor], heads: int) -> BlipTextConfig:
    """The text encoder that fits renamed weights: BERT with cross-attention in every layer."""
    words = weight(state, "text.embeddings.word_embeddings.weight")
    first = "text.encoder.layer.0."
    config = BlipTextConfig(
        vocab_size=words.shape[0],
        hidden_size=words.shape[1],
        encoder_hidden_size=weight(state, f"{first}crossattention.self.key.weight").shape[1],
        intermediate_size=weight(state, f"{first}intermediate.dense.weight").shape[0],
        num_hidden_layers=count_layers(state, r"text\.encoder\.layer\.(\d+)\."),
        num_attention_heads=heads,
        max_position_embeddings=weight(state, "text.embeddings.position_embeddings.weight").shape[
            0
        ],
        is_decoder=True,  # has cross-attention; attention is bidirectional all the same
    )
    # Its attention adds the mask to the scores, which only this kind of mask is made for.
    config._attn_implementation = "eager"
    return config


def build_image_reward(
    state: Mapping[str, Tensor],
    source: Source,
    options: ImageRewardOptions,
    dtype: torch.dtype,
) -> ImageRewardModel:
    """The model of the released weights, in evaluation mode on the CPU."""
    named = RENAMING.renamed(state)
    places = sorted(
        (name for name in named if name.startswith("head.") and name.endswith("weight")),
        key=lambda name: int(name.split(".")[1]),
    )
    widths = {name.split(".")[1]: (named[name].shape[1], named[name].shape[0]) for name in places}
    vision = vision_config(named, options.vision_heads)
    text = text_config(named, options.text_heads)
    with no_init_weights():
        model = ImageRewardModel(vision, text, widths, ACTIVATIONS[options.activation]())
    return fill(model, named, source).to(dtype).eval()


class ImageRewardScorer(SharedImageScorer):
    """head(state of [CLS]), standardised or as it is."""

    def __init__(
        self,
        model: ImageRewardModel,
        tokenizer: Any,
        to_pixels: ToPixels,
        *,
        options: ImageRewardOptions,
        batch_texts: int,
    ) -> None:
        self._model = model
        # Positions count from the first token, so padding and cuts belong at the end.
        tokenizer.padding_side = tokenizer.truncation_side = "right"
        self._tokenizer = tokenizer
        self._to_pixels = to_pixels
        self._max_tokens = options.max_tokens
        self._mean, self._deviation = (
            (REWARD_MEAN, REWARD_DEVIATION) if options.standardised else (0.0, 1.0)
        )
        self._batch_texts = batch_texts

    def prepare(self, image: Image.Image) -> Tensor:
        """Pixels for the vision tower, shape (3, side, side)."""
        return self._to_pixels(image)

    @torch.inference_mode()
    def score_texts(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]]
    ) -> list[list[float]]:
        """For each image, one score per prompt of its own list; images are encoded once."""
        rows = [(place, prompt) for place, of_image in enumerate(prompts) for prompt in of_image]
        scores: list[list[float]] = [[] for _ in images]
        if not rows:
            return scores
        weights = next(self._model.parameters())
        pixels = torch.stack(list(images)).to(weights.device, weights.dtype)
        states = self._model.encode_images(pixels)
        for start in range(0, len(rows), self._batch_texts):
            batch = rows[start : start + self._batch_texts]
            places = [place for place, _ in batch]
            rewards = self._rewards(states[places], [prompt for _, prompt in batch])
            for place, reward in zip(places, rewards, strict=True):
                scores[place].append(reward)
        return scores

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Whether the end of each prompt is cut."""
        whole = self._tokenizer(list(prompts), truncation=False, verbose=False)["input_ids"]
        return [len(ids) > self._max_tokens for ids in whole]

    def _rewards(self, states: Tensor, prompts: list[str]) -> list[float]:
        text = self._tokenizer(
            prompts, padding=True, truncation=True, max_length=self._max_tokens, return_tensors="pt"
        ).to(states.device)
        rewards = self._model.reward(states, text["input_ids"], text["attention_mask"])
        return [(float(reward) - self._mean) / self._deviation for reward in rewards.cpu()]


def load(row: ScorerRow, options: ImageRewardOptions, runtime: Runtime) -> Loaded:
    """The model, rebuilt from `transformers` and read from the authors' layout."""
    source = authors_file(row, runtime)
    words = resolve(row, runtime, "tokenizer")
    tokenizer = load_processor(AutoTokenizer, words, runtime, pil=False)
    state = read_weights(source, runtime)
    model = build_image_reward(state, source, options, dtype_of(row, runtime))
    side: Any = model.vision.config.image_size
    images = ShortestCropped(side, OPENAI_CLIP_MEAN, OPENAI_CLIP_STD)
    scorer = ImageRewardScorer(
        model.to(runtime.device),
        tokenizer,
        images,
        options=options,
        batch_texts=runtime.batch_texts,
    )
    told = environment(
        row,
        runtime,
        {"model": source, "tokenizer": words},
        image_processor=type(images).__name__,
    )
    return Loaded(scorer, told, f"{type(images).__name__} {side}")


FAMILY = Family("reward model", ImageRewardOptions, load)
