"""ImageReward: BLIP's text encoder reads the prompt beside the image; its first token is rated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from PIL import Image
from pydantic import Field
from torch import Tensor
from transformers import AutoTokenizer
from transformers.utils.constants import OPENAI_CLIP_MEAN, OPENAI_CLIP_STD

from evaluator.scorers.checkpoints import resolve
from evaluator.scorers.family import Family, Loaded
from evaluator.scorers.loading import dtype_of, environment, load_processor, read_weights
from evaluator.scorers.models.image_reading import ShortestCropped, ToPixels
from evaluator.scorers.models.image_reward import Heads, ImageRewardModel, build_image_reward
from evaluator.scorers.models.lavis_weights import authors_file
from evaluator.scorers.pairs import pair_scores
from evaluator.scorers.row import Frozen, ScorerRow
from evaluator.scorers.runtime import Runtime


class ImageRewardOptions(Frozen):
    """What differs between rows."""

    max_tokens: int = Field(default=35, ge=3, le=512)
    """Tokens of a prompt, with [CLS] and [SEP]."""
    vision_heads: int = 16
    text_heads: int = 12


class ImageRewardScorer:
    """(head(state of [CLS]) - mean) / deviation; mostly -2.3..2.

    Args:
        model: on its device.
        tokenizer: BERT's.
        to_pixels: shortest side to the model's size, then a crop in the middle.
        max_tokens: of a prompt, with [CLS] and [SEP].
        batch_texts: rows of one call of the text encoder.
    """

    def __init__(
        self,
        model: ImageRewardModel,
        tokenizer: Any,
        to_pixels: ToPixels,
        *,
        max_tokens: int,
        batch_texts: int,
    ) -> None:
        self._model = model
        # Positions count from the first token, so padding and cuts belong at the end.
        tokenizer.padding_side = tokenizer.truncation_side = "right"
        self._tokenizer = tokenizer
        self._to_pixels = to_pixels
        self._max_tokens = max_tokens
        self._batch_texts = batch_texts

    def prepare(self, image: Image.Image) -> Tensor:
        """Pixels for the vision tower, shape (3, side, side)."""
        return self._to_pixels(image)

    def score(self, images: Sequence[Any], prompts: Sequence[str]) -> list[float]:
        """One score per pair."""
        return pair_scores(self, images, prompts)

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
            prompts,
            padding=True,
            truncation=True,
            max_length=self._max_tokens,
            return_tensors="pt",
        ).to(states.device)
        rewards = self._model.reward(states, text["input_ids"], text["attention_mask"])
        return [float(reward) for reward in rewards.cpu()]


class ImageReward(Family[ImageRewardOptions]):
    """ImageReward, rebuilt from `transformers` and read from the authors' layout."""

    title: ClassVar[str] = "reward model"
    options: ClassVar[type[Frozen]] = ImageRewardOptions

    def load(self, row: ScorerRow, options: ImageRewardOptions, runtime: Runtime) -> Loaded:
        """See `Family.load`."""
        source = authors_file(row, runtime)
        words = resolve(row, runtime, "tokenizer")
        tokenizer = load_processor(AutoTokenizer, words, runtime, pil=False)
        heads = Heads(options.vision_heads, options.text_heads)
        state = read_weights(source, runtime)
        model = build_image_reward(state, source, heads, dtype_of(row, runtime))
        side: Any = model.vision.config.image_size
        images = ShortestCropped(side, OPENAI_CLIP_MEAN, OPENAI_CLIP_STD)
        scorer = ImageRewardScorer(
            model.to(runtime.device),
            tokenizer,
            images,
            max_tokens=options.max_tokens,
            batch_texts=runtime.batch_texts,
        )
        told = environment(
            row,
            runtime,
            {"model": source, "tokenizer": words},
            image_processor=type(images).__name__,
        )
        return Loaded(scorer, told, f"{type(images).__name__} {side}")


FAMILY = ImageReward()
