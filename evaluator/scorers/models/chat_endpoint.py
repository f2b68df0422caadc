"""Chat model behind an endpoint: requests with an image, their replies, limits and budget.

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
_AGAIN = frozenset({408, 409, 425, 429})
_OF_THE_PAIR = frozenset({400, 413, 415, 422})
"""What endpoints answer where an image or a prompt is refused."""
_SAID = 300


class _Token(BaseModel):
    token: str
    logprob: float = Field(le=1e-3)


class _Place(_Token):
    top_logprobs: list[_Token] = []


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
    prompt_tokens: int = Field(default=0, ge=0)
    completion_tokens: int = Field(default=0, ge=0)


class ChatReply(BaseModel):
    """What Assay reads of a reply; the whole of it is kept."""

    model: str = ""
    choices: list[_Choice] = Field(min_length=1, max_length=1)
    usage: _Usage = _Usage()

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
    def first_token(self) -> dict[str, float]:
        """Logarithms of the likeliest first tokens' probabilities; empty where none were told."""
        told = self.choices[0].logprobs
        if told is None or not told.content:
            return {}
        listed = told.content[0].top_logprobs or [told.content[0]]
        return {one.token: one.logprob for one in listed}


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A question about an image."""

    image: Image.Image
    text: str
    max_tokens: int
    top_logprobs: int = 0  # likeliest tokens at each place whose probabilities are wanted


@dataclass(frozen=True, slots=True)
class Replied:
    """What became of a request."""

    reply: ChatReply | None  # None where the endpoint refused it
    problem: str = ""  # why, in one sentence without its full stop


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
        self._client = InferenceClient(
            base_url=endpoint.address, api_key=self._key or NO_KEY, timeout=endpoint.timeout_s
        )

    def ask(self, requests: Sequence[ChatRequest]) -> list[Replied]:
        """A reply to each request, several at a time.

        Raises:
            PlatformError: no request of this kind can be answered: no access, an exchanged model,
                a spent budget.
            TransientError: the endpoint stayed away, busy or confused through all attempts.
        """
        with ThreadPoolExecutor(self.endpoint.concurrency, thread_name_prefix="judge") as pool:
            asked = [pool.submit(self._one, request) for request in requests]
            done, waiting = wait(asked, return_when=FIRST_EXCEPTION)
            for one in waiting:  # Only where one failed: what it costs to go on is not spent.
                one.cancel()
        for one in done:
            one.result()
        return [one.result() for one in asked]

    def _one(self, request: ChatRequest) -> Replied:
        told = self._canonical(request)
        digest = hashlib.sha256(told.encode()).hexdigest()
        kept = self._replies.find(digest)
        if kept is not None:
            return Replied(ChatReply.model_validate_json(kept))
        return self._answered(request, told, digest)

    def _canonical(self, request: ChatRequest) -> str:
        """All of a request that decides its reply, as JSON."""
        said = {
            "address": self.endpoint.address,
            "model": self.model,
            "text": request.text,
            "image": pixel_hash(request.image),
            "seed": SEED,
            "max_tokens": request.max_tokens,
            "top_logprobs": request.top_logprobs,
        }
        return json.dumps(said, sort_keys=True, ensure_ascii=False)

    def _answered(self, request: ChatRequest, told: str, digest: str) -> Replied:
        """The reply, which is kept, or why this request has none."""
        failed = _FailedError("it was not asked")
        for attempt in range(self.endpoint.attempts):
            if attempt:
                self._sleep(failed.rest_s or min(2.0**attempt, LONGEST_WAIT_S))
            self._rate.wait()
            try:
                with self._budget.request():
                    content, reply = self._sent(request)
                    self._keep(told, digest, content, reply)
                return Replied(reply)
            except _FailedError as error:
                failed = error
                if not failed.again:
                    break
        if failed.of_the_pair:
            return Replied(None, str(failed))
        raise TransientError(
            "endpoint_unavailable",
            f"{self.endpoint.name} gave no reply in {self.endpoint.attempts} attempts: {failed}.",
            "Run it again when the endpoint answers: what was answered is kept.",
        )

    def _keep(self, told: str, digest: str, content: str, reply: ChatReply) -> None:
        usd = self._about.usd(reply.usage.prompt_tokens, reply.usage.completion_tokens)
        self._budget.note(usd)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        kept = KeptReply(digest, self.endpoint.name, self.model, told, content, usd, now)
        self._replies.add(kept)

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
        except HfHubHTTPError as error:
            raise self._refused(error) from error
        except (InferenceTimeoutError, httpx.HTTPError) as error:
            raise _FailedError(f"the connection failed ({type(error).__name__})") from error
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            # What the client's parser makes of bodies that are no reply.
            raise _FailedError("what it answers is no reply", of_the_pair=True) from error
        return self._read(said, request)

    def _read(self, said: Any, request: ChatRequest) -> tuple[str, ChatReply]:
        try:
            content = self._without_key(
                json.dumps(_plain(said), ensure_ascii=False, allow_nan=False)
            )
            if len(content) > LONGEST_REPLY:
                raise _FailedError("its reply is too long", again=False, of_the_pair=True)
            reply = ChatReply.model_validate_json(content)
        except (ValueError, TypeError, RecursionError) as error:
            raise _FailedError("what it answers is no reply", of_the_pair=True) from error
        if reply.model not in {"", self.model, *self._about.answers_as}:
            raise PlatformError(
                "model_exchanged",
                f"{self.endpoint.name} was asked for {self.model} and answers as {reply.model[:80]!r}.",
                "Scores of two models are not mixed. If it is the same model, add the name to its "
                "answers_as in the file of endpoints.",
            )
        if request.top_logprobs and not reply.refusal and not reply.first_token:
            raise PlatformError(
                "logprobs_ignored",
                f"{self.endpoint.name} was asked for probabilities of tokens and gives none, without "
                "saying so.",
                "Use a server that gives them (`transformers serve` does not), or a metric that "
                "reads words.",
            )
        return content, reply

    def _refused(self, error: HfHubHTTPError) -> _FailedError:
        """What a status means: for this request, for now, or for all requests."""
        status = error.response.status_code
        said = " ".join(self._without_key(str(error)).split())[:_SAID]
        if status in _OF_THE_PAIR:
            told = f"the endpoint refuses the request ({status}): {said}"
            return _FailedError(told, again=False, of_the_pair=True)
        if status in _AGAIN or status >= 500:
            return _FailedError(f"it answers {status}", rest_s=_rest_s(error))
        raise PlatformError(
            "endpoint_refused",
            f"{self.endpoint.name} refuses requests ({status}): {said}",
            "Look at its address, the model's name, and the key's variable.",
        ) from error

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


def _rest_s(error: HfHubHTTPError) -> float:
    """Seconds that the endpoint wants to be left alone, within bounds; 0 where it says nothing."""
    told = error.response.headers.get("retry-after", "")
    return min(float(told), LONGEST_WAIT_S) if told.isascii() and told.isdigit() else 0.0


def _plain(said: Any) -> Any:
    """A reply as the client read it, with the fields that the client has no name for."""
    if is_dataclass(said):
        return {key: _plain(value) for key, value in vars(said).items()}
    return [_plain(one) for one in said] if isinstance(said, list) else said


def _messages(request: ChatRequest) -> list[dict[str, Any] | ChatCompletionInputMessage]:
    stream = io.BytesIO()
    request.image.save(stream, "PNG")
    data = base64.b64encode(stream.getvalue()).decode()
    image = {"url": f"data:image/png;base64,{data}", "detail": "high"}
    content = [{"type": "image_url", "image_url": image}, {"type": "text", "text": request.text}]
    return [{"role": "user", "content": content}]
