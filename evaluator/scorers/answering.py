"""Answers of a vision-language model (VLM): its interface, its inputs, and scores from them."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image
from pydantic import Field

from benchmarks.errors import SubmitterError
from evaluator.scorers.registry import Frozen
from evaluator.scoring.contract import Verdict


def pixel_hash(image: Image.Image) -> str:
    """SHA-256 of width, height (ASCII, as `640x480:`) and RGB bytes, row by row, in hex.

    The same for every lossless encoding of an image.
    """
    shown = image.convert("RGB")
    head = f"{shown.width}x{shown.height}:".encode()
    return hashlib.sha256(head + shown.tobytes()).hexdigest()


class SharedImageScorer(ABC):
    """A scorer that takes an image with all its prompts; its pairs are scored by way of that."""

    _model: Any  # prepares images

    def prepare(self, image: Image.Image) -> Any:
        """What the model takes in place of the image; called by several threads at once."""
        return self._model.prepare(image)

    def score(self, images: Sequence[Any], prompts: Sequence[str]) -> list[float]:
        """One score per pair; NaN where a verdict has none."""
        found = self.score_texts(images, [[prompt] for prompt in prompts])
        return [Verdict.of(of_image[0]).score for of_image in found]

    @abstractmethod
    def score_texts(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]]
    ) -> Sequence[Sequence[float | Verdict]]:
        """For each image, one score per prompt of its own list."""


Asked = TypeVar("Asked")
Given = TypeVar("Given")


def asked_once(
    ask: Callable[[list[Any], list[list[Asked]]], Sequence[Sequence[Given]]],
    images: Sequence[Any],
    questions: Sequence[Iterable[Asked]],
) -> list[dict[Asked, Given]]:
    """For each image the reply to each of its questions, which is put once, all in one call."""
    each = [list(dict.fromkeys(of_image)) for of_image in questions]
    rows = [row for row, of_image in enumerate(each) if of_image]
    found: list[dict[Asked, Given]] = [{} for _ in each]
    if rows:
        given = ask([images[row] for row in rows], [each[row] for row in rows])
        for row, of_image in zip(rows, given, strict=True):
            found[row] = dict(zip(each[row], of_image, strict=True))
    return found


@dataclass(frozen=True, slots=True)
class Candidate:
    """An answer whose probability is wanted."""

    text: str  # as the model would write it, e.g. `Yes`
    with_end: bool = False  # whether the end-of-sequence token is part of it
    first_only: bool = False  # whether its first token stands for it, as in p(yes) and p(no)


def answer_tokens(
    tokenizer: Any, candidates: Sequence[Candidate], *, space: bool = False, end: int | None = None
) -> list[list[int]]:
    """Token ids of the answers to one prompt, whose probabilities can be told apart.

    Args:
        tokenizer: the checkpoint's.
        candidates: the answers; none gets a start token.
        space: whether answers follow a space.
        end: end-of-sequence token, for answers that it is part of.

    Raises:
        SubmitterError: an answer has no tokens or an unknown one (`answer_not_encodable`), or the
            tokens that are read are those of another answer too (`answers_share_first_token`,
            `answers_share_all_tokens`).
    """
    encoded = [
        tokenizer.encode(f" {one.text}" if space else one.text, add_special_tokens=False)
        for one in candidates
    ]
    never = {tokenizer.bos_token_id, tokenizer.unk_token_id} - {None}
    for one, ids in zip(candidates, encoded, strict=True):
        if not ids or never & set(ids):
            raise SubmitterError(
                "answer_not_encodable",
                f"The checkpoint's tokenizer reads the answer {one.text!r} as {ids}.",
                "An answer must have tokens of its own, without a start or unknown token: use a "
                "checkpoint that knows it, or a row with other answers.",
            )
        if one.with_end and end is None:
            raise SubmitterError("answer_not_encodable", "The tokenizer has no end token.")
    shared = _shared_first(tokenizer, candidates, encoded)
    if shared:
        other = "false" if space else "true"
        raise SubmitterError(
            "answers_share_first_token",
            f"Only first tokens of answers are read, and that of {_listed(candidates)} is "
            f"{tokenizer.convert_ids_to_tokens(shared[0])!r} ({shared[0]}), as of other answers.",
            f"Try `answer_space = {other}` in the row's options.reading; or use a metric that "
            "reads whole answers, such as VQAScore with reduce = 'geo_mean_with_eos', or another "
            "checkpoint.",
        )
    whole = [
        [*ids, end] if one.with_end and end is not None else list(ids)
        for one, ids in zip(candidates, encoded, strict=True)
    ]
    if len({tuple(ids) for ids in whole}) < len(set(candidates)):
        raise SubmitterError(
            "answers_share_all_tokens",
            f"The checkpoint's tokenizer reads two of the answers {_listed(candidates)} alike.",
            "Use answers that differ in more than case or spaces, or another checkpoint.",
        )
    return whole


def _shared_first(
    tokenizer: Any, candidates: Sequence[Candidate], encoded: Sequence[Sequence[int]]
) -> list[int]:
    """First tokens that do not tell an answer from others: of several answers, or only a space."""
    firsts = Counter(ids[0] for one, ids in zip(candidates, encoded, strict=True) if one.first_only)
    return [token for token, n in firsts.items() if n > 1 or not tokenizer.decode([token]).strip()]


def _listed(candidates: Sequence[Candidate]) -> str:
    return ", ".join(repr(one.text) for one in candidates)


@dataclass(frozen=True, slots=True)
class WrittenReply:
    """What a model wrote."""

    text: str  # without special tokens
    cut: bool  # whether it was stopped, not having come to an end


class WritingModel(Protocol):
    """A VLM that reads one image or several before a text, and writes."""

    @property
    def environment(self) -> dict[str, str]:
        """See `AnswerModel`."""

    def prepare(self, *images: Image.Image) -> Any:
        """What the model takes in place of the images of a prompt; for several threads at once."""

    def replies(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]], max_new_tokens: int
    ) -> list[list[WrittenReply]]:
        """Greedy replies, for what was prepared and each of its prompts."""

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Whether a prompt is longer than the model reads."""


class AnswerModel(Protocol):
    """A VLM. What it computes for one image is shared by all prompts about that image."""

    @property
    def environment(self) -> dict[str, str]:
        """Device, precision, checkpoint, image processor, and how work on an image is shared."""

    def prepare(self, image: Image.Image) -> Any:
        """What the model takes in place of the image; called by several threads at once."""

    def answer_logprobs(
        self,
        images: Sequence[Any],
        prompts: Sequence[Sequence[str]],
        candidates: Sequence[Sequence[Sequence[Candidate]]],
    ) -> list[list[list[NDArray[np.float64]]]]:
        """Teacher-forced log-probabilities, over the whole vocabulary, in float32 or better."""

    def generate(
        self, images: Sequence[Any], prompts: Sequence[Sequence[str]], max_new_tokens: int
    ) -> list[list[str]]:
        """Greedy answers as text, special tokens removed, for each image and prompt."""

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Whether a prompt is longer than the model reads."""


CLIP_MEAN_COLOUR = (122, 116, 104)
"""CLIP's channel means (0.48145466, 0.4578275, 0.40821073) in 0..255, cut to whole numbers."""


class Reading(Frozen):
    """What of a metric's definition lies outside its question."""

    text_format: str = ""
    """The whole input with `{image}` and `{prompt}` in it, the image first; empty: the chat
    template of the checkpoint. Without `{image}` the checkpoint's processor places the image."""
    system: str = ""  # System message of the chat template; empty: none is given
    answer_space: bool = False
    """Whether answers are read with a space before them, as a word within a sentence."""
    square: Literal["none", "pad", "squash"] = "none"
    """How images are made square ahead of the checkpoint's own processing: `pad` adds CLIP's mean
    colour around the centre, `squash` resizes to `side` and drops the aspect ratio (Lanczos)."""
    side: int = 0  # Pixels, for `squash`
    pixels: int = 0
    """Pixels in all that images are resized to ahead of that, in their shape (bicubic); 0: none."""
    backend: Literal["pil", "torchvision"] = "pil"
    """Of the image processor; they differ by up to one of 255 levels."""

    template_options: dict[str, bool] = Field(default_factory=dict)
    """What the chat template of the checkpoint is told, such as `add_vision_id`."""

    def resized(self, image: Image.Image) -> Image.Image:
        """The image as the checkpoint's processor is given it."""
        if self.pixels:
            scale = math.sqrt(self.pixels / (image.width * image.height))
            width, height = (max(1, int(side * scale)) for side in image.size)
            return image.resize((width, height), Image.Resampling.BICUBIC)
        if self.square == "pad":
            return padded_square(image)
        if self.square == "squash":
            return image.resize((self.side, self.side), Image.Resampling.LANCZOS)
        return image

    def written(self, image_token: str, prompt: str) -> str:
        """`text_format` with its two places filled; braces in the prompt mean nothing."""
        before, _, after = self.text_format.partition("{prompt}")
        return (
            before.replace("{image}", image_token) + prompt + after.replace("{image}", image_token)
        )


def padded_square(image: Image.Image) -> Image.Image:
    """The image in the centre of a square as wide as its longer side, on CLIP's mean colour."""
    side = max(image.size)
    if image.size == (side, side):
        return image
    square = Image.new("RGB", (side, side), CLIP_MEAN_COLOUR)
    square.paste(image, ((side - image.width) // 2, (side - image.height) // 2))
    return square


def geo_mean_with_eos(logprobs: ArrayLike) -> float:
    """Geometric mean of the probabilities of an answer's tokens and of its end token.

    exp(mean log p), which is exp(-loss) of the answer as a label. VQAScore: Lin et al. 2024,
    as its code computes it.

    `logprobs`: of the answer's tokens and, last, the end token; shape (tokens,).
    """
    return float(np.exp(np.mean(_tokens(logprobs))))


def p_first(logprobs: ArrayLike) -> float:
    """Probability of an answer's first token, within 0..1."""
    return float(np.exp(_tokens(logprobs)[0]))


def p_yes_norm(yes: ArrayLike, no: ArrayLike) -> float:
    """p(yes) / (p(yes) + p(no)) of the first tokens: the sigmoid of their logits' difference."""
    ahead = float(_tokens(yes)[0] - _tokens(no)[0])
    if ahead >= 0:
        return 1 / (1 + math.exp(-ahead))
    return math.exp(ahead) / (1 + math.exp(ahead))


def p_diff(yes: ArrayLike, no: ArrayLike) -> float:
    """p(yes) - p(no) of the first tokens, over the whole vocabulary.

    CROCScore: Leiter et al., CROC, 2025.
    """
    return p_first(yes) - p_first(no)


def choice_norm(logprobs: Sequence[ArrayLike], right: int) -> float:
    """Share of one choice in the probabilities of all choices, each of all its tokens.

    Gecko: Wiles et al. 2024, with exp(-NLL) for each choice as its text says.
    """
    totals = np.array([np.sum(_tokens(one)) for one in logprobs])
    shares = np.exp(totals - totals.max())
    return float(shares[right] / shares.sum())


def _tokens(logprobs: ArrayLike) -> np.ndarray:
    values = np.atleast_1d(np.asarray(logprobs, dtype=np.float64))
    if not values.size:
        raise ValueError("an answer has at least one token")
    return values
