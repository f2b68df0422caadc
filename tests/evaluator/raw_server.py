"""A server on this machine that answers every request with the same bytes, and may be slow."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OK = b"HTTP/1.1 200 OK\r\n"
_PAUSE_S = 0.05


@contextmanager
def raw_server(answer: Callable[[], Iterable[bytes]]) -> Iterator[str]:
    """Its address; an answer, in pieces, may be endless: it stops where the other side does."""

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.close_connection = True
            with suppress(OSError):
                for piece in answer():
                    self.wfile.write(piece)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.daemon_threads = False  # closing it waits until the last answer was given up
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)


def dripping_header() -> Iterator[bytes]:
    """Headers without an end."""
    yield OK
    while True:
        time.sleep(_PAUSE_S)
        yield b"X-More: 1\r\n"


def dripping_body(status: bytes = OK) -> Iterator[bytes]:
    """A body that is never whole."""
    yield status + b"Content-Length: 100000\r\n\r\n"
    while True:
        time.sleep(_PAUSE_S)
        yield b" "


def endless_body(status: bytes = OK) -> Iterator[bytes]:
    """A body without an end, as fast as it is read."""
    yield status + b"Connection: close\r\n\r\n"
    while True:
        yield b"a" * (1 << 16)
