"""Asks a vision-language model whether an image shows its prompt: the probability of `Yes`.

The model is named in assay.toml (`models = ["owner/name@commit"]`) and fetched before the run; any
model that `AutoModelForImageTextToText` loads and that has a chat template will do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from PIL import Image
from transformers import AutoModelForImageTextToText, AutoProcessor

QUESTION = 'Does this image show "{prompt}"? Answer with Yes or No.'
YES, NO = ("Yes", "yes"), ("No", "no")
BATCH = 4
"""Prompts that are asked together."""


class Scorer:
    """p(Yes) / (p(Yes) + p(No)) of the first token of the answer.

    Args:
        device: where to compute.
        models: repository to the folder that holds its files.
    """

    def __init__(self, device: str = "cpu", models: Mapping[str, str] | None = None) -> None:
        if not models:
            raise ValueError(
                'no model is named: write models = ["owner/name@commit"] into assay.toml, with all '
                "40 digits of the commit"
            )
        folder = next(iter(models.values()))
        self._processor: Any = AutoProcessor.from_pretrained(folder, local_files_only=True)
        self._processor.tokenizer.padding_side = "left"
        model: Any = AutoModelForImageTextToText.from_pretrained(
            folder,
            local_files_only=True,
            dtype=torch.float32 if device == "cpu" else torch.bfloat16,
        )
        self._model = model.to(device).eval()
        self._yes, self._no = self._ids(YES), self._ids(NO)
        if not self._yes or not self._no or set(self._yes) & set(self._no):
            raise ValueError(
                f"the tokenizer of {folder} begins {YES} and {NO} with the same token or does not "
                "know them: choose answers in YES and NO that begin with tokens of their own"
            )

    def score(self, images: Sequence[Image.Image], prompts: Sequence[str]) -> list[float]:
        """One probability per pair; must be there, and is not called where `score_texts` is."""
        asked = self.score_texts(images, [[prompt] for prompt in prompts])
        return [values[0] for values in asked]

    def score_texts(
        self, images: Sequence[Image.Image], prompts: Sequence[Sequence[str]]
    ) -> list[list[float]]:
        """For each image, one probability per prompt of its own list."""
        return [self._of_image(*pair) for pair in zip(images, prompts, strict=True)]

    def _of_image(self, image: Image.Image, prompts: Sequence[str]) -> list[float]:
        found: list[float] = []
        for start in range(0, len(prompts), BATCH):
            found += self._ask(image, prompts[start : start + BATCH])
        return found

    def _ask(self, image: Image.Image, prompts: Sequence[str]) -> list[float]:
        inputs = self._processor(
            text=[self._chat(prompt) for prompt in prompts],
            images=[[image]] * len(prompts),
            padding=True,
            return_tensors="pt",
        ).to(self._model.device)
        with torch.inference_mode():
            logits = self._model(**inputs, logits_to_keep=1).logits[:, -1].float()
        logprobs = torch.log_softmax(logits, dim=-1)
        yes = torch.logsumexp(logprobs[:, self._yes], dim=1)
        no = torch.logsumexp(logprobs[:, self._no], dim=1)
        return [float(value) for value in torch.sigmoid(yes - no)]

    def _chat(self, prompt: str) -> str:
        """Image, question, and the turn of the model, as its own template has them."""
        content = [{"type": "image"}, {"type": "text", "text": QUESTION.format(prompt=prompt)}]
        said = [{"role": "user", "content": content}]
        return str(
            self._processor.apply_chat_template(said, add_generation_prompt=True, tokenize=False)
        )

    def _ids(self, words: Sequence[str]) -> list[int]:
        """First tokens of these words, with and without a space before them, that say something."""
        tokenizer = self._processor.tokenizer
        spelt = [form for word in words for form in (word, f" {word}")]
        first = {tokenizer.encode(form, add_special_tokens=False)[0] for form in spelt}
        return sorted(
            token for token in first - {tokenizer.unk_token_id} if tokenizer.decode([token]).strip()
        )
