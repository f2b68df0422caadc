"""CROCScore as trained with Assay: the probability that a chat model says Yes, less that of No."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoImageProcessor,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoProcessor,
)

HERE = Path(__file__).parent
CHECKPOINT = HERE / "checkpoint"
CLIP_MEAN_COLOUR = (122, 116, 104)


class Scorer:
    """Asks one question about each pair of image and prompt, and reads the answer's first token.

    Args:
        weights: the file of `checkpoint`, which is read with its folder.
        device: where to compute.
        models: where the checkpoint is on the Hub, its repository to the folder with its files.
    """

    def __init__(
        self, weights: str = "", device: str = "cpu", models: Mapping[str, str] | None = None
    ) -> None:
        checkpoint = next(iter(models.values())) if models else str(CHECKPOINT)
        asked = json.loads((HERE / "asked.json").read_text(encoding="utf-8"))
        self._question, self._reduce = asked["question"], asked["reduce"]
        self._reading: dict[str, Any] = asked["reading"]
        only_language = AutoConfig.from_pretrained(checkpoint).model_type == "phi4_multimodal"
        kind: Any = AutoModelForCausalLM if only_language else AutoModelForImageTextToText
        model, told = kind.from_pretrained(
            checkpoint,
            local_files_only=True,
            dtype=torch.float32 if device == "cpu" else torch.bfloat16,
            output_loading_info=True,
        )
        missing = [name for name in told["missing_keys"] if ".audio_embed." not in name]
        if missing:
            raise ValueError(f"{weights or checkpoint} lacks weights, such as {missing[0]}")
        self._model = model.to(device).eval()
        self._processor: Any = AutoProcessor.from_pretrained(checkpoint, local_files_only=True)
        self._processor.image_processor = AutoImageProcessor.from_pretrained(
            checkpoint, local_files_only=True, backend=self._reading["backend"]
        )
        self._tokenizer = self._processor.tokenizer
        space = " " if self._reading["answer_space"] else ""
        self._yes, self._no = (
            self._tokenizer.encode(space + asked[which], add_special_tokens=False)[0]
            for which in ("answer", "against")
        )

    def prepare(self, image: Image.Image) -> Image.Image:
        """The image as the model's own processor is given it."""
        said = self._reading
        if said["pixels"]:
            scale = math.sqrt(said["pixels"] / (image.width * image.height))
            width, height = (max(1, int(side * scale)) for side in image.size)
            return image.resize((width, height), Image.Resampling.BICUBIC)
        if said["square"] == "squash":
            return image.resize((said["side"], said["side"]), Image.Resampling.LANCZOS)
        if said["square"] == "pad" and image.width != image.height:
            side = max(image.size)
            square = Image.new("RGB", (side, side), CLIP_MEAN_COLOUR)
            square.paste(image, ((side - image.width) // 2, (side - image.height) // 2))
            return square
        return image

    @torch.inference_mode()
    def score(self, images: Sequence[Image.Image], prompts: Sequence[str]) -> list[float]:
        """One score per pair: -1 to 1, or 0 to 1 where the two answers share all probability."""
        return [self._score(*pair) for pair in zip(images, prompts, strict=True)]

    def _score(self, image: Image.Image, prompt: str) -> float:
        inputs = self._inputs(image, self._question.replace("{}", prompt)).to(self._model.device)
        inner: Any = getattr(self._model, "model", None)
        if hasattr(inner, "rope_deltas"):  # of the image before
            inner.rope_deltas = None
        logits: Tensor = self._model(**inputs, use_cache=False, logits_to_keep=1).logits[0, -1]
        if self._reduce == "p_yes_norm":
            return float(torch.sigmoid((logits[self._yes] - logits[self._no]).double()))
        p = logits.float().softmax(dim=-1).double()
        return float(p[self._yes] - p[self._no])

    def _inputs(self, image: Image.Image, question: str) -> Any:
        """Through the template that the model was trained with."""
        before, place, after = self._reading["text_format"].partition("{prompt}")
        if place:
            token = getattr(self._processor, "image_token", None) or "<image>"
            text = before.replace("{image}", token) + question + after.replace("{image}", token)
            bos = self._tokenizer.bos_token
            more = {"add_special_tokens": False} if bos and text.startswith(bos) else {}
            return self._processor(text=[text], images=[image], return_tensors="pt", **more)
        content = [{"type": "image", "image": image}, {"type": "text", "text": question}]
        added = self._tokenizer.added_tokens_decoder.values()
        control = any(str(token) in question for token in added if token.special)
        return self._processor.apply_chat_template(
            [{"role": "user", "content": content}],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            **({"sanitize_control_tokens": True} if control else {}),
        )
