"""What the Hub tells of changes wakes whoever waits; what anybody else says does nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http import HTTPStatus

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from benchmarks.errors import SubmitterError
from benchmarks.sources.client import httpx
from leaderboard.service.webhooks import HEADER, MOST_BYTES, Webhook, routes, webhook_from
from tests.leaderboard.service.serving import serving

SECRET = "a-secret-that-is-long-enough"
OURS = ("my-org/assay-requests", "my-org/assay-results")


def delivery(name: str = OURS[0], scope: str = "repo.content", kind: str = "dataset") -> bytes:
    return json.dumps(
        {
            "event": {"action": "update", "scope": scope},
            "repo": {"type": kind, "name": name, "private": False, "headSha": "0" * 40},
            "updatedRefs": [{"ref": "refs/heads/main", "oldSha": "1" * 40, "newSha": "0" * 40}],
            "webhook": {"id": "w", "version": 3},
        }
    ).encode()


def woken_by(body: bytes, secret: str = SECRET) -> tuple[HTTPStatus, bool]:
    woken = threading.Event()
    answer = Webhook(SECRET, OURS, woken.set).answer(secret, body)
    return answer.status, woken.is_set()


def test_a_change_of_one_of_our_repositories_wakes() -> None:
    assert woken_by(delivery()) == (HTTPStatus.ACCEPTED, True)


@pytest.mark.parametrize("secret", ["", "wrong", SECRET[:-1], SECRET + "x", "é\udc80"])
def test_without_the_secret_nothing_is_done(secret: str) -> None:
    assert woken_by(delivery(), secret) == (HTTPStatus.UNAUTHORIZED, False)


@pytest.mark.parametrize(
    "body",
    [
        delivery("somebody/else-requests"),
        delivery(scope="discussion"),
        delivery(scope="repo.config"),
        delivery(kind="model"),
    ],
)
def test_what_does_not_concern_our_content_is_taken_and_ignored(body: bytes) -> None:
    assert woken_by(body) == (HTTPStatus.OK, False)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"event": {}, "repo": {}}',
        delivery().replace(b'"dataset"', b"7"),
        delivery(scope="x" * 200),
        delivery("n" * 300),
        b"[" * 5000,
    ],
)
def test_what_is_no_delivery_is_refused(body: bytes) -> None:
    assert woken_by(body) == (HTTPStatus.BAD_REQUEST, False)


def test_a_delivery_that_is_too_large_is_refused() -> None:
    body = delivery() + b" " * MOST_BYTES
    assert woken_by(body) == (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, False)


def test_a_repeated_delivery_is_answered_alike() -> None:
    woken: list[None] = []
    hook = Webhook(SECRET, OURS, lambda: woken.append(None))
    first, second = hook.answer(SECRET, delivery()), hook.answer(SECRET, delivery())
    assert first == second


@pytest.mark.parametrize("secret", ["", "short"])
def test_a_secret_that_can_be_guessed_is_refused(secret: str) -> None:
    with pytest.raises(SubmitterError) as caught:
        Webhook(secret, OURS, lambda: None)
    assert caught.value.code == "weak_secret"


@pytest.mark.parametrize(("secret", "ours"), [("", OURS), (SECRET, ())])
def test_without_a_secret_or_repositories_there_is_no_webhook(
    secret: str, ours: tuple[str, ...]
) -> None:
    environment = {"ASSAY_WEBHOOK_SECRET": secret}
    assert webhook_from(environment, ours, lambda: None) is None


def test_a_line_end_after_the_secret_is_none_of_it() -> None:
    hook = webhook_from({"ASSAY_WEBHOOK_SECRET": f"{SECRET}\n"}, OURS, lambda: None)
    assert hook is not None
    assert hook.answer(SECRET, delivery()).status is HTTPStatus.ACCEPTED


@pytest.fixture
def site() -> tuple[TestClient, Callable[[], int]]:
    woken: list[None] = []
    app = Starlette(routes=routes(Webhook(SECRET, OURS, lambda: woken.append(None))))
    return TestClient(app), lambda: len(woken)


def test_the_site_takes_deliveries(site: tuple[TestClient, Callable[[], int]]) -> None:
    client, woken = site
    taken = client.post("/webhook", content=delivery(), headers={HEADER: SECRET})
    assert (taken.status_code, taken.json(), woken()) == (202, {"accepted": True}, 1)
    assert client.post("/webhook", content=delivery()).status_code == 401
    assert client.get("/webhook").status_code == 405
    large = client.post("/webhook", content=b" " * (MOST_BYTES + 1), headers={HEADER: SECRET})
    assert (large.status_code, woken()) == (413, 1)


def test_of_whoever_lacks_the_secret_nothing_is_read() -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(2000):
            sent += 1
            yield b" " * (1 << 16)

    with (
        serving(routes(Webhook(SECRET, OURS, lambda: None))) as address,
        httpx.Client() as client,
        suppress(httpx.TransportError),  # The server hung up, which is as good.
    ):
        assert client.post(f"{address}/webhook", content=endless()).status_code == 401
    assert sent < 1000
