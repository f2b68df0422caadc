"""What the Hub tells of changes wakes whoever waits; what anybody else says does nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from benchmarks.errors import SubmitterError
from benchmarks.sources.client import httpx
from leaderboard.service.webhooks import HEADER, MOST_BYTES, Webhook, routes, webhook_from
from tests.kit.serving import serving

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


def woken_by(body: bytes, secret: str = SECRET) -> tuple[int, int]:
    """The answer, and how often somebody was woken."""
    woken: list[None] = []
    answer = Webhook(SECRET, OURS, lambda: woken.append(None)).answer(secret, body)
    return answer.status, len(woken)


def test_a_change_of_one_of_our_repositories_wakes_however_often_it_is_told() -> None:
    assert woken_by(delivery()) == woken_by(delivery()) == (202, 1)


@pytest.mark.parametrize("secret", ["", "wrong", SECRET[:-1], SECRET + "x", "é\udc80"])
def test_without_the_secret_nothing_is_done(secret: str) -> None:
    assert woken_by(delivery(), secret) == (401, 0)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (delivery("somebody/else-requests"), 200),
        (delivery(scope="discussion"), 200),
        (delivery(scope="repo.config"), 200),
        (delivery(kind="model"), 200),
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b'{"event": {}, "repo": {}}', 400),
        (delivery().replace(b'"dataset"', b"7"), 400),
        (delivery(scope="x" * 200), 400),
        (delivery("n" * 300), 400),
        (b"[" * 5000, 400),
        (delivery() + b" " * MOST_BYTES, 413),
    ],
)
def test_what_is_not_ours_is_ignored_and_no_delivery_refused(body: bytes, status: int) -> None:
    assert woken_by(body) == (status, 0)


@pytest.mark.parametrize("secret", ["", "short"])
def test_a_secret_that_can_be_guessed_is_refused(secret: str) -> None:
    with pytest.raises(SubmitterError) as caught:
        Webhook(secret, OURS, lambda: None)
    assert caught.value.code == "weak_secret"


@pytest.mark.parametrize(("secret", "ours"), [("", OURS), (SECRET, ())])
def test_without_secret_or_repositories_no_webhook(secret: str, ours: tuple[str, ...]) -> None:
    assert webhook_from({"ASSAY_WEBHOOK_SECRET": secret}, ours, lambda: None) is None


def test_both_secrets_are_good_during_a_rotation_and_a_line_end_is_no_part_of_one() -> None:
    old = "the-secret-before-this-one"
    given = {"ASSAY_WEBHOOK_SECRET": f"{SECRET}\n", "ASSAY_WEBHOOK_SECRET_OLD": old}
    hook = webhook_from(given, OURS, lambda: None)
    assert hook is not None
    asked = (SECRET, old, old + SECRET, "")
    assert [hook.answer(one, delivery()).status for one in asked] == [202, 202, 401, 401]


def test_the_site_takes_deliveries() -> None:
    woken: list[None] = []
    client = TestClient(Starlette(routes=routes(Webhook(SECRET, OURS, lambda: woken.append(None)))))
    ours = {HEADER: SECRET}
    taken = client.post("/webhook", content=delivery(), headers=ours)
    assert (taken.status_code, taken.json(), len(woken)) == (202, {"accepted": True}, 1)
    assert client.post("/webhook", content=delivery()).status_code == 401
    assert client.get("/webhook").status_code == 405
    large = client.post("/webhook", content=b" " * (MOST_BYTES + 1), headers=ours)
    assert (large.status_code, len(woken)) == (413, 1)


def test_of_whoever_lacks_the_secret_nothing_is_read() -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(2000):
            sent += 1
            yield b" " * (1 << 16)

    hook = routes(Webhook(SECRET, OURS, lambda: None))
    # The server may hang up, which is as good.
    with serving(hook) as address, suppress(httpx.TransportError):
        assert httpx.post(f"{address}/webhook", content=endless()).status_code == 401
    assert sent < 1000
