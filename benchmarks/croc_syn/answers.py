"""The answer side of CROC_syn."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pandas as pd

from benchmarks.schema import Answers

IMAGE_MODELS: tuple[str, ...] = ("flux", "sd")
TEXT_MODELS: dict[str, str] = {"ds": "DeepSeek-R1-Distill-Qwen-14B", "qwen": "QwQ-32B"}
"""The language models that wrote the prompts, as file names abbreviate them."""
MODES: dict[str, str] = {
    "entity_variation": "Entity variation",
    "entity_placement": "Entity placement",
    "subject_property": "Property variation",
}
"""First part of a prompt id to what the paper calls it."""
PROPERTIES = "subject_property"
"""The mode whose prompts each vary one property."""


@dataclass(frozen=True)
class CrocSynAnswers(Answers):
    """Prompt pairs, each with the same number K of images of either prompt.

    `pair_ids` go prompt by prompt as in `prompts`; within one, first the K images of the original,
    then the K of the contrast; each image with the original, then with the contrast text. So the
    scores of a metric have the shape (len(prompts), 2 sides, K images, 2 texts).

    Attributes:
        prompts: one row per prompt pair of one image model:
            `cluster` (int, position in `clusters`: prompt id and original prompt),
            `group` (int, 0..G-1: image model, text model and cluster; what one comparison is made
            in), `mode` (str, key of MODES), `image_model` (str), `text_model` (str),
            `property` (str, as in the prompt id; empty but for property variation),
            `skill` (str, top-level node of the property, may be empty),
            `length` (str, one of `croc.lengths.LENGTHS`).
        images_per_prompt: K.
        dropped: prompt pairs left out because a text is empty (the language model's answer could
            not be read).
    """

    prompts: pd.DataFrame
    images_per_prompt: int
    dropped: int

    def counts(self) -> dict[str, int]:
        """Images and prompt pairs, in all and by mode; what was left out."""
        modes = Counter(self.prompts.drop_duplicates("cluster")["mode"])
        return {
            "images": 2 * self.images_per_prompt * len(self.prompts),
            "images per prompt": self.images_per_prompt,
            "prompt pairs": len(self.clusters),
            "prompt pairs times image models": len(self.prompts),
            "dropped for an empty text": self.dropped,
            **{f"{mode}: prompt pairs": modes[mode] for mode in MODES},
        }
