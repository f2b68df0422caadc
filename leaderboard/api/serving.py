"""The API as an ASGI application: from a request to an answer, whatever comes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from functools import partial
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Message, Receive, Scope, Send

from benchmarks.errors import AssayError, TransientError
from leaderboard.api.operations import FORMAT, LONGEST_QUERY, Asked, Format, Operation
from leaderboard.api.problems import RETRY_AFTER_S, RefusedError, bad_query, problem, status_of
from leaderboard.api.replies import JSON, SHARED, Body, Kept, response_of
from leaderboard.api.source import Source
from leaderboard.service.bodies import HANG_UP
from leaderboard.tables import Table, to_csv, to_json, to_parquet

_log = logging.getLogger(__name__)
_METHODS = "GET, HEAD, OPTIONS"
_READING = ("GET", "HEAD")
_PREFLIGHT = {
    "Allow": _METHODS,
    "Access-Control-Allow-Methods": _METHODS,
    "Access-Control-Allow-Headers": "If-None-Match",
    "Access-Control-Max-Age": "86400",
}
_WITH_SLASHES = ("entry_id", "prompt_id")
"""Parts of a path that may hold slashes."""
Answer = Callable[[Request], Body]
_Serve = Callable[[Request], Awaitable[Response]]


class Api:
    """Answers tables of a source.

    Args:
        source: where everything is read.
        kept: answers that need not be made again.
    """

    def __init__(self, source: Source, kept: Kept | None = None) -> None:
        self._source = source
        self._kept = kept or Kept()

    def route(self, operation: Operation) -> Route:
        """The route of an operation."""
        path = operation.path
        for name in _WITH_SLASHES:
            path = path.replace(f"{{{name}}}", f"{{{name}:path}}")

        def answer(request: Request) -> Body:
            return self.body(operation, asked_of(request, operation), _format(request))

        serve = self.endpoint(answer)
        if operation.of_snapshot:
            serve = _one_first(serve)
        return Route(path, serve, methods=["GET"], name=operation.name)

    def endpoint(self, answer: Answer) -> _Serve:
        """What serves an answer, which reads the store, in a thread of the source."""

        def serve(request: Request) -> Response:
            body = answer(request)
            reader = self._source.reader
            return response_of(body, request.headers, reader.as_of, stale=bool(reader.trouble))

        async def served(request: Request) -> Response:
            return await self._source.in_thread(partial(serve, request))

        return served

    def body(self, operation: Operation, asked: Asked, format_: Format) -> Body:
        """The answer of an operation.

        Raises:
            AssayError: there is none.
        """
        if not operation.of_snapshot:
            return body_of(operation.answer(self._source, asked), format_)
        version = self._source.reader.view().version
        query = tuple(asked.params.multi_items())  # In its order, which may count.
        said = (version, operation.name, tuple(asked.path.items()), query, format_)
        # A query of a thousand parts takes more memory than its answer.
        key = hashlib.sha256(repr(said).encode(errors="backslashreplace")).digest()
        found = self._kept.get(key)
        if found is None:
            found = body_of(operation.answer(self._source, asked), format_)
            # Another version may have come meanwhile: then nobody asks for this one again.
            if self._source.reader.view().version == version:
                self._kept.put(key, found)
        return found


def _one_first(serve: _Serve) -> _Serve:
    """Of requests that are the same at once one is served, then the others: from what was kept.

    They wait without a thread and without a place in the line, so those are left for others.
    """
    under_way: dict[str, Future[None]] = {}

    async def served(request: Request) -> Response:
        key = f"{request.url.path}?{request.url.query}"
        first = under_way.get(key)
        if first is not None:
            # Shielded: who hangs up meanwhile ends no waiting but their own.
            await asyncio.shield(asyncio.wrap_future(first))
            return await serve(request)
        done = under_way[key] = Future()
        try:
            return await serve(request)
        finally:
            under_way.pop(key, None)
            done.set_result(None)

    return served


def asked_of(request: Request, operation: Operation) -> Asked:
    """A request, if everything it says is known.

    Raises:
        RefusedError: `query_too_long`, `unknown_parameter`.
    """
    if len(request.url.query) > LONGEST_QUERY:
        raise RefusedError(
            HTTPStatus.REQUEST_URI_TOO_LONG,
            "query_too_long",
            f"The query has more than {LONGEST_QUERY:,} characters.",
        )
    known = [parameter.name for parameter in operation.parameters]
    items = [(k, v) for k, v in request.query_params.multi_items() if k != FORMAT.name]
    unknown = [name for name, _ in items if name not in known]
    if unknown:
        raise RefusedError(
            HTTPStatus.BAD_REQUEST,
            "unknown_parameter",
            f"There is no parameter “{unknown[0][:60]}” here.",
            f"Known: {', '.join([*known, FORMAT.name])}.",
        )
    return Asked(dict(request.path_params), QueryParams(items))


def body_of(table: Table, format_: Format) -> Body:
    """A table in a format."""
    name = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in table.name)
    file_name = f"{name[:100]}.{format_}"
    if format_ is Format.CSV:
        return Body(to_csv(table).encode(), "text/csv; charset=utf-8", file_name, to_keep=True)
    if format_ is Format.PARQUET:
        kind = "application/vnd.apache.parquet"
        return Body(to_parquet(table), kind, file_name, to_keep=True)
    return Body(to_json(table).encode(), JSON, file_name)


def json_body(content: object) -> Body:
    """A document."""
    return Body(json.dumps(content).encode())


def application(routes: Sequence[BaseRoute]) -> Starlette:
    """The routes, and one shape for everything that is no answer."""
    app = Starlette(
        routes=list(routes),
        exception_handlers={
            HTTPException: _on_http,
            AssayError: _on_ours,
            Exception: _on_defect,
        },
    )
    # It would lead to the name of the host that the request gave, and around a proxy's https.
    app.router.redirect_slashes = False
    return app


class OnlyRead:
    """Answers every method but `GET` and `HEAD` for an application, whatever the address.

    Args:
        app: answers those two.
    """

    def __init__(self, app: Starlette) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        method = scope["method"] if scope["type"] == "http" else "GET"
        if method == "OPTIONS":
            answer = Response(status_code=204, headers=SHARED | _PREFLIGHT)
            await answer(scope, receive, send)
            return
        if method not in _READING:
            await _not_allowed()(scope, receive, send)
            return
        await self._app(scope, receive, _without_body(send) if _is_head(scope) else send)


def _is_head(scope: Scope) -> bool:
    return bool(scope["type"] == "http" and scope["method"] == "HEAD")


def _without_body(send: Send) -> Send:
    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return send_head


def _format(request: Request) -> Format:
    given = request.query_params.getlist(FORMAT.name)
    try:
        return Format(given[-1]) if given else Format.JSON
    except ValueError:
        known = ", ".join(Format)
        raise bad_query("There is no such format.", f"One of: {known}.") from None


def _not_allowed() -> Response:
    said = problem("method_not_allowed", "This is only read.", f"Use one of: {_METHODS}.")
    # Nothing is read of what else was sent.
    headers = SHARED | HANG_UP | {"Allow": _METHODS, "Cache-Control": "no-store"}
    return JSONResponse(said, HTTPStatus.METHOD_NOT_ALLOWED, headers=headers)


async def _on_http(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    said = problem("no_such_route", "There is nothing at this address.", "See /v1/ for what is.")
    return JSONResponse(said, status, headers=SHARED)


async def _on_ours(_: Request, error: Exception) -> Response:
    if not isinstance(error, AssayError):  # The handlers are chosen by class.
        raise error
    status = status_of(error)
    headers = SHARED | {"Cache-Control": "no-store"}
    if isinstance(error, TransientError):
        headers |= {"Retry-After": str(RETRY_AFTER_S)}
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.error("%s: %s", error.code, error)
    return JSONResponse(problem(error.code, error.message, error.hint), status, headers=headers)


async def _on_defect(_: Request, __: Exception) -> Response:
    # The server logs it: what went wrong may say more of the machine than strangers need to know.
    said = problem("defect", "Something went wrong here.", "Please report what you asked for.")
    return JSONResponse(said, 500, headers=SHARED | {"Cache-Control": "no-store"})
