"""BLIP-2's image-text matching: each image through the vision tower once, with all its texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from evaluator.scorers.models.blip2_attention import share_images


@dataclass(frozen=True, slots=True)
class Match:
    """What the matching head says of one text with one image, in float32.

    Attributes:
        queries: logits (no match, match) of the query tokens, shape (q, 2).
        text: the same of the text's own tokens, from its first to its last, shape (t, 2).
    """

    queries: Tensor
    text: Tensor


@dataclass(frozen=True, slots=True)
class _Encoded:
    """Images that went through the vision tower.

    Attributes:
        images: kept, so that no other object takes their identity.
        places: identity of each image to its row of `states`.
        states: shape (n, patches + 1, d).
    """

    images: Sequence[Tensor]
    places: Mapping[int, int]
    states: Any


class Blip2Matcher:
    """Vision tower, Q-Former and matching head of `Blip2ForImageTextRetrieval`.

    The steps are those of the model's `forward(use_image_text_matching_head=True)`, which returns
    the head's mean only and encodes an image anew for every text. The tokens go straight to the
    embeddings, so that none can be taken for a place of the image.

    Args:
        model: `Blip2ForImageTextRetrieval` on its device, in evaluation mode.
        tokenizer: BERT's, of the model.
        image_processor: of the model.
        max_tokens: of a text, with [CLS] and [SEP]; what is longer is cut before [SEP].
        batch_texts: rows of one call of the Q-Former.
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
        share_images(model.qformer)

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

    Args:
        logits: shape (q, 2).

    Returns:
        softmax(mean over q of logits)[1], in 0..1.
    """
    return float(logits.double().mean(dim=0).softmax(dim=0)[1])


def mean_of_softmax(logits: Tensor) -> float:
    """Mean over tokens of each one's probability of a match: FGA-BLIP2's way.

    Args:
        logits: shape (t, 2), t >= 1.

    Returns:
        mean over t of softmax(logits)[1], in 0..1.
    """
    return float(logits.double().softmax(dim=1)[:, 1].mean())
