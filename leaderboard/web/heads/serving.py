"""Puts the frame and the head of its view into every page, and serves the picture of a view.

Programs that preview links run no script, so it must be there in the first answer.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from urllib.parse import quote, urlencode

import anyio
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leaderboard.api.replies import Body, reply_bytes, response_of, takes_gzip
from leaderboard.api.source import Source
from leaderboard.cache import MemoryCache
from leaderboard.web.heads.head import PageMetadata, own_head, tags, with_tags
from leaderboard.web.heads.of_views import head_of
from leaderboard.web.heads.picture import picture
from leaderboard.web.middleware import framed
from leaderboard.web.page import Page, root_of

PICTURE = "share.png"
"""`share.png?page=boards&…`, with the query of the page."""
PATIENCE_S = 2.0
"""How long a page waits for its head; then it goes out with its own."""
LONGEST_QUERY = 2000
"""Characters of a query that are looked at; whoever asks for more is told of the page itself."""
_THREADS = 4
_KEPT_BYTES = 8 << 20
_LEVEL = 5


class Described:
    """Middleware that gives pages their frame and the head of what they show."""

    def __init__(
        self,
        app: ASGIApp,
        pages: tuple[Page, ...],
        source: Source | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._app = app
        self._every = pages
        self._pages = {page.path: page for page in pages}
        self._source = source
        self._patience_s = patience_s
        self._threads = CapacityLimiter(_THREADS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        page = self._page(scope)
        if page is None:
            await self._app(scope, receive, send)
            return
        changed = _Changed(send, Headers(scope=scope))
        await self._app(scope, receive, changed.take)
        if changed.held is not None:
            query = scope["query_string"].decode("latin-1")
            head = await self._head(page, query)
            told = _tags(head, page, query, root_of(changed.asked), self._source)
            await changed.release(
                lambda document: framed(with_tags(document, told), self._every, page.path)
            )

    def _page(self, scope: Scope) -> Page | None:
        if scope["type"] != "http" or scope["method"] not in {"GET", "HEAD"}:
            return None
        return self._pages.get(str(scope["path"]).strip("/"))

    async def _head(self, page: Page, query: str) -> PageMetadata:
        if len(query) > LONGEST_QUERY:
            return own_head(page)
        # A store that hangs is no reason for a page not to come.
        with anyio.move_on_after(self._patience_s):
            return await run_sync(
                head_of, page, QueryParams(query), self._source,
                limiter=self._threads, abandon_on_cancel=True,
            )  # fmt: skip
        return own_head(page)


class _Changed:
    """An answer that is held back if it is a page; anything else goes on as it comes."""

    def __init__(self, send: Send, asked: Headers) -> None:
        self.asked = asked
        self.held: Message | None = None
        self._send = send
        self._content: list[bytes] = []

    async def take(self, message: Message) -> None:
        """Take a part of it."""
        if message["type"] == "http.response.start" and _is_page(message):
            self.held = message
        elif message["type"] == "http.response.body" and self.held is not None:
            self._content.append(message.get("body", b""))
        else:
            await self._send(message)

    async def release(self, change: Callable[[bytes], bytes]) -> None:
        """Send the page as it is after a change."""
        assert self.held is not None
        content = change(b"".join(self._content))
        headers = MutableHeaders(raw=list(self.held["headers"]))
        headers.add_vary_header("Accept-Encoding")
        if takes_gzip(self.asked.get("Accept-Encoding", "")):
            content = gzip.compress(content, _LEVEL, mtime=0)
            headers["Content-Encoding"] = "gzip"
        headers["Content-Length"] = str(len(content))
        await self._send({**self.held, "headers": headers.raw})
        await self._send({"type": "http.response.body", "body": content})


def share_route(pages: tuple[Page, ...], source: Source) -> Route:
    """The route of the pictures."""
    kept = MemoryCache(reply_bytes, _KEPT_BYTES)
    by_path = {page.path: page for page in pages}

    def made(path: str, query: Mapping[str, str]) -> Body:
        page = by_path[path]
        head = head_of(page, query, source)
        return kept.of(head, lambda: Body(picture(head), "image/png", PICTURE))

    async def serve(request: Request) -> Response:
        # The first names the page; another is of its query, which row it begins at.
        path, *_ = (*request.query_params.getlist("page"), "")
        if path not in by_path:
            return Response("There is no such page.", 404, media_type="text/plain")
        short = len(request.url.query) <= LONGEST_QUERY
        query = request.query_params if short else QueryParams()
        body = await source.in_thread(lambda: made(path, query))
        return response_of(body, request.headers)

    return Route(f"/{PICTURE}", serve, methods=["GET", "HEAD"])


def _is_page(message: Message) -> bool:
    headers = Headers(raw=message["headers"])
    return (
        message["status"] == 200
        and headers.get("Content-Type", "").startswith("text/html")
        and "Content-Encoding" not in headers
    )


def _tags(head: PageMetadata, page: Page, query: str, root: str, source: Source | None) -> str:
    if not root:
        return tags(head)
    asked = f"?{quote(query, safe='%~:,/&=+@')}" if 0 < len(query) <= LONGEST_QUERY else ""
    if source is None:
        return tags(head, f"{root}{page.path}{asked}")
    given = urlencode({"page": page.path})
    shown = f"{root}{PICTURE}?{given}{asked.replace('?', '&', 1)}"
    return tags(head, f"{root}{page.path}{asked}", shown)
