"""Cross-encoders that read image and text together and end in a matching head: BLIP2-ITM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field
from transformers import AutoImageProcessor, AutoTokenizer, Blip2ForImageTextRetrieval

from evaluator.scorers.answering import SharedImageScorer
from evaluator.scorers.checkpoints import resolve
from evaluator.scorers.loading import environment, load_processor, load_transformers
from evaluator.scorers.models.blip import Blip2Matcher, softmax_of_mean
from evaluator.scorers.registry import Family, Frozen, Loaded, Runtime, ScorerRow


class CrossEncoderOptions(Frozen):
    """What differs between rows."""

    max_tokens: int = Field(default=35, ge=3, le=512)  # Tokens of a text, with [CLS] and [SEP]


class MatchScorer(SharedImageScorer):
    """p(match) = softmax(mean over query tokens of the head's logits)[1], in 0..1."""

    def __init__(self, matcher: Blip2Matcher) -> None:
        self._model: Blip2Matcher = matcher

    def score_texts(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]]
    ) -> list[list[float]]:
        """For each image, one score per prompt of its own list."""
        matches = self._model.match(images, prompts)
        return [[softmax_of_mean(match.queries) for match in of_image] for of_image in matches]

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Whether the end of each prompt is cut."""
        return self._model.truncated(prompts)


def load(row: ScorerRow, options: CrossEncoderOptions, runtime: Runtime) -> Loaded:
    """BLIP-2 with its image-text matching head, as `transformers` lays it out."""
    source = resolve(row, runtime)
    model = load_transformers(
        Blip2ForImageTextRetrieval, source, row, runtime, accepted=("blip-2",)
    )
    images = load_processor(AutoImageProcessor, source, runtime)
    tokenizer = load_processor(AutoTokenizer, source, runtime, pil=False)
    matcher = Blip2Matcher(model, tokenizer, images, options.max_tokens, runtime.batch_texts)
    told = environment(row, runtime, {"model": source}, image_processor=type(images).__name__)
    return Loaded(MatchScorer(matcher), told, f"{type(images).__name__} {images.size}")


FAMILY = Family("cross-encoder", CrossEncoderOptions, load)
