"""BLIP for visual question answering: a question encoder that looks at the image, and a decoder.

The library's own class gives no logits, leaves [CLS] where the authors put [ENC], and its
generation attends to padding; so the three parts are called here one after the other. The library's
decoder takes a mask of the question but does not apply it, so none of its questions is padded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PIL import Image
from torch import Tensor
from transformers import BlipForQuestionAnswering, PreTrainedModel

from evaluator.scorers.models.encoder_decoder import EncoderDecoderVLM
from evaluator.scorers.models.vlm_setting import Setting

MAX_TOKENS = 35
"""Of a question with its first and last token; the rest is not read, as in BLIP's own code."""


class BlipVQA(EncoderDecoderVLM):
    """BLIP-VQA; `Reading.side` asks for another image size than the checkpoint's (BVQA: 480).

    Args:
        model: in eval mode, on its device.
        processor: of the checkpoint.
        setting: of which the reading and the record are used.
    """

    def __init__(self, model: PreTrainedModel, processor: Any, setting: Setting) -> None:
        self._model: Any = model
        self._images = processor.image_processor
        self._config = self._model.config.text_config
        native: int = self._model.config.vision_config.image_size
        self._side = setting.reading.side or native
        self._interpolates = self._side != native
        tokenizer = processor.tokenizer
        self._encode_id = _encode_token(tokenizer, self._config.vocab_size)
        super().__init__(
            tokenizer,
            setting.reading,
            setting.environment(
                image_processor=type(self._images).__name__,
                image_size=f"{self._side}" + (" (positions interpolated)" * self._interpolates),
                shared_by_prompts="vision tower",
            ),
            start=self._config.bos_token_id,
            ends={self._config.sep_token_id},
            device=model.device,
        )

    def prepare(self, image: Image.Image) -> Tensor:
        """See `EncoderDecoderVLM`; the image is squashed to a square."""
        size = {"height": self._side, "width": self._side}
        made = self._images(images=[image], size=size, return_tensors="pt")
        pixels: Tensor = made["pixel_values"]
        return pixels

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Whether a question has more than 35 tokens."""
        return [len(self.tokenizer.encode(prompt)) > MAX_TOKENS for prompt in prompts]

    def look(self, pixels: Tensor) -> Tensor:
        """Patch states, shape (1, patches + 1, width)."""
        states: Tensor = self._model.vision_model(
            pixel_values=pixels.to(self._model.dtype),
            interpolate_pos_encoding=self._interpolates,
        ).last_hidden_state
        return states

    def encode(self, seen: Tensor, prompts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """See `EncoderDecoderVLM`; [ENC] is the first token."""
        rows = [
            [
                self._encode_id,
                *self.tokenizer.encode(text, truncation=True, max_length=MAX_TOKENS)[1:],
            ]
            for text in prompts
        ]
        ids, mask = self.padded(rows, self._config.pad_token_id)
        patches = seen.expand(len(rows), -1, -1)
        states: Tensor = self._model.text_encoder(
            input_ids=ids,
            attention_mask=mask,
            encoder_hidden_states=patches,
            encoder_attention_mask=mask.new_ones(patches.shape[:2]),
        ).last_hidden_state
        return states, mask

    def decode(self, states: Tensor, mask: Tensor, ids: Tensor) -> Tensor:
        """See `EncoderDecoderVLM`; questions of one length at a time."""
        lengths = mask.sum(dim=1)
        width: int = self._config.vocab_size
        logits = states.new_empty((*ids.shape, width))
        for length in lengths.unique().tolist():
            its = lengths == length
            logits[its] = self._model.text_decoder(
                input_ids=ids[its], encoder_hidden_states=states[its, :length], use_cache=False
            ).logits
        return logits


def load_blip_vqa(setting: Setting) -> BlipVQA:
    """BLIP-VQA from the checkpoint's folder.

    Raises:
        SubmitterError: `checkpoint_wrong_class`.
    """
    model = setting.pretrained(BlipForQuestionAnswering)
    processor = setting.processor()
    return BlipVQA(model, processor, setting)


def _encode_token(tokenizer: Any, vocabulary: int) -> int:
    """[ENC], by name or, where the vocabulary file lacks it, as the last of the model's tokens."""
    vocab: dict[str, int] = tokenizer.get_vocab()
    return vocab.get("[ENC]", vocabulary - 1)
