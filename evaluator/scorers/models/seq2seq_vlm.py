"""BLIP-2 and InstructBLIP with a T5: an image as a few query vectors before the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from PIL import Image
from torch import Tensor
from transformers import (
    Blip2ForConditionalGeneration,
    InstructBlipForConditionalGeneration,
    PreTrainedModel,
)

from evaluator.scorers.models.chat_vlm import end_tokens
from evaluator.scorers.models.encoder_decoder import EncoderDecoderVLM
from evaluator.scorers.models.vlm_setting import Setting

_CLASSES = {
    "blip-2": Blip2ForConditionalGeneration,
    "instructblip": InstructBlipForConditionalGeneration,
}


class Seq2SeqVLM(EncoderDecoderVLM):
    """BLIP-2 or InstructBLIP with an encoder-decoder language model.

    The vision tower runs once for all prompts to an image; so does BLIP-2's Q-Former. InstructBLIP's
    reads each prompt, so it runs for each.

    Args:
        model: in eval mode, on its device.
        processor: of the checkpoint.
        setting: of which the reading and the record are used.
    """

    def __init__(self, model: PreTrainedModel, processor: Any, setting: Setting) -> None:
        self._model: Any = model
        language: Any = self._model.language_model
        self._language: Any = language
        self._images = processor.image_processor
        self._qformer_tokenizer: Any = getattr(processor, "qformer_tokenizer", None)
        config = language.config
        super().__init__(
            processor.tokenizer,
            setting.reading,
            setting.environment(
                image_processor=type(self._images).__name__,
                shared_by_prompts="vision tower" if self._qformer_tokenizer else "image's vectors",
            ),
            start=config.decoder_start_token_id,
            ends=end_tokens(language, processor.tokenizer),
            device=model.device,
        )

    def prepare(self, image: Image.Image) -> Tensor:
        """See `EncoderDecoderVLM`."""
        shown = self.reading.shown(image)
        pixels: Tensor = self._images(images=[shown], return_tensors="pt")["pixel_values"]
        return pixels

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Whether InstructBLIP's Q-Former reads less than the whole prompt; T5 reads any length."""
        if self._qformer_tokenizer is None:
            return [False] * len(prompts)
        return [len(ids) > self._qformer_room for ids in self._qformer_ids(prompts, cut=False)]

    def look(self, pixels: Tensor) -> Tensor:
        """BLIP-2: projected query vectors (1, queries, width); InstructBLIP: patch states."""
        pixels = pixels.to(self._model.dtype)
        if self._qformer_tokenizer is None:
            projected: Tensor = self._model.get_image_features(
                pixels, return_dict=True
            ).pooler_output
            return projected
        patches: Tensor = self._model.vision_model(pixel_values=pixels).last_hidden_state
        return patches

    def encode(self, seen: Tensor, prompts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """See `EncoderDecoderVLM`."""
        written = [self._written_out(prompt) for prompt in prompts]
        rows = [self.tokenizer.encode(text) for text in written]
        ids, text_mask = self.padded(rows, self.tokenizer.pad_token_id)
        vectors = seen.expand(len(written), -1, -1)
        if self._qformer_tokenizer is not None:
            vectors = self._queried(vectors, written)
        words = self._language.get_input_embeddings()(ids)
        mask = torch.cat([text_mask.new_ones(vectors.shape[:2]), text_mask], dim=1)
        states = self._language.get_encoder()(
            inputs_embeds=torch.cat([vectors.to(words.dtype), words], dim=1), attention_mask=mask
        )
        return states.last_hidden_state, mask

    def decode(self, states: Tensor, mask: Tensor, ids: Tensor) -> Tensor:
        """See `EncoderDecoderVLM`."""
        logits: Tensor = self._language(
            encoder_outputs=(states,), attention_mask=mask, decoder_input_ids=ids, use_cache=False
        ).logits
        return logits

    @property
    def _qformer_room(self) -> int:
        room: int = self._model.config.qformer_config.max_position_embeddings
        return room

    def _queried(self, patches: Tensor, written: Sequence[str]) -> Tensor:
        """InstructBLIP's query vectors, which depend on the prompt, projected."""
        qformer_ids = self._qformer_ids(written, cut=True)
        ids, text_mask = self.padded(qformer_ids, self._qformer_tokenizer.pad_token_id)
        queries = self._model.query_tokens.expand(len(written), -1, -1)
        mask = torch.cat([text_mask.new_ones(queries.shape[:2]), text_mask], dim=1)
        states = self._model.qformer(
            input_ids=ids,
            attention_mask=mask,
            query_embeds=queries,
            encoder_hidden_states=patches,
            encoder_attention_mask=mask.new_ones(patches.shape[:2]),
        ).last_hidden_state[:, : queries.shape[1]]
        projected: Tensor = self._model.language_projection(states)
        return projected

    def _qformer_ids(self, texts: Sequence[str], cut: bool) -> list[list[int]]:
        encode: Any = self._qformer_tokenizer
        if cut:
            found = encode(list(texts), truncation=True, max_length=self._qformer_room)
        else:
            found = encode(list(texts))
        ids: list[list[int]] = found["input_ids"]
        return ids

    def _written_out(self, prompt: str) -> str:
        return self.reading.written("", prompt) if self.reading.text_format else prompt


def load_seq2seq_vlm(setting: Setting) -> Seq2SeqVLM:
    """BLIP-2 or InstructBLIP with a T5, from the checkpoint's folder.

    Raises:
        SubmitterError: `checkpoint_wrong_class`.
    """
    model = setting.pretrained(_CLASSES[setting.kind])
    processor = setting.processor()
    return Seq2SeqVLM(model, processor, setting)
