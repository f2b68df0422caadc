"""Chat model behind an endpoint: requests with images, their replies, limits and budget.

A request goes through `huggingface_hub.InferenceClient`, at temperature 0 with a fixed seed unless it
is to be sampled, and every reply is kept by the content of its request (`reply_cache.py`). Whatever an endpoint says is
untrusted: it is parsed strictly, bounded, and its copies of the key are blotted out.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import asdict, dataclass, is_dataclass
from datetime import UTC, datetime
from typing import Any

from huggingface_hub import ChatCompletionInputMessage, InferenceClient
from PIL import Image
from pydantic import BaseModel, Field, ValidationError

from benchmarks.errors import PlatformError
from evaluator.scorers.answering import pixel_hash
from evaluator.scorers.endpoints import Endpoint
from evaluator.scorers.models.endpoint_requests import NO_KEY, EndpointRequests, RequestFailure
from evaluator.scorers.models.reply_cache import KeptReply
from evaluator.scorers.models.sampling import Sampled, Sampling

_LOG = logging.getLogger(__name__)
SEED = 0
LONGEST_REPLY = 100_000
"""Characters of a reply as JSON; more is no answer to what is asked here."""
LARGEST_REPLY = 1 << 20
"""Bytes of a reply as it is sent."""
MOST_TOKENS = 10**9
"""Of a request; a larger number is not believed."""


class _Token(BaseModel):
    token: str
    logprob: float = Field(le=1e-3)


class _Place(BaseModel):
    top_logprobs: list[_Token] | None = None


class _Logprobs(BaseModel):
    content: list[_Place] | None = None


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Usage(BaseModel):
    prompt_tokens: int = Field(ge=0, le=MOST_TOKENS)
    completion_tokens: int = Field(ge=0, le=MOST_TOKENS)


class ChatReply(BaseModel):
    """What Assay reads of a reply; the whole of it is kept."""

    model: str | None = None
    choices: list[_Choice] = Field(min_length=1, max_length=1)
    usage: _Usage | None = None

    @property
    def text(self) -> str:
        """The words; empty where there are none."""
        return self.choices[0].message.content or ""

    @property
    def refusal(self) -> str:
        """Why there are none, in the endpoint's words."""
        choice = self.choices[0]
        filtered = "content_filter" if choice.finish_reason == "content_filter" else ""
        return choice.message.refusal or filtered

    @property
    def cut(self) -> bool:
        """Whether it ended because it was long enough."""
        return self.choices[0].finish_reason == "length"

    @property
    def first_token(self) -> list[tuple[str, float]]:
        """The likeliest first tokens with the logarithms of their probabilities; none if untold."""
        told = self.choices[0].logprobs
        if told is None or not told.content:
            return []
        # Two tokens may be written alike.
        return [(one.token, one.logprob) for one in told.content[0].top_logprobs or ()]


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A question about an image, or about several in their order."""

    images: tuple[Image.Image, ...]
    text: str
    max_tokens: int
    top_logprobs: int = 0  # likeliest tokens at each place whose probabilities are wanted
    seed: int = SEED
    sampling: Sampling | None = None  # None: the likeliest token each time


@dataclass(frozen=True, slots=True)
class Replied:
    """What became of a request."""

    reply: ChatReply | None  # None where the endpoint refused it
    problem: str = ""  # why, in one sentence without its full stop
    usd: float = 0.0  # what the reply cost when it was bought, by the prices of that day


class ChatEndpoint:
    """A model of an endpoint.

    Args:
        endpoint: of the operator's file.
        model: its id there, with the date of its snapshot where it has one.
        sleep: as `EndpointRequests` has it, as is `clock`.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        *,
        sleep: Callable[[float], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.endpoint, self.model = endpoint, model
        self._about = endpoint.model(model)
        self._requests = EndpointRequests(endpoint, sleep=sleep, clock=clock)
        self._replies, self._budget = self._requests.replies, self._requests.budget
        self._refused: list[KeptReply] = []  # before any request was answered: not kept yet
        self._client = _BoundedClient(self._requests, f"{endpoint.address}/chat/completions")

    def ask(self, requests: Sequence[ChatRequest]) -> list[Replied]:
        """A reply to each request, several at a time.

        Raises:
            PlatformError: no request of this kind can be answered: no access, an exchanged model,
                a spent budget.
            TransientError: the endpoint stayed away or busy through all attempts.
        """
        told = [self._canonical(request) for request in requests]
        stopped = threading.Event()
        with ThreadPoolExecutor(self.endpoint.concurrency, thread_name_prefix="judge") as pool:
            try:
                asked = {
                    one: pool.submit(self._one, request, one, stopped)
                    for one, request in dict(zip(told, requests, strict=True)).items()
                }
                done, _ = wait(asked.values(), return_when=FIRST_EXCEPTION)
                for one in done:
                    one.result()
            finally:  # Where one failed, or somebody interrupts, nothing more is paid for.
                stopped.set()
                pool.shutdown(wait=False, cancel_futures=True)
        return [asked[one].result() for one in told]

    def _one(self, request: ChatRequest, told: str, stopped: threading.Event) -> Replied:
        digest = hashlib.sha256(told.encode()).hexdigest()
        replied = self._kept(digest) or self._answered(request, told, digest, stopped)
        if replied.reply is not None:
            self._requests.worked = True
        self._keep_refusals()
        return replied

    def _kept(self, digest: str) -> Replied | None:
        """The reply that is kept; one that is no reply, of an older version, is not kept on."""
        kept = self._replies.find(digest)
        if kept is None:
            problem = self._replies.find_refusal(digest)
            return None if problem is None else Replied(None, problem)
        content, usd = kept
        try:
            return Replied(ChatReply.model_validate_json(content), usd=usd)
        except ValidationError as error:
            name, fault = self.endpoint.name, error.errors()[0]
            where = ".".join(map(str, fault["loc"])) or "all of it"
            _LOG.warning(
                "A reply kept of %s cannot be used and is asked for again: %s: %s (request %s)",
                name, where, fault["msg"], digest,
            )  # fmt: skip
            self._replies.remove(digest)
            return None

    def _canonical(self, request: ChatRequest) -> str:
        """All of a request that decides its reply, as JSON."""
        hashes = [pixel_hash(image) for image in request.images]
        said: dict[str, object] = {
            "address": self.endpoint.address,
            "model": self.model,
            "text": request.text,
            "image": hashes[0] if len(hashes) == 1 else hashes,
            "seed": request.seed,
            "max_tokens": request.max_tokens,
            "top_logprobs": request.top_logprobs,
        }
        if request.sampling is not None:
            said["sampling"] = asdict(request.sampling)
        return json.dumps(said, sort_keys=True, ensure_ascii=False)

    def _answered(
        self, request: ChatRequest, told: str, digest: str, stopped: threading.Event
    ) -> Replied:
        """The reply, which is kept, or why this request has none."""

        def send() -> Replied:
            content, reply = self._sent(request)
            return Replied(reply, usd=self._keep(told, digest, content, reply))

        try:
            return self._requests.answer(send, stopped)
        except RequestFailure as failed:
            if failed.of_the_request:
                self._refused.append(self._record(told, digest, str(failed), 0.0))
            return Replied(None, str(failed))

    def _keep_refusals(self) -> None:
        """Keep the refusals so far, once something was answered: else all may be refused for now."""
        with suppress(IndexError):  # Another thread has kept the last one.
            while self._requests.worked:
                self._replies.add_refusal(self._refused.pop())

    def _keep(self, told: str, digest: str, content: str, reply: ChatReply) -> float:
        """Keep a reply; gives what it cost."""
        usd = self._usd(reply)
        self._budget.keep(self._record(told, digest, content, usd))
        return usd

    def _record(self, told: str, digest: str, content: str, usd: float) -> KeptReply:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return KeptReply(digest, self.endpoint.name, self.model, told, content, usd, now)

    def _usd(self, reply: ChatReply) -> float:
        """What a reply cost, by the tokens that it tells."""
        usage = reply.usage or _Usage(prompt_tokens=0, completion_tokens=0)
        return self._about.usd(usage.prompt_tokens, usage.completion_tokens)

    def _sent(self, request: ChatRequest) -> tuple[str, ChatReply]:
        try:
            said = self._client.chat_completion(
                _messages(request),
                model=self.model,
                temperature=request.sampling.temperature if request.sampling else 0.0,
                top_p=request.sampling.top_p if request.sampling else None,
                presence_penalty=request.sampling.presence_penalty if request.sampling else None,
                seed=request.seed,
                max_tokens=request.max_tokens,
                logprobs=True if request.top_logprobs else None,
                top_logprobs=request.top_logprobs or None,
            )
        except (ValueError, TypeError, AttributeError, RecursionError):
            # The client's parser fails in many ways at bodies that are no reply.
            self._budget.count_dearest()
            raise RequestFailure("what it answers is no reply", of_the_request=True) from None
        return self._read(said, request)

    def _read(self, said: Any, request: ChatRequest) -> tuple[str, ChatReply]:
        try:
            content = self._requests.without_key(
                json.dumps(_plain(said), ensure_ascii=False, allow_nan=False)
            )
            reply = ChatReply.model_validate_json(content)
        except (ValueError, TypeError, RecursionError):
            self._budget.count_dearest()
            raise RequestFailure("what it answers is no reply", of_the_request=True) from None
        if len(content) > LONGEST_REPLY:
            self._budget.count_dearest(self._usd(reply))
            raise RequestFailure("its reply is too long", again=False, of_the_request=True)
        if problem := self._useless(reply, request):
            self._budget.count_dearest(self._usd(reply))
            raise problem
        return content, reply

    def _useless(self, reply: ChatReply, request: ChatRequest) -> PlatformError | None:
        """Why no reply of this server can be used; None where this one can."""
        name = self.endpoint.name
        if reply.model and reply.model not in {self.model, *self._about.answers_as}:
            return PlatformError(
                "model_exchanged",
                f"{name} was asked for {self.model} and answers as {reply.model[:80]!r}.",
                "Scores of two models are not mixed. If it is the same model, add the name to its "
                "answers_as in the file of endpoints.",
            )
        if reply.usage is None and self._about.usd(1, 1) > 0:
            return PlatformError(
                "usage_untold",
                f"{name} does not say how many tokens a request took, so that no budget can hold.",
                "Give it no price if it is your own, or use a server that says so.",
            )
        if request.top_logprobs and not reply.refusal and not reply.first_token:
            return PlatformError(
                "logprobs_ignored",
                f"{name} was asked for probabilities of tokens and gives none, without saying so.",
                "Use a server that gives them (`transformers serve` does not), or a metric that "
                "reads words.",
            )
        return None


class _BoundedClient(InferenceClient):
    """The Hub's client, whose requests are bounded in time and its replies in length."""

    def __init__(self, requests: EndpointRequests, address: str) -> None:
        super().__init__(base_url=address, api_key=requests.key or NO_KEY)
        self._requests = requests

    def _inner_post(self, request_parameters: Any, **_: object) -> Any:
        asked = request_parameters
        response = self._requests.exchange(
            "POST", asked.url, LARGEST_REPLY, json=asked.json, headers=asked.headers
        )
        if not response.is_success:
            # Not as its headers say: they may name what is no character set.
            raise self._requests.refused(response, response.content.decode(errors="replace"))
        return response.content


def _plain(said: Any) -> Any:
    """A reply as the client read it, with the fields that the client has no name for."""
    if is_dataclass(said):
        return {key: _plain(value) for key, value in vars(said).items()}
    return [_plain(one) for one in said] if isinstance(said, list) else said


def _messages(request: ChatRequest) -> list[dict[str, Any] | ChatCompletionInputMessage]:
    content: list[dict[str, Any]] = []
    for image in request.images:
        stream = io.BytesIO()
        image.save(stream, "PNG")
        data = base64.b64encode(stream.getvalue()).decode()
        address = {"url": f"data:image/png;base64,{data}", "detail": "high"}
        content.append({"type": "image_url", "image_url": address})
    return [{"role": "user", "content": [*content, {"type": "text", "text": request.text}]}]


class EndpointTextModel:
    """Asks a chat model in words alone; replies, prices and limits are `ChatEndpoint`'s.

    A prompt that the endpoint refuses, or an answer that was cut, has no text.
    """

    def __init__(self, endpoint: ChatEndpoint) -> None:
        self._endpoint = endpoint

    def generate(self, prompts: Sequence[str], max_new_tokens: int) -> list[str]:
        """See `TextModel`."""
        requests = [ChatRequest((), prompt, max_new_tokens) for prompt in prompts]
        return [_text(replied) for replied in self._endpoint.ask(requests)]

    def sample(
        self, prompts: Sequence[str], seeds: Sequence[int], max_new_tokens: int, how: Sampling
    ) -> list[Sampled]:
        """See `SamplingModel`."""
        requests = [
            ChatRequest((), prompt, max_new_tokens, seed=seed, sampling=how)
            for prompt, seed in zip(prompts, seeds, strict=True)
        ]
        return [_sampled(replied) for replied in self._endpoint.ask(requests)]

    def fits(self, prompt: str, max_new_tokens: int) -> bool:
        """See `TextModel`; what is too long for an endpoint is refused by it."""
        del prompt, max_new_tokens
        return True


def _text(replied: Replied) -> str:
    reply = replied.reply
    return "" if reply is None or reply.refusal or reply.cut else reply.text


def _sampled(replied: Replied) -> Sampled:
    reply = replied.reply
    if reply is None:
        return Sampled("", refusal=replied.problem)
    return Sampled(reply.text, reply.cut, reply.refusal)
