"""Middleware that answers unknown addresses: browsers get a page, programs keep their JSON."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leaderboard.web.frame import unknown_address
from leaderboard.web.page import Page

FOR_PROGRAMS = ("v1", "mcp", "live", "health", "metrics", "gradio_api")
"""First parts of the addresses whose answers are never pages."""


class UnknownAddresses:
    """Middleware that answers where nothing else does."""

    def __init__(self, app: ASGIApp, pages: Sequence[Page]) -> None:
        self._app, self._pages = app, pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if not _wants_a_page(scope):
            await self._app(scope, receive, send)
            return
        missing = False

        async def take(message: Message) -> None:
            nonlocal missing
            if message["type"] == "http.response.start" and _is_missing(message):
                missing = True
            if not missing:
                await send(message)

        await self._app(scope, receive, take)
        if missing:
            page = unknown_address(self._pages, scope["path"])
            await HTMLResponse(page, 404, headers={"Vary": "Accept"})(scope, receive, send)


def _wants_a_page(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] not in {"GET", "HEAD"}:
        return False
    if str(scope["path"]).strip("/").partition("/")[0] in FOR_PROGRAMS:
        return False
    return "text/html" in Headers(scope=scope).get("Accept", "")


def _is_missing(message: Message) -> bool:
    """Whether nothing was found; who refuses in words of their own is left to say them."""
    kind = Headers(raw=message["headers"]).get("Content-Type", "")
    return message["status"] == 404 and kind.startswith("application/json")
