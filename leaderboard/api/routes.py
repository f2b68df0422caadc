"""`/v1` of the site: the routes of all tables, and the documents beside them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leaderboard.api.exports import router as exports
from leaderboard.api.replies import HANDLERS, NO_STORE, SHARED, Body, refusal
from leaderboard.api.serving import TableServer, json_body, server_of
from leaderboard.api.source import Source
from leaderboard.api.tables import activity, boards, catalogue, comparisons, items, models, votes
from leaderboard.service.bodies import HANG_UP

PATH = "/v1"
VERSION = "1.0.0"
"""The last number moves with what is added; names and meanings change with the first, and its
address."""
_TABLES = (catalogue, boards, comparisons, models, votes, items, activity)
_METHODS = "GET, HEAD, OPTIONS"
_PREFLIGHT = {
    "Allow": _METHODS,
    "Access-Control-Allow-Methods": _METHODS,
    "Access-Control-Allow-Headers": "If-None-Match",
    "Access-Control-Max-Age": "86400",
}
_documents = APIRouter(include_in_schema=False)


@_documents.get("/", summary="What there is: benchmarks, routes, and when the boards were made.")
async def _home(request: Request) -> Response:
    def home() -> Body:
        return json_body(_contents(server_of(request).source, request.app.openapi()))

    return await server_of(request).reply(request, home)


@_documents.get("/openapi.json", summary="All routes as an OpenAPI 3.1 document.")
async def _openapi(request: Request) -> Response:
    return await server_of(request).reply(request, lambda: json_body(request.app.openapi()))


@_documents.get(
    "/ledger.jsonl", summary="The whole ledger as it is kept, byte for byte, to verify its hashes."
)
async def _ledger_file(request: Request) -> Response:
    def file() -> Body:
        content = server_of(request).source.audit_log.content()
        return Body(content, "application/jsonl", "ledger.jsonl", to_keep=True)

    return await server_of(request).reply(request, file)


DOCUMENTS = {
    one.path.replace(":path}", "}"): one.summary
    for one in (*_documents.routes, *exports.routes)
    if isinstance(one, APIRoute)
}
"""Routes that answer no table, to what they answer."""


def application() -> FastAPI:
    """The routes; who serves it sets `state.server` to what answers them."""
    app = FastAPI(
        title="Assay",
        version=VERSION,
        description="What the pages of this leaderboard show, with raw values. Read only.",
        servers=[{"url": "."}],
        openapi_url=None,
        # It would lead to the name of the host that the request gave, and around a proxy's https.
        redirect_slashes=False,
        exception_handlers=HANDLERS,
    )
    for router in (_documents, exports, *(module.router for module in _TABLES)):
        app.include_router(router)
    return app


def routes(source: Source) -> list[BaseRoute]:
    """The routes of the site."""
    app = application()
    app.state.server = TableServer(source)
    with_slash = RedirectResponse(f".{PATH}/", status_code=308)
    return [Route(PATH, OnlyRead(with_slash)), Mount(PATH, app=OnlyRead(app))]


class OnlyRead:
    """Answers every method but `GET` and `HEAD` for an application, whatever the address."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        method = scope["method"] if scope["type"] == "http" else "GET"
        if method == "OPTIONS":
            answer = Response(status_code=204, headers=SHARED | _PREFLIGHT)
            await answer(scope, receive, send)
        elif method == "HEAD":
            await self._app({**scope, "method": "GET"}, receive, _without_body(send))
        elif method == "GET":
            await self._app(scope, receive, send)
        else:
            # Nothing is read of what else was sent.
            headers = SHARED | NO_STORE | HANG_UP | {"Allow": _METHODS}
            told = "method_not_allowed", "This is only read.", f"Use one of: {_METHODS}."
            await refusal(405, *told, headers)(scope, receive, send)


def _without_body(send: Send) -> Send:
    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return send_head


def _contents(source: Source, document: dict[str, Any]) -> dict[str, Any]:
    view = source.reader.view()
    tables = {path: operation["get"]["summary"] for path, operation in document["paths"].items()}
    return {
        "name": "Assay",
        "version": VERSION,
        "as_of": boards.as_of(view),
        "snapshot": view.version or None,
        "openapi": "openapi.json",
        "benchmarks": [
            {"name": name, "title": board.card.title, "board": f"boards/{name}"}
            for name, board in view.boards.items()
        ],
        "routes": [
            {"path": path.removeprefix("/"), "summary": summary}
            for path, summary in (DOCUMENTS | tables).items()
        ],
    }
