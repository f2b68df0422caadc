"""Files that every page loads: style sheet, script, drawings of guides, names for the search field."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from benchmarks.errors import TransientError
from leaderboard.api.replies import Body, matches, response_of, takes_gzip
from leaderboard.api.source import Source
from leaderboard.publication.entries import latest_entries
from leaderboard.publication.metric_facts import metric_label
from leaderboard.text import one_line
from leaderboard.views.addresses import board_address, metric_address, model_address
from leaderboard.web.guides import FIGURES, figure, figure_type

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


def vote_script() -> Asset:
    """The script of the page of votes."""
    return asset("vote.js", "text/javascript")


def asset_routes() -> tuple[Route, ...]:
    """The routes of all of them, and of the drawings of the guides."""
    every = (*assets(), vote_script())
    own = (Route(f"/{one.name}", _serving(one), methods=["GET", "HEAD"]) for one in every)
    return *own, Route(f"/{FIGURES}/{{name}}", _figure, methods=["GET", "HEAD"])


async def _figure(request: Request) -> Response:
    name = request.path_params["name"]
    content = figure(name)
    if content is None:
        return Response(status_code=404)
    return Response(content, media_type=figure_type(name), headers={"Cache-Control": _ASKED_AGAIN})


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


PATH = "names.json"
MOST = 5_000
"""Names that are sent; boards of more are searched on their own pages."""
_LONGEST = 120


@dataclass(frozen=True)
class Name:
    """What can be found: `kind` is `metric`, `model` or `benchmark`."""

    name: str
    kind: str
    href: str


def names(source: Source) -> tuple[Name, ...]:
    """Every published metric, every model on the boards and every benchmark that has a board."""
    view = source.reader.view()
    found = [
        Name(one_line(board.card.title, _LONGEST), "benchmark", board_address(name))
        for name, board in view.boards.items()
    ]
    found += [
        Name(one_line(metric_label(entry), _LONGEST), "metric", metric_address(entry.entry_id))
        for entry in latest_entries(view.entries.values()).values()
    ]
    if source.models is not None:
        sets = source.models.prompt_sets
        found += [
            Name(one_line(entry.title, _LONGEST), "model", model_address(ident))
            for ident, entry in source.models.track().entries.items()
            if entry.prompt_set in sets
        ]
    return tuple(sorted(found, key=lambda one: one.name.casefold())[:MOST])


def names_route(source: Source) -> Route:
    """The route of the names."""

    async def serve(request: Request) -> Response:
        try:
            found = await source.in_thread(lambda: names(source))
        except TransientError:
            return Response("[]", 503, media_type="application/json", headers={"Retry-After": "5"})
        content = json.dumps([asdict(one) for one in found], ensure_ascii=False)
        return response_of(Body(content.encode()), request.headers)

    return Route(f"/{PATH}", serve, methods=["GET", "HEAD"])
