"""`/v1` of the site: one table of operations, from which routes and documents are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute, Mount, Route

from leaderboard.api.openapi import VERSION, openapi
from leaderboard.api.operations import Operation
from leaderboard.api.replies import Body
from leaderboard.api.serving import Api, OnlyRead, application, json_body
from leaderboard.api.source import Source
from leaderboard.api.tables import (
    boards,
    catalogue,
    comparisons,
    doings,
    items,
    model_pairs,
    model_prompts,
    models,
    people,
    printed,
    skills,
)
from leaderboard.api.tables.boards import as_of

PATH = "/v1"
OPERATIONS: tuple[Operation, ...] = (
    *catalogue.OPERATIONS,
    *boards.OPERATIONS,
    *printed.OPERATIONS,
    *comparisons.OPERATIONS,
    *skills.OPERATIONS,
    *models.OPERATIONS,
    *model_pairs.OPERATIONS,
    *model_prompts.OPERATIONS,
    *people.OPERATIONS,
    *items.OPERATIONS,
    *doings.OPERATIONS,
)
DOCUMENTS = {
    "/": "What there is: benchmarks, routes, and when the boards were made.",
    "/openapi.json": "All routes as an OpenAPI 3.1 document.",
    "/ledger.jsonl": "The whole ledger as it is kept, byte for byte, to verify its hashes.",
}
"""Routes that answer no table."""


def routes(source: Source, further: Sequence[Operation] = ()) -> list[BaseRoute]:
    """The routes.

    Args:
        source: where everything is read.
        further: operations that are made elsewhere, e.g. of items.
    """
    api, every = Api(source), (*OPERATIONS, *further)
    document = json_body(openapi(every))

    def home(_: Request) -> Body:
        return json_body(_home(source, every))

    def ledger_file(_: Request) -> Body:
        content = source.chronicle.content()
        return Body(content, "application/jsonl", "ledger.jsonl", to_keep=True)

    own = [
        Route("/", api.endpoint(home), methods=["GET"]),
        Route("/openapi.json", api.endpoint(lambda _: document), methods=["GET"]),
        Route("/ledger.jsonl", api.endpoint(ledger_file), methods=["GET"]),
        *(api.route(operation) for operation in every),
    ]
    return [
        Route(PATH, OnlyRead(application([Route(PATH, _with_slash, methods=["GET"])]))),
        Mount(PATH, app=OnlyRead(application(own))),
    ]


async def _with_slash(_: Request) -> RedirectResponse:
    return RedirectResponse(f".{PATH}/", status_code=308)


def _home(source: Source, operations: Sequence[Operation]) -> dict[str, Any]:
    view = source.reader.view()
    return {
        "name": "Assay",
        "version": VERSION,
        "as_of": as_of(view),
        "snapshot": view.version or None,
        "openapi": "openapi.json",
        "benchmarks": [
            {"name": name, "title": board.card.title, "board": f"boards/{name}"}
            for name, board in view.boards.items()
        ],
        "routes": [
            *({"path": path.removeprefix("/"), "summary": s} for path, s in DOCUMENTS.items()),
            *({"path": o.path.removeprefix("/"), "summary": o.summary} for o in operations),
        ],
    }
