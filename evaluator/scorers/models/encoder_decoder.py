"""Encoder-decoder VLMs: a prompt with its image is encoded, answers are decoded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from evaluator.scorers.answering import Candidate
from evaluator.scorers.models.chat_text import answer_ids
from evaluator.scorers.models.chat_vlm import along, stems
from evaluator.scorers.models.vlm_reading import Reading

ROWS = 32
"""Prompts that are encoded together."""


class EncoderDecoderVLM(ABC):
    """An encoder-decoder that reads an image and a text; follows `AnswerModel`.

    Answers are teacher-forced in the decoder; log-softmax over the whole vocabulary in float32.

    Args:
        tokenizer: of the text model.
        reading: how answers are written.
        environment: what a result's record says.
        start: token that begins an answer in the decoder.
        ends: tokens that end it.
        device: of the model.
    """

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
        self._environment = environment
        self._start = start
        self._ends = ends

    @property
    def environment(self) -> dict[str, str]:
        """Device, precision, checkpoint, and what prompts to an image share."""
        return dict(self._environment)

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

    @abstractmethod
    def decode(self, states: Tensor, mask: Tensor, ids: Tensor) -> Tensor:
        """Logits (n, length, vocabulary) after each of the decoder's tokens `ids` (n, length)."""

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

    def answer(self, candidate: Candidate) -> list[int]:
        """Token ids of an answer."""
        text = f" {candidate.text}" if self.reading.answer_space else candidate.text
        ids = answer_ids(self.tokenizer, text, with_end=False)
        return [*ids, min(self._ends)] if candidate.with_end else ids

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
            answers = [[self.answer(one) for one in its] for its in candidates[at : at + ROWS]]
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
