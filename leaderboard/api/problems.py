"""Error responses of the API: one shape, whatever went wrong."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from benchmarks.errors import AssayError, SubmitterError, TransientError

RETRY_AFTER_S = 5


class RefusedError(SubmitterError):
    """A request that cannot be answered as it is.

    Args:
        status: of the answer.
        code: stable identifier in snake_case.
        message: what is wrong, in one sentence.
        hint: what to do about it.
    """

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


def problem(code: str, message: str, hint: str = "") -> dict[str, dict[str, str]]:
    """The body of every answer that is none."""
    return {"error": {"code": code, "message": message, "hint": hint}}
