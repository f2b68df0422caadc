"""FGA-BLIP2 as trained with Assay: how well an image fits its prompt (1 to 5), and each element (0 to 1)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor
from transformers import (
    AutoTokenizer,
    Blip2Config,
    Blip2ForImageTextRetrieval,
    BlipImageProcessorPil,
)

from evaluator.scorers.models.element_spans import ElementFinder

HERE = Path(__file__).parent
FOLDER = HERE / "checkpoint"
"""Configuration and tokenizer."""
BATCH = 64


class Scorer:
    """The overall score is 1 + 4 x the mean over query tokens of p(match).

    Args:
        weights: what was trained, and without `models` all other weights as well.
        device: where to compute.
        models: the base model's repository to the folder that holds its files.
    """

    def __init__(
        self, weights: str, device: str = "cpu", models: Mapping[str, str] | None = None
    ) -> None:
        kind: Any = Blip2ForImageTextRetrieval
        if models:
            model = kind.from_pretrained(next(iter(models.values())), local_files_only=True)
        else:
            model = kind(Blip2Config.from_pretrained(FOLDER))
        told = model.load_state_dict(load_file(weights), strict=False)
        if told.unexpected_keys or (told.missing_keys and not models):
            raise ValueError(f"{weights} does not fit the model: {told}")
        self._model = model.float().to(device).eval()
        self._device = device
        self._tokenizer: Any = AutoTokenizer.from_pretrained(FOLDER, local_files_only=True)
        self._tokenizer.padding_side = self._tokenizer.truncation_side = "right"
        side = model.config.vision_config.image_size
        self._images: Any = BlipImageProcessorPil(size={"height": side, "width": side})
        self._longest = min(512, model.config.qformer_config.max_position_embeddings)
        asked = json.loads((HERE / "asked.json").read_text(encoding="utf-8"))
        self._finder = ElementFinder(lambda text: self._ids(text)[1:-1], asked["max_words"])

    def prepare(self, image: Image.Image) -> Tensor:
        """Pixels, shape (3, side, side)."""
        found: Tensor = self._images(images=image, return_tensors="pt")["pixel_values"][0]
        return found

    def score(self, images: Sequence[Tensor], prompts: Sequence[str]) -> list[float]:
        """One score per pair, 1..5."""
        asked = self.score_texts(images, [[prompt] for prompt in prompts])
        return [scores[0] for scores in asked]

    def score_texts(
        self, images: Sequence[Tensor], prompts: Sequence[Sequence[str]]
    ) -> list[list[float]]:
        """For each image, one score per prompt of its own list, 1..5."""
        return [
            [1 + 4 * float(queries.mean()) for queries, _ in self._match(image, its)]
            for image, its in zip(images, prompts, strict=True)
        ]

    def score_elements(
        self, images: Sequence[Tensor], prompts: Sequence[str], elements: Sequence[Sequence[str]]
    ) -> list[list[float]]:
        """For each pair, one score per element, 0..1; NaN where the prompt does not hold it."""
        return [
            self._of_elements(self._match(image, [prompt])[0][1], prompt, wanted)
            for image, prompt, wanted in zip(images, prompts, elements, strict=True)
        ]

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Whether the end of a prompt is not read."""
        whole = ElementFinder(self._finder.tokenize, 0)
        return [
            self._finder.read(prompt) != whole.read(prompt)
            or len(self._tokenizer(whole.read(prompt))["input_ids"]) > self._longest
            for prompt in prompts
        ]

    def _of_elements(self, tokens: Tensor, prompt: str, elements: Sequence[str]) -> list[float]:
        found = []
        for element in elements:
            span = self._finder.find(prompt, element)
            own = tokens[1 + span.start : 1 + span.stop]  # the first of all is [CLS]
            found.append(float(own.mean()) if len(own) else math.nan)
        return found

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer(text, truncation=True, max_length=self._longest)["input_ids"])

    @torch.inference_mode()
    def _match(self, image: Tensor, prompts: Sequence[str]) -> list[tuple[Tensor, Tensor]]:
        """For each prompt, p(match) at the queries and at its own tokens."""
        seen = self._model.vision_model(image[None].to(self._device)).last_hidden_state
        found: list[tuple[Tensor, Tensor]] = []
        for start in range(0, len(prompts), BATCH):
            found += self._match_batch(seen, prompts[start : start + BATCH])
        return found

    def _match_batch(self, seen: Tensor, prompts: Sequence[str]) -> list[tuple[Tensor, Tensor]]:
        model = self._model
        text = self._tokenizer(
            [self._finder.read(prompt) for prompt in prompts],
            padding=True,
            truncation=True,
            max_length=self._longest,
            return_tensors="pt",
        ).to(self._device)
        queries = model.query_tokens.expand(len(prompts), -1, -1)
        n_queries = queries.shape[1]
        read = text["attention_mask"]
        hidden = model.qformer(
            query_embeds=model.embeddings(input_ids=text["input_ids"], query_embeds=queries),
            query_length=n_queries,
            attention_mask=torch.cat([read.new_ones(queries.shape[:2]), read], dim=1),
            encoder_hidden_states=seen.expand(len(prompts), -1, -1),
        ).last_hidden_state
        match = model.itm_head(hidden).double().softmax(dim=2)[..., 1].cpu()
        lengths = read.sum(dim=1).tolist()
        return [
            (of_row[:n_queries], of_row[n_queries : n_queries + length])
            for of_row, length in zip(match, lengths, strict=True)
        ]
