"""Chat model behind an endpoint: requests with images, their replies, limits and budget.

A request goes through `huggingface_hub.InferenceClient`, at temperature 0 with a fixed seed, and
every reply is kept by the content of its request (`reply_cache.py`). Whatever an endpoint says is
untrusted: it is parsed strictly, bounded, and its copies of the key are blotted out.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from datetime import UTC, datetime
from typing import Any

from huggingface_hub import ChatCompletionInputMessage, InferenceClient
from huggingface_hub.errors import HfHubHTTPError, InferenceTimeoutError
from PIL import Image
from pydantic import BaseModel, Field

from benchmarks.errors import PlatformError, TransientError
from benchmarks.sources.client import httpx, limit_waiting
from evaluator.scorers.answering import pixel_hash
from evaluator.scorers.endpoints import Endpoint
from evaluator.scorers.models.reply_cache import KeptReply, ReplyCache

SEED = 0
NO_KEY = "none"
"""In place of a key; without one, the client would send its token of the Hub."""
LONGEST_REPLY = 100_000
"""Characters of a reply as JSON; more is no answer to what is asked here."""
LONGEST_WAIT_S = 120.0
MOST_REFUSALS = 20
"""Requests that are refused before any was answered: then it is not the pairs."""
_AGAIN = frozenset({408, 409, 425, 429})
_OF_THE_PAIR = frozenset({400, 413, 415, 422})
"""What endpoints answer where an image or a prompt is refused."""
_SAID = 300


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
    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)


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


@dataclass(frozen=True, slots=True)
class Replied:
    """What became of a request."""

    reply: ChatReply | None  # None where the endpoint refused it
    problem: str = ""  # why, in one sentence without its full stop
    usd: float = 0.0  # what the reply cost when it was bought, by the prices of that day


class RequestRate:
    """Spaces requests evenly."""

    def __init__(
        self, per_minute: float, clock: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        self._apart_s, self._clock, self._sleep = 60.0 / per_minute, clock, sleep
        self._next, self._lock = 0.0, threading.Lock()

    def wait(self) -> None:
        """Return when it is one's turn."""
        with self._lock:
            now = self._clock()
            turn = max(now, self._next)
            self._next = turn + self._apart_s
        if turn > now:
            self._sleep(turn - now)


class Budget:
    """What may still be spent by all processes; requests under way count as the dearest so far."""

    def __init__(self, endpoint: Endpoint, replies: ReplyCache) -> None:
        self._endpoint, self._replies = endpoint, replies
        self._free = all(model.usd(1, 1) == 0 for model in endpoint.models.values())
        self._dearest, self._under_way, self._lock = 0.0, 0, threading.Lock()

    @contextmanager
    def request(self) -> Iterator[None]:
        """For the time of a request that may be paid for.

        Raises:
            PlatformError: `budget_spent`.
        """
        with self._lock:
            spent = 0.0 if self._free else self._replies.spent_usd(self._endpoint.name)
            left = self._endpoint.budget_usd - spent
            if not self._free and left <= self._dearest * self._under_way:
                raise PlatformError(
                    "budget_spent",
                    f"The budget of {self._endpoint.name} is spent: {spent:.4f} of "
                    f"{self._endpoint.budget_usd:g} USD.",
                    "Raise budget_usd in the file of endpoints and run it again: what was answered "
                    "is kept, and not paid for twice.",
                )
            self._under_way += 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1

    def note(self, usd: float) -> None:
        """Learn what a request cost."""
        with self._lock:
            self._dearest = max(self._dearest, usd)

    def count_unread(self) -> None:
        """Count an answer whose price cannot be read as the dearest so far."""
        if not self._free:
            self._replies.spend(self._endpoint.name, self._dearest)


class ChatEndpoint:
    """A model of an endpoint.

    Args:
        endpoint: of the operator's file.
        model: its id there, with the date of its snapshot where it has one.
        sleep: how to wait; passed in by tests, as is `clock`, in seconds.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        limit_waiting()
        self.endpoint, self.model = endpoint, model
        self._key = endpoint.key()
        self._about = endpoint.model(model)
        self._replies = ReplyCache(endpoint.replies)
        self._budget = Budget(endpoint, self._replies)
        self._rate = RequestRate(endpoint.requests_per_minute, clock, sleep)
        self._sleep = sleep
        self._worked, self._refusals = False, 0
        self._client = InferenceClient(
            base_url=f"{endpoint.address}/chat/completions",
            api_key=self._key or NO_KEY,
            timeout=endpoint.timeout_s,
        )

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
        kept = self._replies.find(digest)
        if kept is None:
            return self._answered(request, told, digest, stopped)
        self._worked = True
        reply, usd = kept
        return Replied(ChatReply.model_validate_json(reply), usd=usd)

    def _canonical(self, request: ChatRequest) -> str:
        """All of a request that decides its reply, as JSON."""
        hashes = [pixel_hash(image) for image in request.images]
        said = {
            "address": self.endpoint.address,
            "model": self.model,
            "text": request.text,
            "image": hashes[0] if len(hashes) == 1 else hashes,
            "seed": SEED,
            "max_tokens": request.max_tokens,
            "top_logprobs": request.top_logprobs,
        }
        return json.dumps(said, sort_keys=True, ensure_ascii=False)

    def _answered(
        self, request: ChatRequest, told: str, digest: str, stopped: threading.Event
    ) -> Replied:
        """The reply, which is kept, or why this request has none."""
        failed = _FailedError("it was not asked", of_the_pair=True)
        for attempt in range(self.endpoint.attempts):
            if attempt:
                self._sleep(failed.rest_s or min(2.0**attempt, LONGEST_WAIT_S))
            self._rate.wait()
            if stopped.is_set():
                return Replied(None, "the run was stopped")
            try:
                with self._budget.request():
                    content, reply = self._sent(request)
                    usd = self._keep(told, digest, content, reply)
                self._worked = True
                return Replied(reply, usd=usd)
            except _FailedError as error:
                failed = error
                if not failed.again or (failed.of_the_pair and attempt):
                    break
        if failed.of_the_pair:
            self._note_refusal(str(failed))
            return Replied(None, str(failed))
        raise TransientError(
            "endpoint_unavailable",
            f"{self.endpoint.name} gave no reply in {self.endpoint.attempts} attempts: {failed}.",
            "Run it again when the endpoint answers: what was answered is kept.",
        )

    def _note_refusal(self, why: str) -> None:
        """End the run where nothing was ever answered: then it is not the pairs."""
        self._refusals += 1
        if not self._worked and self._refusals >= MOST_REFUSALS:
            raise PlatformError(
                "endpoint_refused",
                f"{self.endpoint.name} has answered none of {self._refusals} requests: {why}.",
                "Look at its address, the model's name, and what the row asks for.",
            )

    def _keep(self, told: str, digest: str, content: str, reply: ChatReply) -> float:
        """Keep a reply; gives what it cost."""
        usage = reply.usage or _Usage(prompt_tokens=0, completion_tokens=0)
        usd = self._about.usd(usage.prompt_tokens, usage.completion_tokens)
        self._budget.note(usd)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        kept = KeptReply(digest, self.endpoint.name, self.model, told, content, usd, now)
        self._replies.add(kept)
        return usd

    def _sent(self, request: ChatRequest) -> tuple[str, ChatReply]:
        try:
            said = self._client.chat_completion(
                _messages(request),
                model=self.model,
                temperature=0.0,
                seed=SEED,
                max_tokens=request.max_tokens,
                logprobs=True if request.top_logprobs else None,
                top_logprobs=request.top_logprobs or None,
            )
        except (InferenceTimeoutError, httpx.TransportError) as error:
            raise _FailedError(f"the connection failed ({type(error).__name__})") from None
        except (
            HfHubHTTPError, httpx.HTTPError, ValueError, TypeError, AttributeError, RecursionError,
        ) as error:  # fmt: skip
            # The client's parser fails in many ways at bodies that are no reply, or no error.
            response = _response_of(error)
            if response is not None and response.status_code >= 400:
                raise self._refused(response, str(error)) from None  # It may repeat the key.
            self._budget.count_unread()
            raise _FailedError("what it answers is no reply", of_the_pair=True) from None
        return self._read(said, request)

    def _read(self, said: Any, request: ChatRequest) -> tuple[str, ChatReply]:
        try:
            content = self._without_key(
                json.dumps(_plain(said), ensure_ascii=False, allow_nan=False)
            )
            reply = ChatReply.model_validate_json(content)
        except (ValueError, TypeError, RecursionError):
            self._budget.count_unread()
            raise _FailedError("what it answers is no reply", of_the_pair=True) from None
        if len(content) > LONGEST_REPLY:
            self._budget.count_unread()
            raise _FailedError("its reply is too long", again=False, of_the_pair=True)
        if problem := self._useless(reply, request):
            self._budget.count_unread()
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

    def _refused(self, response: httpx.Response, words: str) -> _FailedError:
        """What a status means: for this request, for now, or for all requests."""
        status = response.status_code
        said = " ".join(self._without_key(words).split())[:_SAID]
        if status in _OF_THE_PAIR:
            told = f"the endpoint refuses the request ({status}): {said}"
            return _FailedError(told, again=False, of_the_pair=True)
        if status in _AGAIN or status >= 500:
            return _FailedError(f"it answers {status}", rest_s=_rest_s(response))
        raise PlatformError(
            "endpoint_refused",
            f"{self.endpoint.name} refuses requests ({status}): {said}",
            "Look at its address, the model's name, and the key's variable.",
        )

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text


class _FailedError(Exception):
    """A request without a reply, so far."""

    def __init__(
        self, why: str, *, again: bool = True, of_the_pair: bool = False, rest_s: float = 0.0
    ) -> None:
        super().__init__(why)
        self.again = again  # whether it may be asked again
        self.of_the_pair = of_the_pair  # whether other requests may well be answered
        self.rest_s = rest_s  # what the endpoint asks for before that; 0 where it says nothing


def _response_of(error: BaseException | None) -> httpx.Response | None:
    """The response behind an error, which the client may have failed at putting into words."""
    while error is not None:
        response = getattr(error, "response", None)
        if isinstance(response, httpx.Response):
            return response
        error = error.__cause__ or error.__context__
    return None


def _rest_s(response: httpx.Response) -> float:
    """Seconds that the endpoint wants to be left alone, within bounds; 0 where it says nothing."""
    told = response.headers.get("retry-after", "")
    return min(float(told), LONGEST_WAIT_S) if told.isascii() and told.isdigit() else 0.0


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
