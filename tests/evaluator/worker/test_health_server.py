"""What a worker answers over HTTP, and what it bears."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evaluator.worker.health_server import MOST_AT_ONCE, HealthServer
from leaderboard.service.health import DiskSpace
from leaderboard.service.polling import HealthWatch
from leaderboard.service.webhooks import HEADER, MOST_BYTES, Webhook
from tests.kit.governed import House
from tests.kit.refusals import refused

SECRET = "a-secret-that-is-long-enough"
SIGNED = {HEADER: SECRET}
DELIVERY = json.dumps(
    {
        "event": {"action": "update", "scope": "repo.content"},
        "repo": {"type": "dataset", "name": "me/assay-requests"},
    }
).encode()


@contextmanager
def served(
    *, free: int = 50 << 30, woken: threading.Event | None = None, request_s: float = 5.0
) -> Iterator[int]:
    disk = DiskSpace(free_bytes=free, total_bytes=100 << 30)
    watch = HealthWatch(House().store, Path("/"), disk=lambda _: disk)
    hook = Webhook(SECRET, ("me/assay-requests",), woken.set) if woken else None
    server = HealthServer(watch, hook, request_s=request_s)
    with server.serving():
        yield server.port


def asked(
    port: int, words: str, body: bytes = b"", headers: dict[str, str] | None = None
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    method, path = words.split()
    try:
        connection.request(method, path, body or None, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_health_and_metrics_are_answered() -> None:
    with served() as port:
        status, body = asked(port, "GET /health?verbose=1")
        assert (status, json.loads(body)["status"]) == (200, "ok")
        status, body = asked(port, "GET /metrics")
        assert status == 200
        assert b"assay_queue_length 0.0" in body
        assert asked(port, "HEAD /health") == (200, b"")
        assert asked(port, "POST /webhook", DELIVERY, SIGNED)[0] == 404, "it has no secret"
    with served(free=0) as port:
        assert asked(port, "GET /health")[0] == 503


def test_a_delivery_with_the_secret_wakes_the_worker_and_nothing_else_is_there() -> None:
    woken = threading.Event()
    with served(woken=woken) as port:
        for words, body, headers, status in (
            ("POST /webhook", DELIVERY, {}, 401),
            ("POST /webhook", b" " * (MOST_BYTES + 1), SIGNED, 413),
            ("POST /webhook", b"", {"Transfer-Encoding": "chunked"}, 411),
            ("GET /", b"", {}, 404),
            ("GET /../etc/passwd", b"", {}, 404),
            ("POST /health", b"x", {}, 404),
            ("PUT /", b"x", {}, 501),
        ):
            assert asked(port, words, body, headers)[0] == status, words
        assert not woken.is_set()
        assert asked(port, "POST /webhook", DELIVERY, SIGNED)[0] == 202
        assert woken.is_set()


def test_who_says_nothing_is_cut_off_and_others_are_answered() -> None:
    with served(request_s=0.3) as port:
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(MOST_AT_ONCE + 4)]
        for one in silent:
            one.settimeout(10)
            assert one.recv(1) == b""
            one.close()
        assert asked(port, "GET /health")[0] == 200


def test_a_byte_now_and_then_holds_no_thread_for_ever() -> None:
    with served(request_s=0.5) as port, socket.create_connection(("127.0.0.1", port)) as slow:
        ended = time.monotonic() + 120
        with pytest.raises(OSError):  # reset or broken pipe, as the system has it
            while time.monotonic() < ended:
                slow.sendall(b"G")
                time.sleep(0.05)


def test_a_port_that_is_taken_is_told() -> None:
    with served() as port, refused("port_unavailable", "--health-port"):
        HealthServer(HealthWatch(House().store, Path("/")), port=port)
