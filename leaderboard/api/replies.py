"""Answers over HTTP, tagged by their bytes; and refusals, in one shape whatever is wrong."""

from __future__ import annotations

import gzip
import hashlib
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from benchmarks.errors import AssayError, SubmitterError, TransientError
from leaderboard.api.schemas import Problem

_log = logging.getLogger(__name__)

JSON = "application/json"
SHARED = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "ETag, Assay-As-Of, Assay-Stale, Content-Disposition",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "X-Content-Type-Options": "nosniff",
    "Vary": "Accept-Encoding",
}
"""Of every answer, refusals included: any page may read what anybody may."""
_ASK_AGAIN = {"Cache-Control": "public, no-cache"}
"""Kept by whoever likes, and asked about before each use: with its tag that costs next to nothing."""
_SMALLEST = 500
_LEVEL = 5
_OF_ONE = 2000  # Bytes that keeping an answer takes beside its content, at most
_COMPRESSED = frozenset({JSON, "text/csv; charset=utf-8"})


@dataclass(frozen=True)
class Body:
    """The content of an answer."""

    content: bytes
    media_type: str = JSON  # of the content
    file_name: str = ""  # under which it is kept; empty where it is no file
    to_keep: bool = False  # whether a browser is to keep it, not to show it
    tag: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256(self.media_type.encode() + b"\n" + self.content).hexdigest()
        object.__setattr__(self, "tag", digest[:40])


def response_of(
    body: Body, headers: Headers, as_of: datetime | None = None, *, stale: bool = False
) -> Response:
    """A whole answer, or that what the client has is still right."""
    packed = body.media_type in _COMPRESSED and takes_gzip(headers.get("Accept-Encoding", ""))
    packed = packed and len(body.content) >= _SMALLEST
    tag = f'"{body.tag}{"-gzip" if packed else ""}"'
    said = {**SHARED, **_ASK_AGAIN, "ETag": tag}
    if as_of is not None:
        said["Assay-As-Of"] = as_of.isoformat()
    if stale:
        said["Assay-Stale"] = "true"
    if matches(headers.get("If-None-Match", ""), tag):
        return Response(status_code=304, headers=said)
    if body.file_name:
        kind = "attachment" if body.to_keep else "inline"
        said["Content-Disposition"] = f'{kind}; filename="{body.file_name}"'
    content = body.content
    if packed:
        said["Content-Encoding"] = "gzip"
        content = gzip.compress(content, _LEVEL, mtime=0)
    return Response(content, headers=said, media_type=body.media_type)


def takes_gzip(accepted: str) -> bool:
    """Whether an `Accept-Encoding` allows gzip."""
    allowed: dict[str, bool] = {}
    for part in accepted.lower().split(","):
        name, _, rest = part.strip().partition(";")
        weight = rest.strip().removeprefix("q=").strip()
        allowed[name.strip()] = not weight or weight.strip("0.") != ""
    return allowed.get("gzip", allowed.get("*", False))


def matches(asked: str, tag: str) -> bool:
    """Whether an `If-None-Match` names a tag."""
    named = [part.strip().removeprefix("W/") for part in asked.split(",")]
    return tag in named or asked.strip() == "*"


def reply_bytes(body: Body) -> int:
    """Bytes that keeping an answer takes, about."""
    return _OF_ONE + len(body.content)


RETRY_AFTER_S = 5
NO_STORE = {"Cache-Control": "no-store"}
_MOST_NAMED = 5
_LONGEST_NAME = 60


class RefusedError(SubmitterError):
    """A request that cannot be answered as it is."""

    def __init__(self, status: HTTPStatus, code: str, message: str, hint: str = "") -> None:
        super().__init__(code, message, hint)
        self.status = status

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, self.code, self.message, self.hint)


class BusyError(TransientError):
    """Others are being answered; the same request can be answered in a moment."""


def bad_query(message: str, hint: str = "") -> RefusedError:
    """A query that asks for what is not there."""
    return RefusedError(HTTPStatus.BAD_REQUEST, "bad_query", message, hint)


def unknown_parameters(names: list[str], known: list[str]) -> RefusedError:
    """A query with parameters that its route does not have."""
    return RefusedError(
        HTTPStatus.BAD_REQUEST,
        "unknown_parameter",
        f"{_listed([f'“{name[:_LONGEST_NAME]}”' for name in names])}: not a parameter here.",
        f"Known: {', '.join(known)}.",
    )


def not_found(code: str, message: str, hint: str) -> RefusedError:
    """An address of nothing."""
    return RefusedError(HTTPStatus.NOT_FOUND, code, message, hint)


def status_of(error: AssayError) -> HTTPStatus:
    """The status by which an error is told."""
    if isinstance(error, RefusedError):
        return error.status
    if isinstance(error, TransientError):
        return HTTPStatus.SERVICE_UNAVAILABLE
    if isinstance(error, SubmitterError):
        return HTTPStatus.BAD_REQUEST
    return HTTPStatus.INTERNAL_SERVER_ERROR


def refusal(
    status: int, code: str, message: str, hint: str = "", headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """The answer that tells a problem."""
    told = Problem.model_validate({"error": {"code": code, "message": message, "hint": hint}})
    headers = SHARED | NO_STORE if headers is None else dict(headers)
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = str(RETRY_AFTER_S)
    return JSONResponse(told.model_dump(), status, headers=headers)


async def _on_http(_: Request, error: HTTPException) -> Response:
    hint = "See /v1/ for what is."
    return refusal(
        error.status_code, "no_such_route", "There is nothing at this address.", hint, SHARED
    )


async def _on_invalid(request: Request, error: RequestValidationError) -> Response:
    wrong = [
        f"“{one['loc'][1]}”: {one['msg'][:1].lower()}{one['msg'][1:]}" for one in error.errors()
    ]
    return await _on_ours(request, bad_query(f"{_listed(wrong)}.", "See /v1/openapi.json."))


async def _on_ours(_: Request, error: AssayError) -> Response:
    status = status_of(error)
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.error("%s: %s", error.code, error)
    return refusal(status, error.code, error.message, error.hint)


async def _on_defect(_: Request, __: Exception) -> Response:
    # The server logs it: what went wrong may say more of the machine than strangers need to know.
    return refusal(500, "defect", "Something went wrong here.", "Please report what you asked for.")


def _listed(wrong: list[str]) -> str:
    """The first few of all that is wrong, and how many there are beside."""
    more = len(wrong) - _MOST_NAMED
    return ", ".join(wrong[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


_Handler = Callable[[Request, Any], Coroutine[Any, Any, Response]]
HANDLERS: dict[int | type[Exception], _Handler] = {
    HTTPException: _on_http,
    RequestValidationError: _on_invalid,
    AssayError: _on_ours,
    Exception: _on_defect,
}
"""Exception to what answers it."""
