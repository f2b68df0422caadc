"""Style sheet and script of the site, served as files that browsers keep."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from leaderboard.api.replies import matches, takes_gzip
from leaderboard.web.guides import FIGURES, figure

_LEVEL = 9
_KEPT = "public, max-age=31536000, immutable"
_ASKED_AGAIN = "public, no-cache"


@dataclass(frozen=True)
class Asset:
    """A file: its content, also packed, and the tag that changes with it."""

    name: str
    media_type: str
    content: bytes
    packed: bytes
    tag: str

    @property
    def address(self) -> str:
        """Its address, which changes with its content."""
        return f"./{self.name}?v={self.tag}"


@cache
def asset(name: str, media_type: str) -> Asset:
    """Read a file of `static`."""
    content = resources.files("leaderboard.web").joinpath("static", name).read_bytes()
    tag = hashlib.sha256(content).hexdigest()[:16]
    return Asset(name, media_type, content, gzip.compress(content, _LEVEL, mtime=0), tag)


def assets() -> tuple[Asset, Asset]:
    """The style sheet and the script."""
    return asset("style.css", "text/css"), asset("site.js", "text/javascript")


def asset_routes() -> tuple[Route, ...]:
    """The routes of both, and of the drawings of the guides."""
    own = (Route(f"/{one.name}", _serving(one), methods=["GET", "HEAD"]) for one in assets())
    return *own, Route(f"/{FIGURES}/{{name}}", _figure, methods=["GET", "HEAD"])


async def _figure(request: Request) -> Response:
    content = figure(request.path_params["name"])
    if content is None:
        return Response(status_code=404)
    return Response(content, media_type="image/svg+xml", headers={"Cache-Control": _ASKED_AGAIN})


def _serving(one: Asset) -> Callable[[Request], Awaitable[Response]]:
    async def serve(request: Request) -> Response:
        packed = takes_gzip(request.headers.get("Accept-Encoding", ""))
        tag = f'"{one.tag}{"-gzip" if packed else ""}"'
        lasting = request.query_params.get("v") == one.tag
        headers = {
            "Cache-Control": _KEPT if lasting else _ASKED_AGAIN,
            "ETag": tag,
            "Vary": "Accept-Encoding",
            "X-Content-Type-Options": "nosniff",
        }
        if matches(request.headers.get("If-None-Match", ""), tag):
            return Response(status_code=304, headers=headers)
        if packed:
            headers["Content-Encoding"] = "gzip"
        content = one.packed if packed else one.content
        return Response(content, headers=headers, media_type=one.media_type)

    return serve
