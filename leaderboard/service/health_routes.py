"""Answers of the site and of workers to programs: `/health` and `/metrics`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from leaderboard.service.bodies import HANG_UP
from leaderboard.service.health import Level
from leaderboard.service.polling import HealthWatch

JSON = "application/json"
NO_STORE = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
"""Headers of every answer: it is true for a moment only, and what it says it is."""


@dataclass(frozen=True)
class Answer:
    """An answer over HTTP."""

    status: HTTPStatus  # its code
    body: bytes  # its content
    content_type: str = JSON  # of the content


def in_json(status: HTTPStatus, **said: object) -> Answer:
    """A small answer to a program."""
    return Answer(status, json.dumps(said).encode())


def health_answer(watch: HealthWatch) -> Answer:
    """How the installation is doing, said soon: 200, or 503 where it is down."""
    health = watch.soon()
    down = health.status is Level.DOWN
    status = HTTPStatus.SERVICE_UNAVAILABLE if down else HTTPStatus.OK
    return Answer(status, health.model_dump_json().encode())


def metrics_answer(watch: HealthWatch) -> Answer:
    """The same figures for Prometheus; always 200, since `assay_health` says how it is."""
    # Here, since nobody who does not scrape needs the client.
    from leaderboard.service.metrics import CONTENT_TYPE, metrics_text  # noqa: PLC0415

    return Answer(HTTPStatus.OK, metrics_text(watch.soon()), CONTENT_TYPE)


def routes(watch: HealthWatch) -> list[Route]:
    """The routes."""
    return [
        Route("/health", _serving(health_answer, watch), methods=["GET"]),
        Route("/metrics", _serving(metrics_answer, watch), methods=["GET"]),
    ]


def response_of(answer: Answer, *, hang_up: bool = False) -> Response:
    """An answer as the site sends it; nobody on the way may keep it."""
    return Response(
        answer.body,
        status_code=answer.status,
        headers=NO_STORE | (HANG_UP if hang_up else {}),
        media_type=answer.content_type,
    )


def _serving(
    answer: Callable[[HealthWatch], Answer], watch: HealthWatch
) -> Callable[[Request], Response]:
    def serve(_: Request) -> Response:  # Not async: it reads the store, in a thread of its own.
        return response_of(answer(watch))

    return serve
