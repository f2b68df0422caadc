"""Middleware and the frame around every page: old and unknown addresses, uploads of guests.

Gradio serves one document for all pages. The frame is put into it on the way out, so that the bar,
the style sheet and the theme are there before Gradio is, and nothing moves when it comes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leaderboard.api.static_copy import ADDRESS as STATIC_ADDRESS
from leaderboard.governance.authentication import Authentication, Visit, not_signed_in
from leaderboard.rendering import render
from leaderboard.views.addresses import ROWS_PAGE
from leaderboard.views.boards import TAB
from leaderboard.web.assets import assets
from leaderboard.web.page import Page, navigation

_BODY = re.compile(rb"<body\b([^>]*)>")
_TITLE_BY_GRADIO = b'control_page_title="true"'


def framed(document: bytes, pages: Sequence[Page], path: str) -> bytes:
    """A document of Gradio's with the frame; as it was where it has no body."""
    start = _BODY.search(document)
    if start is None:
        return document
    style, script = assets()
    top = render(
        "shell/body.html", here=navigation(pages, path), style=style.address,
        script=script.address, static_copy=STATIC_ADDRESS,
    )  # fmt: skip
    opened = b'<body class="as-loading"' + start[1] + b">" + top.encode()
    # Its title is that of the view, which Gradio does not know.
    after = document[start.end() :].replace(_TITLE_BY_GRADIO, b'control_page_title="false"', 1)
    return document[: start.start()] + opened + after


def unknown_address(pages: Sequence[Page], path: str) -> str:
    """The document for an address where there is nothing."""
    return render("shell/unknown.html", **document_values(pages, None, path), asked=path)


def document_values(
    pages: Sequence[Page],
    place: str | None,
    path: str,
    *,
    nonce: str = "",
    scripts: Sequence[str] = (),
) -> dict[str, object]:
    """What `shell/document.html` prints around a page without Gradio.

    `place`: path of the page whose place is marked; `path`: of the request; `nonce`: of the response's
    content security policy; `scripts`: addresses of more than the site's own.
    """
    style, script = assets()
    return {
        "here": navigation(pages, place),
        "style": style.address,
        "scripts": (script.address, *scripts),
        "base": "../" * (path.count("/") - 1) or "./",
        "nonce": nonce,
    }


_PLAIN = "~:,/"
_BENCHMARK = {"benchmark": "tab"}


@dataclass(frozen=True)
class Redirect:
    """Where an address leads now."""

    to: str  # path of the page below the root
    # parameters of the old query to those of the new; empty: it is dropped. Others stay
    rename: Mapping[str, str] = field(default_factory=dict)
    # what stands before the value of a parameter of the new query
    prefix: Mapping[str, str] = field(default_factory=dict)
    # what the query says now, where the old one does not
    add: Mapping[str, str] = field(default_factory=dict)
    permanent: bool = True  # 308; otherwise 302


REDIRECTS: Mapping[str, Redirect] = {
    "": Redirect("", rename={"page": ROWS_PAGE}),
    "model-pair": Redirect("models", add={"view": "two"}),
    "prompt": Redirect("models", rename={"id": "prompt"}, add={"view": "prompt"}),
    "seeds": Redirect("models", add={"view": "seeds"}),
    "items": Redirect("compare", add={"view": "examples"}),
    "mine": Redirect("submit", rename={"submission": "id", "all": ""}),
    "queue": Redirect("submit", rename={"submission": "id"}),
    "boards": Redirect("", _BENCHMARK, {"tab": TAB}, {"tab": TAB}),
    "moved": Redirect("", _BENCHMARK, {"tab": TAB}, {"tab": TAB, "view": "changes"}),
    "index": Redirect(""),
    "skills": Redirect("", rename={"cost": "by"}, add={"tab": "skill:"}),
    "trust": Redirect("", rename={"page": ""}),
}
"""Path that a page had to where it is; that of a page stands here for parameters that it had."""


def redirected(path: str, query: str, table: Mapping[str, Redirect] = REDIRECTS) -> str | None:
    """The address, relative to the one that was asked for; None where that leads nowhere else."""
    found = table.get(path.strip("/"))
    if found is None:
        return None
    asked_for = parse_qsl(query, keep_blank_values=True)
    given = [(found.rename.get(name, name), value) for name, value in asked_for]
    kept = [(name, found.prefix.get(name, "") + value) for name, value in given if name]
    names = {name for name, _ in kept}
    kept += [(name, value) for name, value in found.add.items() if name not in names]
    if found.to == path.strip("/") and kept == asked_for:
        return None
    asked = f"?{urlencode(kept, safe=_PLAIN)}" if kept else ""
    # Relative, since a proxy may serve the site below a path that it does not tell.
    return f"{'../' * (path.count('/') - 1) or './'}{found.to}{asked}"


class Redirects:
    """Middleware that answers addresses of before."""

    def __init__(self, app: ASGIApp, table: Mapping[str, Redirect] = REDIRECTS) -> None:
        self._app, self._table = app, table

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and scope["method"] in {"GET", "HEAD"}:
            query = scope["query_string"].decode("latin-1")
            to = redirected(scope["path"], query, self._table)
            if to is not None:
                lasting = self._table[scope["path"].strip("/")].permanent
                await RedirectResponse(to, 308 if lasting else 302)(scope, receive, send)
                return
        await self._app(scope, receive, send)


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


_ROUTE = "/upload"


class OnlyKnownUpload:
    """Refuses uploads of visitors without an account, before anything of them is read."""

    def __init__(self, app: ASGIApp, sign_in: Authentication) -> None:
        self._app = app
        self._sign_in = sign_in

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if _is_upload(scope) and self._sign_in.account(visit_of(scope)) is None:
            error = not_signed_in(self._sign_in)
            content = {"detail": f"{error.message} {error.hint}", "code": error.code}
            await JSONResponse(content, status_code=403)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _is_upload(scope: Scope) -> bool:
    return scope["type"] == "http" and str(scope["path"]).rstrip("/").endswith(_ROUTE)


def visit_of(scope: Scope) -> Visit:
    """What the server knows of a request that has no handler yet."""
    peer = scope.get("client") or ("", 0)
    return Visit(str(peer[0]), dict(Headers(scope=scope).items()), _username(scope))


def _username(scope: Scope) -> str | None:
    """Who signed in, out of the session that was signed by the server."""
    session: Mapping[str, Any] = scope.get("session", {})
    info = session.get("oauth_info")
    if not info or info.get("expires_at", 0) < time.time():
        return None
    return str(info["userinfo"]["preferred_username"])
