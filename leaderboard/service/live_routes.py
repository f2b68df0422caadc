"""The app's side of the relay: it takes what workers tell, and shows it."""

from __future__ import annotations

import hmac
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from benchmarks.errors import TransientError
from benchmarks.settings.rotation import Secrets, fixed
from leaderboard.service.bodies import HANG_UP, body_of
from leaderboard.service.health_routes import NO_STORE
from leaderboard.store.live.interface import KEY, Heartbeat, Live
from leaderboard.store.live.wire import MOST_BYTES, PATH, SECRET_HEADER, Heartbeats, WorkerReport

MESSAGES_PER_S = 50.0  # Of all workers together; each sends one in five seconds
_MOST_AT_ONCE = 100.0
GRACE_S = 90.0
"""So long after its start the app says nothing of those it has not heard of since: they may well
have told it while it was away. Longer than the silence after which a worker is taken for dead."""

Endpoint = Callable[[Request], Awaitable[Response]]


def routes(
    live: Live,
    secret: str | Secrets,
    clock: Callable[[], datetime],
    *,
    steady: Callable[[], float] = time.monotonic,
) -> list[Route]:
    """Where workers tell, and whoever may look looks."""
    secrets = fixed(secret) if isinstance(secret, str) else secret
    relay = _Relay(live, secrets, clock, steady)
    return [
        Route(f"{PATH}/told", _in_words(relay.receive), methods=["POST"]),
        Route(f"{PATH}/pulses", _in_words(relay.pulses), methods=["GET"]),
        Route(f"{PATH}/said/{{submission_id}}", _in_words(relay.log_of), methods=["GET"]),
    ]


class _Relay:
    """Answers the requests."""

    def __init__(
        self,
        live: Live,
        secrets: Secrets,
        clock: Callable[[], datetime],
        steady: Callable[[], float],
    ) -> None:
        self._live = live
        self._secrets = secrets
        self._clock = clock
        self._steady = steady
        self._started = steady()
        self._bucket = _Bucket(MESSAGES_PER_S, _MOST_AT_ONCE, steady)

    async def receive(self, request: Request) -> Response:
        """Take a message."""
        # Whoever may not is turned away before any of the message is read.
        refused = self._refused(request)
        if refused is not None:
            return refused
        try:
            content = await body_of(request, MOST_BYTES)
        except TimeoutError:
            return _problem(408, "The message did not come in time.", HANG_UP)
        if len(content) > MOST_BYTES:
            return _problem(413, f"A message has at most {MOST_BYTES} bytes.", HANG_UP)
        try:
            told = WorkerReport.model_validate_json(content)
        except ValidationError as error:
            return _problem(422, f"The message cannot be read: {error.error_count()} problems.")
        at = await run_in_threadpool(self._take, told)
        return JSONResponse({"at": at.isoformat()}, headers=NO_STORE)

    async def pulses(self, _: Request) -> Response:
        """Show the pulses, without a word of a scorer."""
        found = await run_in_threadpool(self._heartbeats)
        content = Heartbeats(pulses=found).model_dump_json()
        return Response(content, media_type="application/json", headers=NO_STORE)

    async def log_of(self, request: Request) -> Response:
        """Show a running log to whoever has the secret."""
        refused = self._refused(request)
        if refused is not None:
            return refused
        submission_id = request.path_params["submission_id"]
        if not KEY.fullmatch(submission_id):
            return _problem(404, "There is no such submission.")
        found = await run_in_threadpool(self._live.log_end, submission_id)
        return PlainTextResponse(found, headers=NO_STORE)

    def _take(self, told: WorkerReport) -> datetime:
        """Keep what was told; returns when that was."""
        now = self._clock()  # Here, since it may ask the Hub, and nobody else is to wait for that.
        for pulse in told.pulses:
            self._live.beat(Heartbeat.model_validate(pulse.model_dump() | {"at": now}))
        for submission_id in told.forgotten:
            self._live.forget(submission_id)
        for one in told.logs:
            self._live.set_log(one.submission_id, one.text)
        return now

    def _heartbeats(self) -> tuple[Heartbeat, ...]:
        found = (pulse.for_everybody for pulse in self._live.pulses())
        up_for = self._steady() - self._started
        if up_for >= GRACE_S:
            return tuple(found)
        since = self._clock() - timedelta(seconds=up_for)
        return tuple(pulse for pulse in found if pulse.at >= since)

    def _refused(self, request: Request) -> Response | None:
        secrets = self._secrets()
        if not secrets:
            return _problem(403, "This app relays nothing: ASSAY_LIVE_SECRET is not set.", HANG_UP)
        given = request.headers.get(SECRET_HEADER, "").encode("latin-1", "replace")
        # Takes the same time however wrong.
        if not any(hmac.compare_digest(given, good.encode()) for good in secrets):
            return _problem(401, "The secret is wrong.", HANG_UP)
        if not self._bucket.take():
            return _problem(429, "Too many messages.", {"Retry-After": "1"})
        return None


class _Bucket:
    """So many a second, and some at once."""

    def __init__(self, per_s: float, most: float, steady: Callable[[], float]) -> None:
        self._per_s, self._most, self._steady = per_s, most, steady
        self._left, self._at = most, steady()
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Whether one more may come now."""
        with self._lock:
            now = self._steady()
            self._left = min(self._most, self._left + (now - self._at) * self._per_s)
            self._at = now
            if self._left < 1:
                return False
            self._left -= 1
            return True


def _in_words(endpoint: Endpoint) -> Endpoint:
    """The endpoint, which says so where the store's medium fails."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except (OSError, TransientError):
            return _problem(503, "What is told cannot be kept or read now.", {"Retry-After": "5"})

    return answer


def _problem(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": message}, status, headers=NO_STORE | (headers or {}))
