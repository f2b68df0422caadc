"""CLIP-FlanT5, the model of VQAScore: CLIP's patches, projected, between two texts for a T5.

Lin et al., Evaluating Text-to-Visual Generation with Image-to-Text Generation, 2024.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from safetensors import safe_open
from torch import Tensor, nn
from transformers import (
    AutoImageProcessor,
    AutoTokenizer,
    CLIPVisionModel,
    PreTrainedModel,
    T5Config,
    T5ForConditionalGeneration,
)

from benchmarks.errors import SubmitterError
from evaluator.scorers.models.chat_vlm import end_tokens
from evaluator.scorers.models.encoder_decoder import EncoderDecoderVLM
from evaluator.scorers.models.vlm_reading import padded_square
from evaluator.scorers.models.vlm_setting import Setting

FORMAT = (
    "A chat between a curious user and an artificial intelligence assistant. The assistant gives "
    "helpful, detailed, and polite answers to the user's questions. "
    "USER: {image}\n{prompt} ASSISTANT: "
)
"""Of the conversations that it was tuned on; part of VQAScore's definition."""
LAYER = -2
"""Hidden state of CLIP that is read, without its class token."""


class ClipFlanT5(EncoderDecoderVLM):
    """CLIP-FlanT5.

    Each text is tokenised by itself, so each ends with `</s>`, the one before the image too.

    Args:
        vision: CLIP's image tower.
        projector: from its width to T5's.
        language: T5, whose output head is not its embedding table.
        tokenizer: of T5.
        images: CLIP's image processor; it is given squares.
        setting: of which the reading and the record are used.
    """

    def __init__(
        self,
        vision: PreTrainedModel,
        projector: nn.Module,
        language: PreTrainedModel,
        *,
        tokenizer: Any,
        images: Any,
        setting: Setting,
    ) -> None:
        self._vision: Any = vision
        self._projector = projector
        self._language: Any = language
        self._images = images
        self._before, _, rest = (setting.reading.text_format or FORMAT).partition("{image}")
        self._after = setting.reading.model_copy(update={"text_format": rest})
        super().__init__(
            tokenizer,
            setting.reading,
            setting.environment(
                image_processor=type(images).__name__, shared_by_prompts="image's vectors"
            ),
            start=self._language.config.decoder_start_token_id,
            ends=end_tokens(language, tokenizer),
            device=language.device,
        )

    def prepare(self, image: Image.Image) -> Tensor:
        """See `EncoderDecoderVLM`; padded to a square with CLIP's mean colour."""
        shown = padded_square(image)
        pixels: Tensor = self._images(images=[shown], return_tensors="pt")["pixel_values"]
        return pixels

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """T5 counts distances only, and reads any length."""
        return [False] * len(prompts)

    def look(self, pixels: Tensor) -> Tensor:
        """Projected patches, shape (1, patches, width)."""
        states = self._vision(
            pixel_values=pixels.to(self._vision.dtype), output_hidden_states=True
        ).hidden_states[LAYER]
        projected: Tensor = self._projector(states[:, 1:])
        return projected

    def encode(self, seen: Tensor, prompts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """See `EncoderDecoderVLM`."""
        after = [self.tokenizer.encode(self._after.written("", prompt)) for prompt in prompts]
        ids, after_mask = self.padded(after, self.tokenizer.pad_token_id)
        before = torch.tensor([self.tokenizer.encode(self._before)], device=self.device)
        embed = self._language.get_input_embeddings()
        n = len(after)
        parts = [embed(before).expand(n, -1, -1), seen.expand(n, -1, -1), embed(ids)]
        ones = after_mask.new_ones(n, parts[0].shape[1] + parts[1].shape[1])
        mask = torch.cat([ones, after_mask], dim=1)
        states = self._language.get_encoder()(
            inputs_embeds=torch.cat([part.to(parts[0].dtype) for part in parts], dim=1),
            attention_mask=mask,
        )
        return states.last_hidden_state, mask

    def decode(self, states: Tensor, mask: Tensor, ids: Tensor) -> Tensor:
        """See `EncoderDecoderVLM`."""
        logits: Tensor = self._language(
            encoder_outputs=(states,), attention_mask=mask, decoder_input_ids=ids, use_cache=False
        ).logits
        return logits


def load_clip_flant5(setting: Setting) -> ClipFlanT5:
    """CLIP-FlanT5: T5 and projector from its own folder, CLIP and tokenizer from theirs.

    Raises:
        SubmitterError: `checkpoint_missing`, a part is not named by the row;
            `checkpoint_wrong_class`, weights are missing or of another shape.
    """
    kept = json.loads((setting.source.place / "config.json").read_bytes())
    kept["model_type"] = "t5"
    kept.pop("tie_word_embeddings", None)
    config = T5Config.from_dict(kept)
    config.tie_word_embeddings = False
    language = setting.pretrained(T5ForConditionalGeneration, config=config)
    vision = setting.at("vision").pretrained(CLIPVisionModel)
    images = setting.at("vision").from_folder(AutoImageProcessor, backend=setting.reading.backend)
    tokenizer = setting.at("tokenizer", or_own=True).from_folder(AutoTokenizer)
    projector = projector_of(setting).to(language.device, setting.torch_dtype).eval()
    _check_head(language, setting)
    return ClipFlanT5(
        vision, projector, language, tokenizer=tokenizer, images=images, setting=setting
    )


def projector_of(setting: Setting) -> nn.Sequential:
    """The two linear layers with a GELU between CLIP and T5.

    Raises:
        SubmitterError: `checkpoint_wrong_class`, the folder holds none.
    """
    weights = {
        name.rpartition("mm_projector.")[2]: values
        for path in sorted(setting.source.place.iterdir())
        for name, values in _weights(path, setting.runtime.allow_pickle)
        if "mm_projector." in name
    }
    if set(weights) != {"0.weight", "0.bias", "2.weight", "2.bias"}:
        raise SubmitterError(
            "checkpoint_wrong_class",
            f"{setting.source} holds no projector of two linear layers (mm_projector).",
        )
    hidden, width = weights["0.weight"].shape
    last = weights["2.weight"].shape[0]
    made = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, last))
    made.load_state_dict(weights)
    return made


def _weights(path: Path, allow_pickle: bool) -> Iterator[tuple[str, Tensor]]:
    """Names and values of a file of weights; nothing for other files."""
    if path.suffix == ".safetensors":
        with safe_open(path, framework="pt") as file:
            names: list[str] = list(file.keys())
            yield from ((name, file.get_tensor(name)) for name in names if "mm_" in name)
    elif path.suffix == ".bin" and allow_pickle:
        yield from torch.load(path, map_location="cpu", weights_only=True, mmap=True).items()


def _check_head(language: PreTrainedModel, setting: Setting) -> None:
    """A T5 whose head is tied to its embedding table gives other probabilities.

    Raises:
        SubmitterError: `checkpoint_wrong_class`.
    """
    model: Any = language
    if model.lm_head.weight is model.shared.weight:
        raise SubmitterError(
            "checkpoint_wrong_class", f"{setting.source}: T5's output head was not read."
        )
