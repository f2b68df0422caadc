"""Routes that answer tables: a function of a source and a query becomes a route of FastAPI."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial, wraps
from http import HTTPStatus
from typing import Annotated, Any, TypeVar, get_type_hints

from fastapi import APIRouter, Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from leaderboard.api import schemas
from leaderboard.api.replies import (
    JSON,
    Body,
    RefusedError,
    bad_query,
    reply_bytes,
    response_of,
    unknown_parameters,
)
from leaderboard.api.schemas import LONGEST_QUERY, Format, Parameters
from leaderboard.api.source import Source
from leaderboard.cache import MemoryCache
from leaderboard.table_text import to_latex, to_markdown
from leaderboard.tables import Table, to_csv, to_json, to_parquet

CSV = "text/csv; charset=utf-8"
PARQUET = "application/vnd.apache.parquet"
MARKDOWN = "text/markdown; charset=utf-8"
LATEX = "application/x-latex"
_ENDINGS = {Format.MARKDOWN: "md", Format.LATEX: "tex"}
_Answer = TypeVar("_Answer", bound=Callable[..., Table])


_ERRORS = {
    400: "The query asks for what is not there.",
    404: "There is nothing at this address.",
    414: "The query is too long.",
    422: "That would be too much work for a request.",
    500: "A defect of the service.",
    503: "The store cannot be read, or too much is asked for at once: see Retry-After.",
}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "headers": {
            "ETag": {"schema": {"type": "string"}},
            "Assay-As-Of": {
                "description": "When the store last confirmed what is said.",
                "schema": {"type": "string", "format": "date-time"},
            },
        },
        "content": {
            "text/csv": {"schema": {"type": "string"}},
            PARQUET: {"schema": {"type": "string", "format": "binary"}},
            "text/markdown": {"schema": {"type": "string"}},
            LATEX: {"schema": {"type": "string"}},
        },
    },
    304: {"description": "What the client has is still right."},
    **{status: {"model": schemas.Problem, "description": said} for status, said in _ERRORS.items()},
}


class TableRouter(APIRouter):
    """Routes of tables."""

    def table(
        self,
        path: str,
        *,
        name: str = "",
        of_snapshot: bool = True,
        takes: type[Parameters] | None = None,
    ) -> Callable[[_Answer], _Answer]:
        """Serves a function at a path.

        Its first argument is the source, the last may be the query, and the others are parts of the
        path. Its docstring says in the document what it answers, and its name how it is called there
        unless another is given. `takes` are its parameters where the query is a page's.
        """

        def add(answer: _Answer) -> _Answer:
            hints = get_type_hints(answer, include_extras=True)
            summary = " ".join((answer.__doc__ or "").partition("Raises:")[0].split())
            taken = takes or hints.get("query", Parameters)
            self.add_api_route(
                path, _endpoint(answer, hints, taken, of_snapshot=of_snapshot), methods=["GET"],
                dependencies=[Depends(_check_of(taken.names()))],
                operation_id=name or answer.__name__, summary=summary,
                response_model=schemas.Table, response_description=summary, responses=_RESPONSES,
            )  # fmt: skip
            return answer

        return add


_KEPT_BYTES = 32 << 20


class TableServer:
    """Answers tables of a source."""

    def __init__(self, source: Source, kept: MemoryCache[Body] | None = None) -> None:
        self.source = source
        self._kept = kept or MemoryCache(reply_bytes, _KEPT_BYTES)
        self._under_way: dict[str, Future[None]] = {}

    async def reply(self, request: Request, make: Callable[[], Body]) -> Response:
        """An answer that is made in a thread of the source, since it reads the store."""

        def made() -> Response:
            body, reader = make(), self.source.reader
            return response_of(body, request.headers, reader.as_of, stale=bool(reader.trouble))

        return await self.source.in_thread(made)

    async def reply_once(self, request: Request, make: Callable[[], Body]) -> Response:
        """Of requests that are the same at once one is answered, then the others: from what is kept.

        They wait without a thread and without a place in the line, so those are left for others.
        """
        key = f"{request.url.path}?{request.url.query}"
        first = self._under_way.get(key)
        if first is not None:
            # Shielded: who hangs up meanwhile ends no waiting but their own.
            await asyncio.shield(asyncio.wrap_future(first))
            return await self.reply(request, make)
        done = self._under_way[key] = Future()
        try:
            return await self.reply(request, make)
        finally:
            self._under_way.pop(key, None)
            done.set_result(None)

    def keep(self, named: object, make: Callable[[], Body]) -> Body:
        """An answer that is made once for each version of the snapshot."""
        version = self.source.reader.view().version
        # A query of a thousand parts takes more memory than its answer.
        said = repr((version, named)).encode(errors="backslashreplace")
        key = hashlib.sha256(said).digest()
        found = self._kept.get(key)
        if found is None:
            found = make()
            # Another version may have come meanwhile: then nobody asks for this one again.
            if self.source.reader.view().version == version:
                self._kept.put(key, found)
        return found


def server_of(request: Request) -> TableServer:
    """What answers the requests of an application."""
    found: TableServer = request.app.state.server
    return found


def json_body(content: object) -> Body:
    """A document."""
    return Body(json.dumps(content).encode())


def _endpoint(
    answer: Callable[..., Table],
    hints: dict[str, Any],
    taken: type[Parameters],
    *,
    of_snapshot: bool,
) -> Callable[..., Any]:
    """The function as FastAPI calls it: with the request for the source, and with a query."""

    @wraps(answer)
    async def served(request: Request, query: Parameters, **path: str) -> Response:
        server = server_of(request)
        given: dict[str, Any] = {**path}
        if of := hints.get("query"):
            given["query"] = query if of is taken else of.from_params(query.to_params())
        make = partial(_body_of, partial(answer, server.source, **given), query)
        if of_snapshot:
            named = answer.__qualname__, path, query
            return await server.reply_once(request, partial(server.keep, named, make))
        return await server.reply(request, make)

    served.__doc__ = None  # FastAPI would take it for a description beside the summary.
    _, *asked = inspect.signature(answer).parameters
    read = {"request": Request, **{name: hints[name] for name in asked}}
    read["query"] = Annotated[taken, Query()]
    served.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, annotation=of)
            for n, of in read.items()
        ],
        return_annotation=Response,
    )
    return served


def _check_of(known: list[str]) -> Callable[..., Any]:
    """What refuses a query that is too long, or has other parameters than those known.

    FastAPI would take the square of their number to gather thousands of others.
    """

    async def check(request: Request) -> None:
        if len(request.url.query) > LONGEST_QUERY:
            raise RefusedError(
                HTTPStatus.REQUEST_URI_TOO_LONG,
                "query_too_long",
                f"The query has more than {LONGEST_QUERY:,} characters.",
            )
        unknown = [name for name in request.query_params if name not in known]
        if unknown:
            raise unknown_parameters(unknown, known)

    return check


def _body_of(answer: Callable[[], Table], query: Parameters) -> Body:
    """The table that a function answers, as it was asked for."""
    table, format_ = answer(), query.format
    if query.only:
        table = _with_columns(table, query.only.split(","))
    name = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in table.name)
    file_name = f"{name[:100]}.{_ENDINGS.get(format_, format_)}"
    if format_ is Format.CSV:
        return Body(to_csv(table).encode(), CSV, file_name, to_keep=True)
    if format_ is Format.PARQUET:
        return Body(to_parquet(table), PARQUET, file_name, to_keep=True)
    if format_ is Format.MARKDOWN:
        return Body(to_markdown(table).encode(), MARKDOWN, file_name, to_keep=True)
    if format_ is Format.LATEX:
        return Body(to_latex(table).encode(), LATEX, file_name, to_keep=True)
    return Body(to_json(table).encode(), JSON, file_name)


def _with_columns(table: Table, names: list[str]) -> Table:
    known = {column.name: column for column in table.columns}
    wrong = [name for name in names if name not in known]
    if wrong:
        raise bad_query(
            f"The table has no column {', '.join(repr(name[:60]) for name in wrong[:5])}.",
            f"Its columns: {', '.join(known)}.",
        )
    return replace(table, columns=tuple(known[name] for name in dict.fromkeys(names)))
