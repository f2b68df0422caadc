"""The boards as one static page, served beside the pages: from the store, or as it was last read.

The file is published beside the snapshot. It needs nothing of the site, so that somebody who kept
its address has the boards while the store does not answer.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from benchmarks.errors import TransientError
from leaderboard.api.replies import Body, response_of
from leaderboard.publication.reader import Reader
from leaderboard.publication.static_page import STATIC_PATH
from leaderboard.store.hub.layout import HubName, Part
from leaderboard.store.interface import NotFoundError, Repository

ADDRESS = "as-of"  # Below the root of the site
_HUB = "https://huggingface.co/datasets"
_NOTHING_FROM_ELSEWHERE = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)


class StaticCopy:
    """The page as it was last read. Safe among threads."""

    def __init__(self, reader: Reader, public: Repository) -> None:
        self._reader, self._public = reader, public
        self._lock = threading.Lock()
        self._version: str | None = None
        self._content: bytes | None = None

    def keep(self) -> None:
        """Read it if another snapshot is published than when it was read last."""
        with contextlib.suppress(TransientError, NotFoundError):
            self._read()

    def content(self) -> bytes | None:
        """The page; None where none is published."""
        try:
            self._read()
        except NotFoundError:
            return None
        except TransientError:
            if self._content is None:
                raise
        return self._content

    def _read(self) -> None:
        version = self._reader.view().version
        with self._lock:
            if version != self._version or self._content is None:
                self._content = self._public.read(STATIC_PATH)
                self._version = version


def static_route(
    copy: StaticCopy, in_thread: Callable[[Callable[[], bytes | None]], Awaitable[bytes | None]]
) -> Route:
    """The route of the page."""

    async def serve(request: Request) -> Response:
        try:
            content = await in_thread(copy.content)
        except TransientError:
            said = "The store cannot be read at the moment. Try again soon.\n"
            return PlainTextResponse(said, 503, headers={"Retry-After": "5"})
        if content is None:
            return PlainTextResponse("Nothing is published yet.\n", 404)
        answer = response_of(Body(content, "text/html; charset=utf-8"), request.headers)
        answer.headers["Content-Security-Policy"] = _NOTHING_FROM_ELSEWHERE
        return answer

    return Route(f"/{ADDRESS}", serve, methods=["GET", "HEAD"])


def static_address(hub: str) -> str:
    """Where visitors find the page."""
    if not hub:
        return f"./{ADDRESS}"
    return f"{_HUB}/{HubName(hub).of(Part.RESULTS)}/resolve/main/{STATIC_PATH}"
