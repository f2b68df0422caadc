"""HTTP exchanges: one deadline for all of it, and no more of a body than was asked for."""

from __future__ import annotations

import gzip
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest

from benchmarks.sources.client import httpx
from evaluator.bounded_http import LARGEST_ERROR, ReplyCutOff, ReplyTooLong, exchange, resolve
from tests.evaluator.raw_server import (
    OK,
    dripping_body,
    dripping_header,
    endless_body,
    raw_server,
)

Answer = Callable[[], Iterable[bytes]]
MOST = 1 << 20
BOMB = gzip.compress(bytes(64 * MOST))
REFUSED = b"HTTP/1.1 400 Bad Request\r\n"


def whole(body: bytes, status: bytes = OK, *more: bytes) -> Answer:
    headers = [*more, b"Content-Length: %d" % len(body)]
    return lambda: [status + b"\r\n".join(headers) + b"\r\n\r\n" + body]


@pytest.mark.parametrize(
    ("answer", "seconds", "expected"),
    [
        (dripping_header, 1, httpx.TimeoutException),
        (dripping_body, 1, ReplyCutOff),
        (lambda: [OK + b"Content-Length: 9\r\n\r\nhalf"], 60, ReplyCutOff),
        (whole(b"no gzip", OK, b"Content-Encoding: gzip"), 60, ReplyCutOff),
        (lambda: [b"nonsense\r\n\r\n"], 60, httpx.HTTPError),
    ],
    ids=["slow header", "slow body", "half a body", "no gzip", "no HTTP"],
)
def test_what_is_not_whole_in_time_is_no_reply(
    answer: Answer, seconds: float, expected: type[Exception]
) -> None:
    with raw_server(answer) as address, pytest.raises(expected):
        exchange("POST", address, seconds=seconds, most=MOST, content=b"x")


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (
            lambda: exchange("GET", "http://name.example", seconds=0.2, most=0),
            httpx.TimeoutException,
        ),
        (lambda: resolve("name.example", 80, 0.2), TimeoutError),
    ],
    ids=["a request", "a look-up"],
)
def test_a_name_is_looked_up_within_the_time(
    monkeypatch: pytest.MonkeyPatch, asked: Callable[[], object], expected: type[Exception]
) -> None:
    ended = threading.Event()
    failures: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failures.append)

    def slow(*_: object, **__: object) -> Any:
        ended.wait(20)
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    begun = time.monotonic()
    with pytest.raises(expected):
        asked()
    assert time.monotonic() - begun < 10
    ended.set()
    for thread in threading.enumerate():
        if thread.name == "name look-up":
            thread.join(60)
    assert not failures


@pytest.mark.parametrize(
    "answer",
    [endless_body, whole(BOMB, OK, b"Content-Encoding: gzip"), whole(bytes(MOST + 1))],
    ids=["endless", "a bomb", "a byte too many"],
)
def test_no_more_of_a_reply_is_read_than_may_be(answer: Answer) -> None:
    tracemalloc.start()
    try:
        with raw_server(answer) as address, pytest.raises(ReplyTooLong):
            exchange("GET", address, seconds=60, most=MOST)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 * MOST


@pytest.mark.parametrize("most", [MOST, 5])
def test_a_reply_is_decoded_whole(most: int) -> None:
    body = gzip.compress(b"hello")
    with raw_server(whole(body, OK, b"Content-Encoding: gzip")) as address:
        found = exchange("GET", address, seconds=60, most=most)
    assert (found.status_code, found.content) == (200, b"hello")


@pytest.mark.parametrize(
    ("answer", "length"),
    [(partial(endless_body, REFUSED), LARGEST_ERROR), (whole(b"no", REFUSED), 2)],
    ids=["endless", "short"],
)
def test_a_refusal_is_cut_to_what_is_read_of_it(answer: Answer, length: int) -> None:
    with raw_server(answer) as address:
        found = exchange("GET", address, seconds=60, most=MOST)
    assert (found.status_code, len(found.content)) == (400, length)


def test_a_refusal_whose_words_come_too_slowly_is_one() -> None:
    with raw_server(partial(dripping_body, REFUSED)) as address:
        assert exchange("GET", address, seconds=1, most=MOST).status_code == 400


@pytest.mark.parametrize("answer", [dripping_body, endless_body], ids=["slow", "endless"])
def test_where_no_body_is_wanted_none_is_waited_for(answer: Answer) -> None:
    with raw_server(answer) as address:
        found = exchange("POST", address, seconds=60, most=0)
    assert (found.status_code, found.content) == (200, b"")


@pytest.mark.parametrize(
    "address", ["http://host/\udc80", "http://host:99999/", "ftp://host/", "host"], ids=ascii
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(httpx.InvalidURL):
        exchange("GET", address, seconds=60, most=MOST)


@pytest.mark.parametrize("there", [b"/next", b"http://127.0.0.1:99999/", b"http://["], ids=str)
def test_no_redirect_is_followed(there: bytes) -> None:
    leading = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: " + there + b"\r\n\r\n"
    with raw_server(lambda: [leading]) as address:
        assert exchange("GET", address, seconds=60, most=MOST).status_code == 307
