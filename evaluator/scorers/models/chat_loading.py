"""Loads a decoder that reads images, and finds out what prompts to one image may share."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image
from transformers import (
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    PreTrainedModel,
)

from benchmarks.errors import SubmitterError
from evaluator.scorers.answering import Candidate
from evaluator.scorers.models.chat_leads import Sharing
from evaluator.scorers.models.chat_text import ChatText
from evaluator.scorers.models.chat_vlm import ChatVLM
from evaluator.scorers.models.phi4 import load_phi4
from evaluator.scorers.models.vlm_setting import Setting

TOLERANCE = {"float32": 1e-4, "bfloat16": 0.5, "float16": 0.1}
"""Largest change of a log-probability that is taken for rounding."""
IMAGES_TOGETHER = 4
"""On an accelerator; one image already fills a CPU."""
_FAILURES = (TypeError, ValueError, RuntimeError, NotImplementedError, AttributeError, KeyError)
"""What a model raises that cannot be run in the way that is tried."""
_QUESTIONS = ("Is it red?", "Does this figure show a small dog beside two trees at night?")
_ANSWERS = (Candidate("Yes"), Candidate("No", with_end=True))
_CAUSAL_LM = ("phi4_multimodal",)
"""Kinds that are registered as plain language models only."""


def load_chat_vlm(setting: Setting) -> ChatVLM:
    """A decoder from the checkpoint's folder.

    Raises:
        SubmitterError: `checkpoint_wrong_class`, it does not answer questions to an image.
    """
    if setting.kind == "phi4mm":
        model, processor = load_phi4(setting)
    else:
        kind = AutoModelForCausalLM if setting.kind in _CAUSAL_LM else AutoModelForImageTextToText
        model = setting.pretrained(kind)
        processor = setting.processor()
    return chat_vlm(model, processor, setting)


def chat_vlm(model: PreTrainedModel, processor: Any, setting: Setting) -> ChatVLM:
    """A decoder in memory, sharing as much as leaves its answers alone.

    Whether a model's prompts may share is tried, not presumed: whether it looks ahead from the
    image to the prompt, and how two prompts to each of two images are answered without sharing.

    Raises:
        SubmitterError: `checkpoint_wrong_class`, it does not answer questions to an image.
    """
    text = ChatText(processor, setting.reading)
    together = IMAGES_TOGETHER if model.device.type == "cuda" else 1
    alone = ChatVLM(model, text, {}, "nothing")
    try:
        plain = _probed(alone)
        ahead = alone.looks_ahead(alone.prepare(_pictures()[0]), _QUESTIONS[1])
    except _FAILURES as error:
        raise SubmitterError(
            "checkpoint_wrong_class",
            f"{setting.source} does not answer a question to an image: {error}",
            "An image-text-to-text model of transformers, with its processor, is wanted.",
        ) from error
    said = ["prompts change what is made of the image"] if ahead else []
    for sharing, count in _ways(together, ahead):
        change = _change(plain, ChatVLM(model, text, {}, sharing, count))
        if change <= TOLERANCE[setting.dtype]:
            environment = _environment(setting, text, sharing, count, said)
            return ChatVLM(model, text, environment, sharing, count)
        said.append(f"{sharing} of {count} not exact")
    environment = _environment(setting, text, "nothing", 1, said)
    return ChatVLM(model, text, environment, "nothing")


def _ways(together: int, ahead: bool) -> list[tuple[Sharing, int]]:
    """What is tried, the most first."""
    batched: list[tuple[Sharing, int]] = [("prefix", together)] if together > 1 else []
    return [("vision", 1)] if ahead else [*batched, ("prefix", 1), ("vision", 1)]


def _change(plain: list[np.ndarray], vlm: ChatVLM) -> float:
    """Largest change of a log-probability; infinite where the model cannot be run that way."""
    try:
        found = _probed(vlm)
    except _FAILURES:
        return np.inf
    return max(float(np.abs(a - b).max()) for a, b in zip(plain, found, strict=True))


def _probed(vlm: ChatVLM) -> list[np.ndarray]:
    """Log-probabilities of answers to made-up questions to made-up images."""
    images = [vlm.prepare(one) for one in _pictures()]
    asked = [list(_QUESTIONS)] * len(images)
    answers = [[list(_ANSWERS)] * len(_QUESTIONS)] * len(images)
    found = vlm.answer_logprobs(images, asked, answers)
    return [values for of_image in found for of_prompt in of_image for values in of_prompt]


def _pictures() -> list[Image.Image]:
    """Noise, upright and wide."""
    rng = np.random.default_rng(0)
    shapes = [(96, 64, 3), (64, 128, 3)]
    return [Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8)) for shape in shapes]


def _environment(
    setting: Setting, text: ChatText, sharing: Sharing, count: int, said: list[str]
) -> dict[str, str]:
    shared = {"prefix": "image and text before it", "vision": "vision tower", "nothing": "nothing"}
    return setting.environment(
        template=text.template,
        image_processor=text.image_processor,
        shared_by_prompts=shared[sharing] + (f" ({', '.join(said)})" if said else ""),
        images_together=str(count),
    )
