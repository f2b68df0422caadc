"""Encoder-decoder VLMs: a prompt with its image is encoded, answers are decoded."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors import safe_open
from torch import Tensor, nn
from transformers import (
    AutoImageProcessor,
    AutoTokenizer,
    Blip2ForConditionalGeneration,
    BlipForQuestionAnswering,
    CLIPVisionModel,
    InstructBlipForConditionalGeneration,
    PreTrainedModel,
    T5Config,
    T5ForConditionalGeneration,
)

from benchmarks.errors import SubmitterError
from evaluator.scorers.answering import Candidate, Reading, answer_tokens, padded_square
from evaluator.scorers.models.chat import along, end_tokens, stems
from evaluator.scorers.models.vlm_inputs import Setting

ROWS = 32  # Prompts that are encoded together


class EncoderDecoderVLM(ABC):
    """An encoder-decoder that reads an image and a text; follows `AnswerModel`.

    Answers are teacher-forced in the decoder; log-softmax over the whole vocabulary in float32.
    """

    _language: Any  # its T5, where it has one

    def __init__(
        self,
        tokenizer: Any,
        reading: Reading,
        environment: dict[str, str],
        *,
        start: int,
        ends: set[int],
        device: torch.device,
    ) -> None:
        self.tokenizer = tokenizer
        self.reading = reading
        self.device = device
        self.environment = environment
        self._start = start
        self._ends = ends

    @abstractmethod
    def prepare(self, image: Image.Image) -> Tensor:
        """Pixels as the vision tower takes them, shape (1, 3, height, width), on the CPU."""

    @abstractmethod
    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Whether the end of each prompt is not read."""

    @abstractmethod
    def look(self, pixels: Tensor) -> Tensor:
        """What all prompts to an image share, first axis 1."""

    @abstractmethod
    def encode(self, seen: Tensor, prompts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Encoder states (n, length, width) of prompts to one image, and their mask (n, length)."""

    def decode(self, states: Tensor, mask: Tensor, ids: Tensor) -> Tensor:
        """Logits (n, length, vocabulary) after each of the decoder's tokens `ids` (n, length)."""
        logits: Tensor = self._language(
            encoder_outputs=(states,), attention_mask=mask, decoder_input_ids=ids, use_cache=False
        ).logits
        return logits

    def answer_logprobs(
        self,
        images: Sequence[Tensor],
        prompts: Sequence[Sequence[str]],
        candidates: Sequence[Sequence[Sequence[Candidate]]],
    ) -> list[list[list[NDArray[np.float64]]]]:
        """See `AnswerModel`."""
        with torch.inference_mode():
            return [
                self._of_image(pixels, its, answers)
                for pixels, its, answers in zip(images, prompts, candidates, strict=True)
            ]

    def generate(
        self, images: Sequence[Tensor], prompts: Sequence[Sequence[str]], max_new_tokens: int
    ) -> list[list[str]]:
        """See `AnswerModel`."""
        with torch.inference_mode():
            return [
                self._written(pixels, its, max_new_tokens)
                for pixels, its in zip(images, prompts, strict=True)
            ]

    def answers(self, candidates: Sequence[Candidate]) -> list[list[int]]:
        """Token ids of the answers to one prompt."""
        end = min(self._ends, default=None)
        return answer_tokens(self.tokenizer, candidates, space=self.reading.answer_space, end=end)

    def padded(self, rows: Sequence[Sequence[int]], fill: int) -> tuple[Tensor, Tensor]:
        """Token ids padded on the right, shape (n, longest), and their mask."""
        width = max(len(row) for row in rows)
        ids = [[*row, *[fill] * (width - len(row))] for row in rows]
        mask = [[1] * len(row) + [0] * (width - len(row)) for row in rows]
        return torch.tensor(ids, device=self.device), torch.tensor(mask, device=self.device)

    def _of_image(
        self, pixels: Tensor, prompts: Sequence[str], candidates: Sequence[Sequence[Candidate]]
    ) -> list[list[NDArray[np.float64]]]:
        seen = self.look(pixels.to(self.device)) if prompts else pixels
        found: list[list[NDArray[np.float64]]] = []
        for at in range(0, len(prompts), ROWS):
            answers = [self.answers(its) for its in candidates[at : at + ROWS]]
            found += self._of_prompts(seen, prompts[at : at + ROWS], answers)
        return found

    def _of_prompts(
        self, seen: Tensor, prompts: Sequence[str], answers: Sequence[Sequence[Sequence[int]]]
    ) -> list[list[NDArray[np.float64]]]:
        states, mask = self.encode(seen, prompts)
        jobs = [(row, stem) for row, its in enumerate(answers) for stem in stems(its)]
        if not jobs:
            return [[] for _ in prompts]
        rows = torch.tensor([row for row, _ in jobs], device=self.device)
        ids, _ = self.padded([[self._start, *stem] for _, stem in jobs], self._start)
        logits = self.decode(states[rows], mask[rows], ids)
        tables = torch.log_softmax(logits.float(), dim=-1)
        return [
            [along(answer, _tables(jobs, tables, row)) for answer in its]
            for row, its in enumerate(answers)
        ]

    def _written(self, pixels: Tensor, prompts: Sequence[str], n: int) -> list[str]:
        seen = self.look(pixels.to(self.device)) if prompts else pixels
        return [
            text
            for at in range(0, len(prompts), ROWS)
            for text in self._greedy(*self.encode(seen, prompts[at : at + ROWS]), n)
        ]

    def _greedy(self, states: Tensor, mask: Tensor, n: int) -> list[str]:
        ids = torch.full((len(states), 1), self._start, device=self.device)
        ended = torch.zeros(len(states), dtype=torch.bool, device=self.device)
        ends = torch.tensor(sorted(self._ends), device=self.device)
        for _ in range(n):
            picked = self.decode(states, mask, ids)[:, -1].argmax(dim=-1)
            ended |= torch.isin(picked, ends)
            ids = torch.cat([ids, picked.masked_fill(ended, int(ends[0]))[:, None]], dim=1)
            if bool(ended.all()):
                break
        return [
            self.tokenizer.decode(row, skip_special_tokens=True).strip()
            for row in ids[:, 1:].tolist()
        ]


def _tables(
    jobs: Sequence[tuple[int, tuple[int, ...]]], tables: Tensor, row: int
) -> dict[tuple[int, ...], Tensor]:
    return {stem: tables[i] for i, (owner, stem) in enumerate(jobs) if owner == row}


MAX_TOKENS = 35
"""Of a question with its first and last token; the rest is not read, as in BLIP's own code."""


class BlipVQA(EncoderDecoderVLM):
    """BLIP-VQA; `Reading.side` asks for another image size than the checkpoint's (BVQA: 480)."""

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
            pixel_values=pixels.to(self._model.dtype), interpolate_pos_encoding=self._interpolates
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
    """BLIP-VQA from the checkpoint's folder."""
    model = setting.pretrained(BlipForQuestionAnswering)
    processor = setting.processor()
    return BlipVQA(model, processor, setting)


def _encode_token(tokenizer: Any, vocabulary: int) -> int:
    """[ENC], by name or, where the vocabulary file lacks it, as the last of the model's tokens."""
    vocab: dict[str, int] = tokenizer.get_vocab()
    return vocab.get("[ENC]", vocabulary - 1)


FORMAT = (
    "A chat between a curious user and an artificial intelligence assistant. The assistant gives "
    "helpful, detailed, and polite answers to the user's questions. "
    "USER: {image}\n{prompt} ASSISTANT: "
)
"""Of the conversations that it was tuned on; part of VQAScore's definition."""
LAYER = -2  # Hidden state of CLIP that is read, without its class token


class ClipFlanT5(EncoderDecoderVLM):
    """CLIP-FlanT5.

    Each text is tokenised by itself, so each ends with `</s>`, the one before the image too.
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
        self._language = language
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


def load_clip_flant5(setting: Setting) -> ClipFlanT5:
    """CLIP-FlanT5: T5 and projector from its own folder, CLIP and tokenizer from theirs."""
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
    """The two linear layers with a GELU between CLIP and T5."""
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
    """A T5 whose head is tied to its embedding table gives other probabilities."""
    model: Any = language
    if model.lm_head.weight is model.shared.weight:
        raise SubmitterError(
            "checkpoint_wrong_class", f"{setting.source}: T5's output head was not read."
        )


_CLASSES = {
    "blip-2": Blip2ForConditionalGeneration,
    "instructblip": InstructBlipForConditionalGeneration,
}


class Seq2SeqVLM(EncoderDecoderVLM):
    """BLIP-2 or InstructBLIP with an encoder-decoder language model.

    The vision tower runs once for all prompts to an image; so does BLIP-2's Q-Former. InstructBLIP's
    reads each prompt, so it runs for each.
    """

    def __init__(self, model: PreTrainedModel, processor: Any, setting: Setting) -> None:
        self._model: Any = model
        language: Any = self._model.language_model
        self._language = language
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
        shown = self.reading.resized(image)
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
    """BLIP-2 or InstructBLIP with a T5, from the checkpoint's folder."""
    model = setting.pretrained(_CLASSES[setting.kind])
    processor = setting.processor()
    return Seq2SeqVLM(model, processor, setting)
