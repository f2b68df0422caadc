"""Names of metrics, models and benchmarks with their addresses, for the search field."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from benchmarks.errors import TransientError
from leaderboard.api.replies import Body, response_of
from leaderboard.api.source import Source
from leaderboard.publication.identities import latest_entries
from leaderboard.text import clean
from leaderboard.views.addresses import board_address, metric_address, model_address

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
        Name(_line(board.card.title), "benchmark", board_address(name))
        for name, board in view.boards.items()
    ]
    found += [
        Name(_line(f"{who.metric} {who.version or ''}"), "metric", metric_address(entry.entry_id))
        for who, entry in latest_entries(view.entries.values()).items()
    ]
    if source.models is not None:
        sets = source.models.prompt_sets
        found += [
            Name(_line(entry.title), "model", model_address(ident))
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


def _line(name: str) -> str:
    return " ".join(clean(name).split())[:_LONGEST]
