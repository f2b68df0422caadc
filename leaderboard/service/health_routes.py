"""`/health` and `/metrics` of the site."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from leaderboard.service.answers import NO_STORE, Answer, health_answer, metrics_answer
from leaderboard.service.bodies import HANG_UP
from leaderboard.service.looking import HealthWatch


def routes(watch: HealthWatch) -> list[Route]:
    """The routes.

    Args:
        watch: says how the installation is doing.
    """
    return [
        Route("/health", _serving(health_answer, watch), methods=["GET"]),
        Route("/metrics", _serving(metrics_answer, watch), methods=["GET"]),
    ]


def response_of(answer: Answer, *, hang_up: bool = False) -> Response:
    """An answer as the site sends it; nobody on the way may keep it.

    Args:
        answer: to send.
        hang_up: whether to read nothing more of who asked.
    """
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
