"""Pairwise judge behind an API: a chat model is asked which of two images follows a prompt better.

Both images come first, in the order in which they are compared, then the question.

`log_odds`: the margin is log p(A) - log p(B) of the first token, each summed over the ways to write
it. Where one is not among the tokens that the endpoint lists, the last one listed bounds its
probability, so that the margin is at least as large. `words`: 1 for A, -1 for B, 0 for a tie that
the reply states. A reply that cannot be read has no margin, and the reason; it is never a tie.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, Self

from PIL import Image
from pydantic import Field, model_validator

from evaluator.scorers.families.endpoint_judge import (
    EndpointOptions,
    identity,
    loaded,
    mass,
    plain_word,
    scaled,
    unusable,
)
from evaluator.scorers.models.chat_endpoint import ChatEndpoint, ChatReply, ChatRequest, Replied
from evaluator.scorers.models.judge_replies import with_evidence
from evaluator.scorers.questions.metric import filled
from evaluator.scorers.registry import Family, Loaded, Runtime, ScorerRow
from evaluator.scoring.contract import Verdict


class EndpointComparisonOptions(EndpointOptions):
    """What differs between rows."""

    method: Literal["compare"]
    reading: Literal["log_odds", "words"]
    first: str = "A"  # what is answered where the first image is better
    second: str = "B"
    tie: str = "tie"  # of `words`
    top_logprobs: int = Field(default=20, ge=2, le=20)  # tokens that are listed

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len({plain_word(one) for one in (self.first, self.second, self.tie)}) < 3:
            raise ValueError("answers are not told apart")
        return self


class EndpointComparison:
    """Compares images by the replies of an endpoint; all comparisons of a batch go together."""

    def __init__(self, endpoint: ChatEndpoint, options: EndpointComparisonOptions) -> None:
        self._endpoint, self._options = endpoint, options
        self._read = self._log_odds if options.reading == "log_odds" else self._stated
        self._usd = 0.0

    def prepare(self, image: Image.Image) -> Image.Image:
        """The image, scaled down to the longest side that the row declares (Lanczos)."""
        return scaled(image, self._options.longest_side)

    def compare(
        self,
        prompts: Sequence[str],
        images_a: Sequence[Image.Image],
        images_b: Sequence[Image.Image],
    ) -> list[Verdict]:
        """One margin per comparison, positive where `images_a` is better; NaN where none is read."""
        options = self._options
        top = options.top_logprobs if options.reading == "log_odds" else 0
        requests = [
            ChatRequest((a, b), filled(options.question, prompt=prompt), options.max_tokens, top)
            for prompt, a, b in zip(prompts, images_a, images_b, strict=True)
        ]
        replies = self._endpoint.ask(requests)
        self._usd += math.fsum(one.usd for one in replies)
        return [self._verdict(*one) for one in zip(requests, replies, strict=True)]

    def take_usd(self) -> float:
        """Price of the replies since the last time; each comparison counts the one that it got."""
        usd, self._usd = self._usd, 0.0
        return usd

    def _verdict(self, request: ChatRequest, replied: Replied) -> Verdict:
        if replied.reply is None:
            return Verdict(math.nan, replied.problem)
        problem = unusable(replied.reply, whole=self._options.reading == "words")
        margin = math.nan
        if not problem:
            margin, problem = self._read(replied.reply)
        said = replied.reply.text or replied.reply.refusal
        return with_evidence(request.text, said, margin, problem)

    def _log_odds(self, reply: ChatReply) -> tuple[float, str]:
        """The margin, and why there is none."""
        listed, options = reply.first_token, self._options
        found = [mass(listed, answer) for answer in (options.first, options.second)]
        least = math.exp(min(p for _, p in listed))
        first, second = (least if p is None else p for p in found)
        if found == [None, None] or (None in found and first == second):
            return (
                math.nan,
                f"{options.first} and {options.second} are not told apart by what is listed",
            )
        if not (first and second):
            return math.nan, "a probability is too small for a logarithm"
        return math.log(first) - math.log(second), ""

    def _stated(self, reply: ChatReply) -> tuple[float, str]:
        """The margin, and why there is none."""
        options = self._options
        margins = {options.first: 1.0, options.second: -1.0, options.tie: 0.0}
        said = plain_word(reply.text)
        for answer, margin in margins.items():
            if said == plain_word(answer):
                return margin, ""
        return math.nan, f"the reply is none of {', '.join(margins)}"


def load(row: ScorerRow, options: EndpointComparisonOptions, runtime: Runtime) -> Loaded:
    """A pairwise judge at the operator's endpoint of the row's name."""
    del runtime  # Device and precision are the endpoint's.
    return loaded(row, options, EndpointComparison)


FAMILY = Family("pairwise judge behind an API", EndpointComparisonOptions, load, identity)
