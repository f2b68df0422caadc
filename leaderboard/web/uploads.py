"""Guests cannot fill the disk: a file is taken from those who may submit it, and from nobody else.

Gradio's own route for uploads asks nobody who they are; what is wrong with a file is found only
after all of it has arrived.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from leaderboard.governance.signing_in import SignIn, Visit, not_signed_in

_ROUTE = "/upload"


class OnlyKnownUpload:
    """Refuses uploads of visitors without an account, before anything of them is read."""

    def __init__(self, app: ASGIApp, sign_in: SignIn) -> None:
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
