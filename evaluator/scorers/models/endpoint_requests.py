"""Requests to an endpoint: their rate, their budget, how often each is made, and what a status means."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from benchmarks.errors import PlatformError, TransientError
from benchmarks.sources.client import httpx
from evaluator.bounded_http import ReplyCutOff, ReplyTooLong, exchange
from evaluator.scorers.endpoints import Endpoint
from evaluator.scorers.models.reply_cache import KeptReply, ReplyCache

NO_KEY = "none"
"""In place of a key; without one, the Hub's client would send its token."""
LONGEST_WAIT_S = 120.0
MOST_REFUSALS = 20
"""Requests that are refused before any was answered: then it is not what they ask for."""
_AGAIN = frozenset({408, 409, 425, 429})
_OF_THE_REQUEST = frozenset({400, 413, 415, 422})
"""What endpoints answer where an image or a prompt is refused."""
_SAID = 300
_ROUNDING_USD = 1e-9

T = TypeVar("T")


class RequestRate:
    """Spaces requests evenly."""

    def __init__(self, per_minute: float, clock: Callable[[], float]) -> None:
        self._apart_s, self._clock = 60.0 / per_minute, clock
        self._next, self._lock = 0.0, threading.Lock()

    def wait(self, sleep: Callable[[float], object]) -> None:
        """Return when it is one's turn."""
        with self._lock:
            now = self._clock()
            turn = max(now, self._next)
            self._next = turn + self._apart_s
        if turn > now:
            sleep(turn - now)


class Budget:
    """What may still be spent by all processes; requests under way count as the dearest so far.

    Args:
        endpoint: whose budget it is.
        replies: file that counts what was spent.
        each_usd: price of a request where it is known before; none is made that the rest of the
            budget does not cover. None: as dear as the dearest reply that is kept, until one is dearer.
    """

    def __init__(
        self, endpoint: Endpoint, replies: ReplyCache, each_usd: float | None = None
    ) -> None:
        self._endpoint, self._replies = endpoint, replies
        self._each = each_usd or 0.0
        self._dearest = replies.dearest_usd(endpoint.name) if each_usd is None else each_usd
        self._under_way, self._lock = 0, threading.Lock()
        self._of_thread = threading.local()  # `counted`: whether its request is among what is spent

    @contextmanager
    def request(self) -> Iterator[None]:
        """For the time of a request that may be paid for.

        Raises:
            PlatformError: `budget_spent`.
        """
        free = self._endpoint.free
        with self._lock:
            spent = 0.0 if free else self.spent_usd()
            left = self._endpoint.budget_usd - spent
            with_it = self._each * (self._under_way + 1)
            if not free and (
                left <= self._dearest * self._under_way or left + _ROUNDING_USD < with_it
            ):
                raise PlatformError(
                    "budget_spent",
                    f"The budget of {self._endpoint.name} is spent: {spent:.4f} of "
                    f"{self._endpoint.budget_usd:g} USD.",
                    "Raise budget_usd in the file of endpoints and run it again: what was answered "
                    "is kept, and not paid for twice.",
                )
            self._under_way += 1
        self._of_thread.counted = False
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= not self._of_thread.counted

    def spent_usd(self) -> float:
        """What all requests to the endpoint have cost, those of earlier runs included."""
        return self._replies.spent_usd(self._endpoint.name)

    def keep(self, reply: KeptReply) -> None:
        """Keep the reply to this thread's request and count its price, as under way no more."""
        with self._lock:
            self._dearest = max(self._dearest, reply.usd)
            self._replies.add(reply)
            self._under_way -= not self._of_thread.counted
            self._of_thread.counted = True

    def count_dearest(self, usd: float = 0.0) -> None:
        """Count this thread's request as the dearest, once: its price is known, or cannot be read.

        `usd`: what it cost at least.
        """
        with self._lock:
            if self._of_thread.counted:
                return
            self._dearest = max(self._dearest, usd)
            if not self._endpoint.free:
                self._replies.spend(self._endpoint.name, self._dearest)
            self._under_way -= 1
            self._of_thread.counted = True


class RequestFailure(Exception):  # noqa: N818 (it may well be answered the next time)
    """A request without an answer, so far."""

    def __init__(
        self, why: str, *, again: bool = True, of_the_request: bool = False, rest_s: float = 0.0
    ) -> None:
        super().__init__(why)
        self.again = again  # whether it may be made again
        self.of_the_request = of_the_request  # whether others may well be answered
        self.rest_s = rest_s  # what the endpoint asks for before that; 0 where it says nothing


class EndpointRequests:
    """What requests to an endpoint have in common.

    Args:
        endpoint: of the operator's file.
        each_usd: as `Budget` has it.
        sleep: how to wait; passed in by tests, as is `clock`, in seconds. None: until the run is
            stopped at most.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        each_usd: float | None = None,
        sleep: Callable[[float], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.key = endpoint.key()
        self.replies = ReplyCache(endpoint.replies)
        self.budget = Budget(endpoint, self.replies, each_usd)
        self.worked = False  # whether anything was ever answered
        self._endpoint = endpoint
        self._rate = RequestRate(endpoint.requests_per_minute, clock)
        self._sleep = sleep
        self._refusals = 0

    def answer(self, send: Callable[[], T], stopped: threading.Event) -> T:
        """What `send` makes of a request, which is made again where it fails for now.

        Raises:
            RequestFailure: this request has no answer; others may.
            PlatformError: none has: no access, a spent budget.
            TransientError: the endpoint stayed away or busy through all attempts.
        """
        sleep = self._sleep or stopped.wait
        failed = RequestFailure("it was not asked", of_the_request=True)
        for attempt in range(self._endpoint.attempts):
            if attempt:
                sleep(failed.rest_s or min(2.0**attempt, LONGEST_WAIT_S))
            self._rate.wait(sleep)
            if stopped.is_set():
                raise RequestFailure("the run was stopped")
            try:
                with self.budget.request():
                    found = send()
            except RequestFailure as error:
                failed = error
                if not failed.again or (failed.of_the_request and attempt):
                    break
            else:
                self.worked = True
                return found
        if failed.of_the_request:
            self._note_refusal(str(failed))
            raise failed
        raise TransientError(
            "endpoint_unavailable",
            f"{self._endpoint.name} gave no reply in {self._endpoint.attempts} attempts: {failed}.",
            "Run it again when the endpoint answers: what was answered is kept.",
        )

    def exchange(
        self,
        method: str,
        address: str | httpx.URL,
        most: int,
        *,
        cut_of_the_request: bool = False,
        **options: Any,
    ) -> httpx.Response:
        """A response within the endpoint's time; a success that cannot be read to its end was paid for.

        Args:
            method: as HTTP has it.
            address: where to.
            most: bytes of the body that are read.
            cut_of_the_request: whether a body that is cut off or too slow is laid to the request.
            options: as `bounded_http.exchange` has them.

        Raises:
            RequestFailure: there is none.
        """
        try:
            return exchange(method, address, seconds=self._endpoint.timeout_s, most=most, **options)
        except ReplyTooLong:
            self.budget.count_dearest()
            raise RequestFailure(
                "its reply is too long", again=False, of_the_request=True
            ) from None
        except ReplyCutOff as error:
            self.budget.count_dearest()
            told = f"its reply is cut off ({error})"
            raise RequestFailure(told, of_the_request=cut_of_the_request) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise RequestFailure(f"the connection failed ({type(error).__name__})") from None

    def _note_refusal(self, why: str) -> None:
        """End the run where nothing was ever answered: then it is not what is asked for."""
        self._refusals += 1
        if not self.worked and self._refusals >= MOST_REFUSALS:
            raise PlatformError(
                "endpoint_refused",
                f"{self._endpoint.name} has answered none of {self._refusals} requests: {why}.",
                "Look at its address, the model's name, and what is asked for.",
            )

    def refused(self, response: httpx.Response, words: str) -> RequestFailure:
        """What a status means: for this request, or for now.

        Raises:
            PlatformError: it holds for all requests.
        """
        status = response.status_code
        said = " ".join(self.without_key(words).split())[:_SAID]
        if status in _OF_THE_REQUEST:
            told = f"the endpoint refuses the request ({status}): {said}"
            return RequestFailure(told, again=False, of_the_request=True)
        if status in _AGAIN or status >= 500:
            return RequestFailure(f"it answers {status}", rest_s=_rest_s(response))
        if response.is_redirect:
            there = self.without_key(response.headers.get("location", ""))
            raise PlatformError(
                "endpoint_redirects",
                f"{self._endpoint.name} sends requests to another place ({status}): {there[:_SAID]!r}.",
                "Prompts and images go to the address of the file of endpoints alone: write the new "
                "one there if it is right.",
            )
        raise PlatformError(
            "endpoint_refused",
            f"{self._endpoint.name} refuses requests ({status}): {said}",
            "Look at its address, the model's name, and the key's variable.",
        )

    def without_key(self, text: str) -> str:
        """A text of the endpoint, in which its key is blotted out."""
        return text.replace(self.key, "***") if self.key else text


def _rest_s(response: httpx.Response) -> float:
    """Seconds that the endpoint wants to be left alone, within bounds; 0 where it says nothing."""
    told = response.headers.get("retry-after", "")
    return min(float(told), LONGEST_WAIT_S) if told.isascii() and told.isdigit() else 0.0
