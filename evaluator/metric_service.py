"""HTTP service of one metric: `POST /score`, in batches over all who wait; for training loops."""

from __future__ import annotations

import asyncio
import base64
import hmac
import math
import threading
from collections import deque
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from benchmarks.errors import AssayError
from evaluator.metric import Metric
from evaluator.scoring.contract import Verdict
from leaderboard.api.replies import BusyError, RefusedError, refusal, status_of
from leaderboard.service.bodies import body_of

_MIB = 2**20
_MOST_NAMED = 10
_AGAIN = "Ask again after Retry-After seconds."
_SHAPE = (
    'Send {"images": [BASE64, ...], "prompts": [TEXT, ...]}, or a form with the fields `images` '
    "(files) and `prompts`, each repeated."
)


@dataclass(frozen=True)
class ServiceLimits:
    """What one request and all that wait may hold."""

    pairs: int = 256  # of a request
    waiting: int = 1024  # pairs of all requests that wait for the model
    body_mib: int = 32  # of a request
    requests: int = 32  # that are read or wait at a time; more are turned away unread


class ScoreRequest(BaseModel):
    """The body of `POST /score`: as many images as prompts."""

    model_config = ConfigDict(extra="forbid", strict=True)

    images: list[str]  # files of images, in base64
    prompts: list[str]  # of the image at the same place


@dataclass
class _WaitingRequest:
    """A request that waits for the model."""

    images: Sequence[bytes]
    prompts: Sequence[str]
    verdicts: Future[list[Verdict]] = field(default_factory=Future)


class ScoringQueue:
    """Requests in a line, of which one thread scores as many together as make a batch.

    Args:
        metric: scores them; only the queue's thread asks it.
        waiting: pairs that may wait at a time.
        batch: pairs that are scored together, unless one request has more.
    """

    def __init__(self, metric: Metric, waiting: int = 1024, batch: int = 64) -> None:
        self._metric, self._most, self._batch = metric, waiting, batch
        self._line: deque[_WaitingRequest] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="scoring", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Pairs that the model has not begun with."""
        with self._changed:
            return self._waiting()

    def put(self, images: Sequence[bytes], prompts: Sequence[str]) -> Future[list[Verdict]]:
        """Queue pairs; a cancelled future is not scored.

        Raises:
            BusyError: `busy`: too many wait; or `closing`.
        """
        asked = _WaitingRequest(images, prompts)
        with self._changed:
            if self._closed:
                raise BusyError("closing", "The service is ending.", _AGAIN)
            waiting = self._waiting()
            if waiting and waiting + len(prompts) > self._most:
                raise BusyError("busy", f"{waiting:,} pairs wait already.", _AGAIN)
            self._line.append(asked)
            self._changed.notify()
        return asked.verdicts

    def close(self) -> None:
        """Score what waits, take no more, and end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _waiting(self) -> int:
        return sum(len(asked.prompts) for asked in self._line)

    def _work(self) -> None:
        while taken := self._taken():
            live = [asked for asked in taken if asked.verdicts.set_running_or_notify_cancel()]
            if live:
                self._answer(live)

    def _taken(self) -> list[_WaitingRequest]:
        """The first in line and those behind it that fit into its batch; none at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._line or self._closed)
            taken: list[_WaitingRequest] = []
            pairs = 0
            while self._line and (not taken or pairs + len(self._line[0].prompts) <= self._batch):
                taken.append(self._line.popleft())
                pairs += len(taken[-1].prompts)
            return taken

    def _answer(self, asked: Sequence[_WaitingRequest]) -> None:
        images = [image for one in asked for image in one.images]
        prompts = [prompt for one in asked for prompt in one.prompts]
        try:
            found = self._metric.verdicts(
                [partial(bytes, image) for image in images], list(enumerate(prompts))
            )
        except Exception as error:  # noqa: BLE001 (raised again where the request is answered)
            if len(asked) == 1:
                asked[0].verdicts.set_exception(error)
                return
            for one in asked:  # Only the one at fault fails.
                self._answer([one])
            return
        for one in asked:
            one.verdicts.set_result(found[: len(one.prompts)])
            found = found[len(one.prompts) :]


def metric_service(
    metric: Metric, *, token: str = "", limits: ServiceLimits | None = None, batch: int = 64
) -> FastAPI:
    """The service, which closes the metric when it ends.

    `POST /score` takes JSON (`ScoreRequest`) or a form with fields `images` (files) and `prompts`,
    each repeated, and answers `{"metric", "scores", "problems"}`: for each pair a score and "", or
    null and why, as of an image that cannot be read. `GET /health` says what is served and how many pairs wait.

    Args:
        metric: loaded, and asked by this service alone.
        token: that requests carry as `Authorization: Bearer`; empty: none is asked for.
        limits: of requests.
        batch: pairs that are scored together.
    """
    limits = limits or ServiceLimits()
    queue = ScoringQueue(metric, limits.waiting, batch)
    read = 0  # requests that are read or wait; changed on the event loop alone

    @asynccontextmanager
    async def until_closed(_: FastAPI) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(queue.close)
        metric.close()

    app = FastAPI(title=f"Assay: {metric.name}", lifespan=until_closed, openapi_url=None)
    app.add_exception_handler(AssayError, _error_answer)
    app.add_exception_handler(HTTPException, _no_route)
    app.add_exception_handler(Exception, _error_answer)

    @app.get("/health")
    async def health() -> dict[str, Any]:
        return {
            "metric": metric.name,
            "title": metric.title,
            "low": metric.low,
            "high": metric.high,
            "higher_is_better": metric.higher_is_better,
            "waiting": queue.waiting,
        }

    @app.post("/score")
    async def score(request: Request) -> JSONResponse:
        nonlocal read
        if token:
            _check_token(request, token)
        if read >= limits.requests:
            raise BusyError("busy", f"{read} requests are being answered.", _AGAIN)
        read += 1
        try:
            images, prompts = await _pairs(request, limits)
            verdicts = await asyncio.wrap_future(queue.put(images, prompts))
        finally:
            read -= 1
        return JSONResponse(
            {
                "metric": metric.name,
                "scores": [None if math.isnan(one.score) else one.score for one in verdicts],
                "problems": [one.problem for one in verdicts],
            }
        )

    return app


async def _no_route(_: Request, error: Exception) -> Response:
    wrong = error if isinstance(error, HTTPException) else HTTPException(HTTPStatus.NOT_FOUND)
    message = "There is nothing at this address, or not by this method."
    hint = "Send POST /score or GET /health."
    return refusal(wrong.status_code, "no_such_route", message, hint, wrong.headers)


async def _error_answer(_: Request, error: Exception) -> Response:
    """The answer that tells an error; what a metric did wrong is not the fault of who asked."""
    if not isinstance(error, AssayError):
        return refusal(500, "defect", "Something went wrong here; the service's log says what.")
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    if isinstance(error, RefusedError | BusyError):
        status = status_of(error)
    headers = {"WWW-Authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else {}
    return refusal(status, error.code, error.message, error.hint, headers)


def _check_token(request: Request, token: str) -> None:
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    right = hmac.compare_digest(given.strip().encode("utf-8", "replace"), token.encode())
    if kind.lower() != "bearer" or not right:
        raise RefusedError(
            HTTPStatus.UNAUTHORIZED,
            "wrong_token",
            "The token is missing or wrong.",
            "Send it as Authorization: Bearer TOKEN.",
        )


async def _pairs(request: Request, limits: ServiceLimits) -> tuple[list[bytes], list[str]]:
    """Images and prompts of a request, as many of the one as of the other."""
    try:
        body = await body_of(request, limits.body_mib * _MIB, within_s=None)
    except TimeoutError as error:
        raise RefusedError(
            HTTPStatus.REQUEST_TIMEOUT, "too_slow", "The request was cut off.", "Send it whole."
        ) from error
    if len(body) > limits.body_mib * _MIB:
        raise RefusedError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            "too_large",
            f"A request may have {limits.body_mib} MiB.",
            "Send fewer images at a time.",
        )
    if request.headers.get("content-type", "").startswith("multipart/form-data"):
        images, prompts = await _of_form(request, body, limits.pairs)
    else:
        images, prompts = await run_in_threadpool(_of_json, body)
    if len(images) != len(prompts):
        found = f"There are {len(images)} images and {len(prompts)} prompts."
        raise RefusedError(
            HTTPStatus.BAD_REQUEST, "lengths_differ", found, "Give each image its own prompt."
        )
    if not images:
        raise RefusedError(
            HTTPStatus.BAD_REQUEST,
            "no_pairs",
            "There is no image and no prompt.",
            "Send at least one pair.",
        )
    if len(images) > limits.pairs:
        raise RefusedError(
            HTTPStatus.BAD_REQUEST,
            "too_many_pairs",
            f"{len(images)} pairs; a request may have {limits.pairs}.",
            "Send them in several requests: those that wait are scored together.",
        )
    return images, prompts


def _of_json(body: bytes) -> tuple[list[bytes], list[str]]:
    try:
        given = ScoreRequest.model_validate_json(body)
    except ValidationError as error:
        wrong = [
            f"{'.'.join(map(str, one['loc'])) or 'body'}: {one['msg']}" for one in error.errors()
        ]
        raise RefusedError(HTTPStatus.BAD_REQUEST, "bad_request", _listed(wrong), _SHAPE) from error
    images, wrong = [], []
    for place, text in enumerate(given.images):
        try:
            images.append(base64.b64decode(text, validate=True))
        except ValueError as error:
            wrong.append(f"images.{place}: not base64 ({error})")
    if wrong:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "bad_request", _listed(wrong), _SHAPE)
    return images, given.prompts


async def _of_form(request: Request, body: bytes, most: int) -> tuple[list[bytes], list[str]]:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    # One more than may be: the check of all requests says what is wrong then.
    parts = Request(request.scope, receive).form(
        max_files=most + 1, max_fields=most + 1, max_part_size=_MIB
    )
    try:
        async with parts as form:
            images = [one for one in form.getlist("images") if isinstance(one, UploadFile)]
            prompts = [one for one in form.getlist("prompts") if isinstance(one, str)]
            if len(images) + len(prompts) < len(form.multi_items()):
                raise RefusedError(
                    HTTPStatus.BAD_REQUEST,
                    "bad_request",
                    "Of a form, images are files and prompts texts.",
                    _SHAPE,
                )
            return [await image.read() for image in images], prompts
    except HTTPException as error:
        raise RefusedError(
            HTTPStatus.BAD_REQUEST,
            "bad_request",
            f"The form cannot be read: {error.detail}",
            _SHAPE,
        ) from error


def _listed(wrong: Sequence[str]) -> str:
    more = f" and {len(wrong) - _MOST_NAMED} more" if len(wrong) > _MOST_NAMED else ""
    return f"{'; '.join(wrong[:_MOST_NAMED])}{more}."
