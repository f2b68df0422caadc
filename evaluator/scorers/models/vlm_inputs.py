"""Inputs and settings of vision-language models."""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from PIL import Image
from torch import Tensor
from transformers import (
    AutoImageProcessor,
    AutoProcessor,
    BatchFeature,
    PreTrainedModel,
    ProcessorMixin,
)

from benchmarks.errors import SubmitterError
from evaluator.scorers.answering import Candidate, Reading, answer_tokens
from evaluator.scorers.checkpoints import Source
from evaluator.scorers.registry import Dtype, Runtime


@dataclass(frozen=True)
class Setting:
    """A checkpoint, where it runs and how it is spoken to."""

    source: Source  # its files
    kind: str  # its `model_type`
    runtime: Runtime  # device and what an operator allows
    dtype: Dtype  # precision of weights and forward pass
    reading: Reading  # how image and prompt are put before it
    # other checkpoints that it is put together from, by role
    beside: dict[str, Source] = field(default_factory=dict)

    def at(self, role: str, or_own: bool = False) -> Setting:
        """The same for a checkpoint beside this one."""
        if role not in self.beside and not or_own:
            raise SubmitterError(
                "checkpoint_missing", f"{self.source} needs another checkpoint as {role!r}."
            )
        return replace(self, source=self.beside.get(role, self.source))

    @property
    def torch_dtype(self) -> torch.dtype:
        """The precision as torch names it."""
        found: torch.dtype = getattr(torch, self.dtype)
        return found

    def pretrained(self, loader: Any, may_lack: str = "", **options: Any) -> PreTrainedModel:
        """A model from the checkpoint's folder, on its device, ready to be asked.

        `may_lack`: part of the names of weights that take no part.
        """
        model, report = self.from_folder(
            loader,
            dtype=self.torch_dtype,
            use_safetensors=None if self.runtime.allow_pickle else True,
            output_loading_info=True,
            **options,
        )
        missing = sorted(n for n in report["missing_keys"] if not may_lack or may_lack not in n)
        if missing:
            raise SubmitterError(
                "checkpoint_wrong_class",
                f"{self.source} lacks {len(missing)} weights of {type(model).__name__}, "
                f"among them {missing[0]}.",
            )
        placed: PreTrainedModel = model.to(self.runtime.device).eval()
        return placed

    def from_folder(self, loader: Any, **options: Any) -> Any:
        """Whatever `loader.from_pretrained` makes of the folder; nothing is fetched."""
        try:
            return loader.from_pretrained(
                self.source.place,
                local_files_only=True,
                trust_remote_code=self.runtime.trust_remote_code,
                **options,
            )
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, ImportError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise SubmitterError(
                "checkpoint_wrong_class", f"{self.source} cannot be read as {self.kind}: {reason}"
            ) from error

    def processor(self) -> Any:
        """The checkpoint's processor with an image processor of the wanted backend.

        A backend asked of the whole processor would be asked of its video part too.
        """
        processor = self.from_folder(AutoProcessor)
        processor.image_processor = self.from_folder(
            AutoImageProcessor, backend=self.reading.backend
        )
        return processor

    def environment(self, **more: str) -> dict[str, str]:
        """What a result's record says, with `more` of the adapter's own."""
        return {
            "device": self.runtime.device,
            "dtype": self.dtype,
            "checkpoint": str(self.source),
            "model_type": self.kind,
            **more,
        }


@dataclass(frozen=True)
class SeenImage:
    """An image, or several of one prompt, that went through their processor."""

    images: tuple[Image.Image, ...]  # as they were given to the processor
    features: Mapping[str, Any]  # what its image processor made of them
    length: int  # tokens of an empty prompt with these images


class WatchedImages:
    """An image processor that keeps what it made."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.made: Mapping[str, Any] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the image processor makes, kept as well."""
        made = self._inner(*args, **kwargs)
        self.made = dict(made)
        return made

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_inner"], name)


class PlayedImages:
    """An image processor that gives what was made before."""

    def __init__(self, inner: Any, made: Mapping[str, Any]) -> None:
        self._inner = inner
        self._made = made

    def __call__(self, *args: Any, **kwargs: Any) -> BatchFeature:  # noqa: ARG002
        """What was made before, whatever it is asked for."""
        return BatchFeature(dict(self._made))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_inner"], name)


def with_images(processor: ProcessorMixin, images: Any) -> Any:
    """The processor with another image processor in it; the tokenizer is shared."""
    other: Any = copy.copy(processor)
    other.image_processor = images
    return other


PLAIN_FORMAT = "{image}\n{prompt}"
"""Where neither the checkpoint has a chat template nor the metric a format of its own."""


@dataclass(frozen=True)
class ImagePrompt:
    """A prompt to an image as a model is given it."""

    ids: Tensor  # token ids, shape (length,)
    per_token: dict[str, Tensor]  # other inputs with one value per token, each of shape (1, length)
    pixels: dict[str, Any]  # inputs that hold the image, on the CPU


class ChatText:
    """Makes the inputs of a decoder that reads images before a text."""

    def __init__(self, processor: ProcessorMixin, reading: Reading) -> None:
        self._processor: Any = processor
        self._reading = reading
        self._own = threading.local()
        self.tokenizer: Any = self._processor.tokenizer
        self.image_processor = type(self._processor.image_processor).__name__
        self._format = reading.text_format
        if not self._format and not getattr(processor, "chat_template", None):
            self._format = PLAIN_FORMAT
        self.image_tokens = {token for token in processor.image_token_ids if token is not None}
        self.template = self._format or "chat template of the checkpoint"

    def prepare(self, *images: Image.Image) -> SeenImage:
        """The images after the checkpoint's image processor; for several threads at once."""
        places = self._format.count("{image}")
        if places and places != len(images):
            raise SubmitterError(
                "checkpoint_wrong_class",
                f"The text before the model has {places} places for images, and is given "
                f"{len(images)}.",
                "Use a checkpoint with a chat template, or a row that says where images stand.",
            )
        shown = tuple(self._reading.resized(image) for image in images)
        watched = WatchedImages(self._processor.image_processor)
        inputs = self._processed(with_images(self._of_this_thread(), watched), shown, "")
        return SeenImage(shown, watched.made, inputs["input_ids"].shape[-1])

    def inputs_of(self, seen: SeenImage, prompt: str) -> ImagePrompt:
        """A prompt to images that `prepare` made."""
        played = PlayedImages(self._processor.image_processor, seen.features)
        inputs = self._processed(with_images(self._processor, played), seen.images, prompt)
        ids = inputs.pop("input_ids")
        inputs.pop("attention_mask", None)
        inputs.pop("labels", None)
        per_token = {name: v for name, v in inputs.items() if _shape(v) == ids.shape}
        pixels = {name: v for name, v in inputs.items() if name not in per_token}
        return ImagePrompt(ids[0], per_token, pixels)

    def length(self, prompt: str) -> int:
        """Tokens of a prompt alone."""
        return len(self.tokenizer.encode(prompt, add_special_tokens=False))

    def answers(self, candidates: Sequence[Candidate]) -> list[list[int]]:
        """Token ids of the answers to one prompt."""
        return answer_tokens(
            self.tokenizer,
            candidates,
            space=self._reading.answer_space,
            end=self.tokenizer.eos_token_id,
        )

    def _processed(
        self, processor: Any, images: Sequence[Image.Image], prompt: str
    ) -> dict[str, Any]:
        if self._format:
            token = getattr(processor, "image_token", None) or "<image>"
            reading = self._reading.model_copy(update={"text_format": self._format})
            text = reading.written(token, prompt)
            bos = self.tokenizer.bos_token
            started = bool(bos) and text.startswith(bos)
            found = processor(
                text=[text],
                # In a list of their own, several are those of one prompt.
                images=list(images) if len(images) == 1 else [list(images)],
                return_tensors="pt",
                **({"add_special_tokens": False} if started else {}),
            )
        else:
            found = processor.apply_chat_template(
                self._conversation(images, prompt),
                add_generation_prompt=True,
                tokenize=True,
                return_dict=True,
                return_tensors="pt",
                **self._reading.template_options,
                **({"sanitize_control_tokens": True} if self._writes_control(prompt) else {}),
            )
        return dict(found)

    def _conversation(self, images: Sequence[Image.Image], prompt: str) -> list[dict[str, Any]]:
        content: list[dict[str, Any]] = [{"type": "image", "image": image} for image in images]
        content.append({"type": "text", "text": prompt})
        turns: list[dict[str, Any]] = [{"role": "user", "content": content}]
        if self._reading.system:
            said = [{"type": "text", "text": self._reading.system}]
            turns.insert(0, {"role": "system", "content": said})
        return turns

    def _writes_control(self, prompt: str) -> bool:
        """Whether a prompt holds the text of a control token, which must be read as text."""
        added = self.tokenizer.added_tokens_decoder.values()
        return any(str(token) in prompt for token in added if token.special)

    def _of_this_thread(self) -> ProcessorMixin:
        """Tokenizers keep settings of the running call, so threads have one each."""
        if not hasattr(self._own, "processor"):
            own = copy.copy(self._processor)
            own.tokenizer = copy.deepcopy(self.tokenizer)
            self._own.processor = own
        found: ProcessorMixin = self._own.processor
        return found


def _shape(value: Any) -> torch.Size | None:
    return value.shape if isinstance(value, Tensor) else None
