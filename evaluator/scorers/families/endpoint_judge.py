"""Judge behind an API: a chat model is asked about an image, and its reply is read as a number.

`probability`: the sum of the first token's probabilities over the ways to write the answer that
counts (`Yes`, ` yes`, ...), as in VQAScore (Lin et al. 2024, section 3), among the tokens that the
endpoint lists. Where none of them is listed, the score is 0 if the other answer has at least
`SURE`, and missing otherwise: each of them is then at most as likely as the last one listed.

`rating`: a number under a key of the JSON object that is asked for. `choice`: one of a few words,
each with its score. A reply that cannot be read has no score, and the reason; none is made up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self, TypeVar

from PIL import Image
from pydantic import Field, FiniteFloat, field_validator, model_validator

from benchmarks.errors import PlatformError
from evaluator.scorers.answering import SharedImageScorer
from evaluator.scorers.endpoints import find_endpoint
from evaluator.scorers.models.chat_endpoint import ChatEndpoint, ChatReply, ChatRequest, Replied
from evaluator.scorers.models.judge_replies import read_number, with_evidence, wording
from evaluator.scorers.questions.metric import filled
from evaluator.scorers.registry import Family, Frozen, Loaded, Runtime, ScorerRow
from evaluator.scoring.contract import Verdict

SURE = 0.999
"""Probability of the other answer from which an unlisted one counts as 0."""


class EndpointOptions(Frozen):
    """What rows of judges behind an API have in common."""

    endpoint: str  # of the operator's file
    model: str  # its id there, with the date of its snapshot
    question: str  # `{prompt}` stands for the prompt
    max_tokens: int = Field(default=1, ge=1, le=16_384)
    longest_side: int = Field(default=1024, ge=16, le=8192)  # pixels; larger images are scaled

    @field_validator("question")
    @classmethod
    def _asks_about_the_prompt(cls, question: str) -> str:
        if "{prompt}" not in question:
            raise ValueError("question has no {prompt}")
        return question


_O = TypeVar("_O", bound=EndpointOptions)


class EndpointJudgeOptions(EndpointOptions):
    """What differs between rows."""

    reading: Literal["probability", "rating", "choice"]
    answer: str = "Yes"  # of `probability`: the answer that counts
    other: str = "No"  # and the one against it
    top_logprobs: int = Field(default=20, ge=1, le=20)  # tokens that are listed
    key: str = "score"  # of `rating`
    low: float = 0.0  # of `rating`: its bounds
    high: float = 10.0
    choices: dict[str, FiniteFloat] = Field(default_factory=dict)  # of `choice`: words to scores

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.reading == "choice") != bool(self.choices):
            raise ValueError("choices are for the reading 'choice', which needs them")
        if len({plain_word(one) for one in self.choices}) < len(self.choices):
            raise ValueError("choices are not told apart")
        if not self.low < self.high:
            raise ValueError("low is not below high")
        return self


class EndpointJudge(SharedImageScorer):
    """Scores pairs by the replies of an endpoint; all pairs of a batch are asked together."""

    def __init__(self, endpoint: ChatEndpoint, options: EndpointJudgeOptions) -> None:
        self._endpoint, self._options = endpoint, options
        self._usd = 0.0
        self._read: Callable[[str, ChatReply], Verdict] = {
            "probability": self._probability,
            "rating": self._rating,
            "choice": self._choice,
        }[options.reading]

    def prepare(self, image: Image.Image) -> Image.Image:
        """The image, scaled down to the longest side that the row declares (Lanczos)."""
        return scaled(image, self._options.longest_side)

    def score_texts(
        self, images: Sequence[Image.Image], prompts: Sequence[Sequence[str]]
    ) -> list[list[Verdict]]:
        """For each image, one verdict per prompt of its own list."""
        options = self._options
        top = options.top_logprobs if options.reading == "probability" else 0
        requests = [
            ChatRequest((image,), filled(options.question, prompt=prompt), options.max_tokens, top)
            for image, of_image in zip(images, prompts, strict=True)
            for prompt in of_image
        ]
        replied = self._endpoint.ask(requests)
        self._usd += math.fsum(one.usd for one in replied)
        replies = iter(zip(requests, replied, strict=True))
        return [[self._verdict(*next(replies)) for _ in of_image] for of_image in prompts]

    def take_usd(self) -> float:
        """Price of the replies since the last time; each pair counts the reply that it got."""
        usd, self._usd = self._usd, 0.0
        return usd

    def truncated(self, prompts: Sequence[str]) -> list[bool]:
        """Never: what is too long for an endpoint is refused by it."""
        return [False for _ in prompts]

    def _verdict(self, request: ChatRequest, replied: Replied) -> Verdict:
        if replied.reply is None:
            return Verdict(math.nan, replied.problem)
        problem = unusable(replied.reply, whole=self._options.reading != "probability")
        if problem:
            return self._kept(request.text, replied.reply, math.nan, problem)
        return self._read(request.text, replied.reply)

    def _kept(self, asked: str, reply: ChatReply, value: float, problem: str = "") -> Verdict:
        counts = self._options.answer if self._options.reading == "probability" else ""
        return with_evidence(asked, reply.text or reply.refusal, value, problem, counts)

    def _probability(self, asked: str, reply: ChatReply) -> Verdict:
        listed = reply.first_token
        counted = mass(listed, self._options.answer)
        if counted is None:
            against = mass(listed, self._options.other)
            if against is None or against < SURE:
                least = math.exp(min(p for _, p in listed))
                problem = f"its answer is not among those listed, of which the last has {least:.2g}"
                return self._kept(asked, reply, math.nan, problem)
        return self._kept(asked, reply, min(1.0, counted or 0.0))

    def _rating(self, asked: str, reply: ChatReply) -> Verdict:
        options = self._options
        found = read_number(reply.text, options.key, options.low, options.high)
        value = found.numbers[0] if found.numbers else math.nan
        return self._kept(asked, reply, value, found.problem)

    def _choice(self, asked: str, reply: ChatReply) -> Verdict:
        said = plain_word(reply.text)
        for word, value in self._options.choices.items():
            if said == plain_word(word):
                return self._kept(asked, reply, value)
        problem = f"the reply is none of {', '.join(self._options.choices)}"
        return self._kept(asked, reply, math.nan, problem)


def scaled(image: Image.Image, longest_side: int) -> Image.Image:
    """The image, scaled down to a longest side in pixels (Lanczos); never enlarged."""
    scale = longest_side / max(image.size)
    if scale >= 1:
        return image
    width, height = (max(1, round(side * scale)) for side in image.size)
    return image.resize((width, height), Image.Resampling.LANCZOS)


def unusable(reply: ChatReply, *, whole: bool) -> str:
    """Why a reply is not read; empty where it is. `whole`: whether more than its start is needed."""
    if reply.refusal:
        return "the model refuses to answer"
    return "the reply was cut" if whole and reply.cut else ""


def plain_word(text: str) -> str:
    """A word without what may stand around it."""
    return text.strip().strip(".!\"'*`").casefold()


def mass(listed: Sequence[tuple[str, float]], answer: str) -> float | None:
    """Probability of all ways to write an answer; None where none is listed."""
    found = [p for token, p in listed if token.strip().casefold() == answer.casefold()]
    return math.fsum(map(math.exp, found)) if found else None


def load(row: ScorerRow, options: EndpointJudgeOptions, runtime: Runtime) -> Loaded:
    """A judge at the operator's endpoint of the row's name."""
    del runtime  # Device and precision are the endpoint's.
    return loaded(row, options, EndpointJudge)


def loaded(row: ScorerRow, options: _O, judge: Callable[[ChatEndpoint, _O], Any]) -> Loaded:
    """A judge of either kind, with what has to be said of it."""
    if row.checkpoints:
        raise PlatformError("bad_scorer_row", f"{row.name}: a judge behind an API has no weights.")
    endpoint = find_endpoint(row.endpoint)
    told = {
        "endpoint": endpoint.address,
        "model": options.model,
        "wording": wording(options.question),
    }
    made = judge(ChatEndpoint(endpoint, options.model), options)
    return Loaded(made, told, f"longest side {options.longest_side}")


def identity(options: EndpointOptions) -> dict[str, str]:
    """Where it is asked: two servers may run the same model differently."""
    return {"endpoint": find_endpoint(options.endpoint).address}


FAMILY = Family("judge behind an API", EndpointJudgeOptions, load, identity)
