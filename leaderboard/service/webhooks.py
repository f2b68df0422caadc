"""Webhooks of the Hub: a hint to look at once, never a source of what has changed.

A delivery names a repository. Whoever is told looks at the store by itself, so a delivery that is
lost, repeated, late or forged by somebody with the secret changes nothing but when that happens.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Collection, MutableMapping
from http import HTTPStatus
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from benchmarks.errors import SubmitterError
from benchmarks.settings.rotation import SecretRotation, Secrets, fixed
from leaderboard.service.bodies import body_of
from leaderboard.service.health_routes import Answer, in_json, response_of

HEADER = "X-Webhook-Secret"
SECRET_VARIABLE = "ASSAY_WEBHOOK_SECRET"  # noqa: S105 (a name)
MOST_BYTES = 64 * 1024
SHORTEST_SECRET = 16
_CONTENT = frozenset({"repo", "repo.content"})


class _Part(BaseModel):
    # The Hub adds fields as it likes; of those that count none is converted.
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class _Event(_Part):
    action: Literal["create", "delete", "update", "move"]
    scope: str = Field(max_length=100)


class _Repo(_Part):
    type: str = Field(max_length=20)
    name: str = Field(max_length=200)


class Delivery(_Part):
    """What is read of a delivery."""

    event: _Event
    repo: _Repo


class Webhook:
    """Takes deliveries."""

    def __init__(
        self, secret: str | Secrets, repositories: Collection[str], effect: Callable[[], None]
    ) -> None:
        self._secrets = fixed(checked_secret(secret)) if isinstance(secret, str) else secret
        self._repositories = frozenset(repositories)
        self._effect = effect

    def knows(self, secret: str) -> bool:
        """Whether this is the secret: asked before anything else of a delivery is read."""
        given = secret.encode(errors="replace")
        return any(hmac.compare_digest(given, good.encode()) for good in self._secrets())

    def answer(self, secret: str, body: bytes) -> Answer:
        """Take one delivery."""
        if not self.knows(secret):
            return in_json(HTTPStatus.UNAUTHORIZED, error="wrong_secret")
        if len(body) > MOST_BYTES:
            return in_json(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, error="too_large")
        try:
            delivery = Delivery.model_validate_json(body)
        except ValidationError:
            return in_json(HTTPStatus.BAD_REQUEST, error="not_a_delivery")
        ours = delivery.repo.type == "dataset" and delivery.repo.name in self._repositories
        if not ours or delivery.event.scope not in _CONTENT:
            return in_json(HTTPStatus.OK, accepted=False)
        self._effect()
        return in_json(HTTPStatus.ACCEPTED, accepted=True)


def checked_secret(secret: str) -> str:
    """The secret of a webhook."""
    if len(secret) < SHORTEST_SECRET:
        raise SubmitterError(
            "weak_secret",
            f"{SECRET_VARIABLE} has fewer than {SHORTEST_SECRET} characters.",
            'Make one: python -c "import secrets; print(secrets.token_urlsafe(32))"',
        )
    return secret


def webhook_from(
    environment: MutableMapping[str, str], repositories: Collection[str], effect: Callable[[], None]
) -> Webhook | None:
    """The webhook of a process; None where no secret is set, or the store is not on the Hub."""
    if not repositories:
        return None
    secrets = SecretRotation(SECRET_VARIABLE, environment, checked_secret)
    return Webhook(secrets, repositories, effect) if secrets() else None


def routes(webhook: Webhook) -> list[Route]:
    """`/webhook` of the site."""

    async def take(request: Request) -> Response:
        secret, body = request.headers.get(HEADER, ""), b""
        try:
            if webhook.knows(secret):
                body = await body_of(request, MOST_BYTES)
        except TimeoutError:
            slow = in_json(HTTPStatus.REQUEST_TIMEOUT, error="too_slow")
            return response_of(slow, hang_up=True)
        answer = webhook.answer(secret, body)
        return response_of(answer, hang_up=answer.status >= HTTPStatus.BAD_REQUEST)

    return [Route("/webhook", take, methods=["POST"])]
