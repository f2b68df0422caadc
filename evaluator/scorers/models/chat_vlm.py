"""Any decoder that reads an image and a text: answers' log-probabilities, and greedy answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from transformers import PreTrainedModel

from evaluator.scorers.answering import Candidate
from evaluator.scorers.models.chat_leads import Lead, Leads, Sharing
from evaluator.scorers.models.chat_text import ChatText
from evaluator.scorers.models.fixed_images import SeenImage
from evaluator.scorers.models.prefix_cache import CachingDecoder
from evaluator.scorers.models.prefix_parts import Rest

ROWS = 8
"""Rests of prompts that run together; each holds a copy of its image's keys and values."""


class ChatVLM:
    """A decoder that reads an image before a text; follows `AnswerModel`.

    Probabilities come from a forward pass over the whole vocabulary, as log-softmax in float32,
    never from what generation reports: that contains the checkpoint's repetition penalty.

    Args:
        model: with a head, in eval mode, on its device.
        text: makes its inputs.
        environment: what a result's record says.
        sharing: what prompts to one image share.
        images_together: images whose beginnings run as one batch, padded on the left.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        text: ChatText,
        environment: dict[str, str],
        sharing: Sharing = "prefix",
        images_together: int = 1,
    ) -> None:
        self._model = model
        self._text = text
        self._environment = environment
        self._decoder = CachingDecoder(model, _pad_id(text.tokenizer))
        self._leads = Leads(model, self._decoder, text, sharing, images_together)
        self._context = context_length(model)
        self._image_length = 0

    @property
    def environment(self) -> dict[str, str]:
        """Device, precision, checkpoint, template, and what prompts to an image share."""
        return dict(self._environment)

    def prepare(self, image: Image.Image) -> SeenImage:
        """The image after the checkpoint's image processor, on the CPU."""
        seen = self._text.prepare(image)
        self._image_length = max(self._image_length, seen.length)
        return seen

    def looks_ahead(self, image: SeenImage, prompt: str) -> bool:
        """Whether what a prompt says changes what is made of the image before it."""
        return self._leads.looks_ahead(image, prompt)

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Whether a prompt with the longest image so far exceeds the model's context.

        Nothing is cut: the model reads such a prompt beyond the length that it was made for.
        """
        room = self._context - self._image_length
        return [self._text.length(prompt) > room for prompt in prompts]

    def answer_logprobs(
        self,
        images: Sequence[SeenImage],
        prompts: Sequence[Sequence[str]],
        candidates: Sequence[Sequence[Sequence[Candidate]]],
    ) -> list[list[list[NDArray[np.float64]]]]:
        """See `AnswerModel`."""
        answers = [[[self._text.answer(c) for c in one] for one in its] for its in candidates]
        found: list[list[list[NDArray[np.float64]]]] = [[[] for _ in its] for its in prompts]
        for group in self._leads.groups(images, prompts):
            for lead, values in self._read(group, answers):
                found[lead.image][lead.prompt] = values
        return found

    def generate(
        self, images: Sequence[SeenImage], prompts: Sequence[Sequence[str]], max_new_tokens: int
    ) -> list[list[str]]:
        """See `AnswerModel`; without repetition penalty, ended by the checkpoint's end tokens."""
        tokenizer = self._text.tokenizer
        stop = end_tokens(self._model, tokenizer)
        found = [[""] * len(its) for its in prompts]
        for group in self._leads.groups(images, prompts):
            for some in _chunks(group):
                rests = [lead.rest(()) for lead in some]
                written = self._decoder.write(some[0].cached, rests, stop, max_new_tokens)
                for lead, ids in zip(some, written, strict=True):
                    words = tokenizer.decode(ids, skip_special_tokens=True)
                    found[lead.image][lead.prompt] = words.strip()
        return found

    def _read(
        self, group: Sequence[Lead], answers: Sequence[Sequence[Sequence[Sequence[int]]]]
    ) -> Iterator[tuple[Lead, list[NDArray[np.float64]]]]:
        """Log-probabilities of the answers to each prompt of a group."""
        jobs = [(lead, stem) for lead in group for stem in stems(answers[lead.image][lead.prompt])]
        logprobs = [torch.log_softmax(logits, dim=-1) for logits in self._logits(jobs)]
        for lead in group:
            its = {
                stem: values
                for (owner, stem), values in zip(jobs, logprobs, strict=True)
                if owner is lead
            }
            yield lead, [along(answer, its) for answer in answers[lead.image][lead.prompt]]

    def _logits(self, jobs: Sequence[tuple[Lead, tuple[int, ...]]]) -> list[Tensor]:
        """Logits before the first token of each stem and after each of its tokens."""
        found: list[Tensor | None] = [None] * len(jobs)
        running: list[tuple[int, Rest]] = []
        for i, (lead, stem) in enumerate(jobs):
            rest = lead.rest(stem)
            if len(rest.ids):
                running.append((i, rest))
            else:
                found[i] = lead.first_logits
        for at in range(0, len(running), ROWS):
            part = running[at : at + ROWS]
            logits = self._decoder.go_on(jobs[0][0].cached, [rest for _, rest in part])
            for (i, _), its in zip(part, logits, strict=True):
                lead = jobs[i][0]
                found[i] = its if len(lead.ids) else torch.cat([lead.first_logits, its])
        return [one for one in found if one is not None]


def stems(answers: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """What has to be read for all answers: each without its last token, the longest ones only."""
    wanted = {tuple(answer[:-1]) for answer in answers}
    return sorted(
        stem
        for stem in wanted
        if not any(other != stem and other[: len(stem)] == stem for other in wanted)
    )


def end_tokens(model: PreTrainedModel, tokenizer: Any) -> set[int]:
    """Tokens that end an answer."""
    config: Any = getattr(model, "generation_config", None) or model.config
    ends = config.eos_token_id if config.eos_token_id is not None else tokenizer.eos_token_id
    return {ends} if isinstance(ends, int) else set(ends or ())


def context_length(model: PreTrainedModel) -> int:
    """Tokens that the language model was made for."""
    config = model.config.get_text_config()
    found: int = getattr(config, "max_position_embeddings", 0) or 2**31
    return found


def along(answer: Sequence[int], logprobs: dict[tuple[int, ...], Tensor]) -> NDArray[np.float64]:
    """Log-probability of each token of an answer, from a stem that begins with it."""
    before = tuple(answer[:-1])
    table = next(table for stem, table in logprobs.items() if stem[: len(before)] == before)
    values = table[torch.arange(len(answer)), torch.tensor(answer)]
    return values.double().cpu().numpy()


def _chunks(group: Sequence[Lead]) -> Iterator[list[Lead]]:
    """Leads that are run together: those that go on with tokens apart from those that do not."""
    for kind in (True, False):
        its = [lead for lead in group if bool(len(lead.ids)) is kind]
        yield from (its[at : at + ROWS] for at in range(0, len(its), ROWS))


def _pad_id(tokenizer: Any) -> int:
    """Any token that the embedding table holds; what it is is never seen."""
    return int(tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0)
