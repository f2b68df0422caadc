"""A worker's own small server, by the standard library: `/health`, `/metrics` and `/webhook`.

Whoever can reach the port can read; nobody can change anything, and whoever has the webhook's
secret can make the worker look at its store. Requests are few, short and bounded.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv6Address, ip_address
from socketserver import TCPServer
from typing import Any

from benchmarks.errors import SubmitterError
from leaderboard.service.health_routes import Answer, health_answer, in_json, metrics_answer
from leaderboard.service.polling import HealthWatch
from leaderboard.service.webhooks import HEADER, MOST_BYTES, Webhook

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
MOST_AT_ONCE = 16
REQUEST_S = 10.0
"""All that a request may take, however slowly it comes."""


class HealthServer:
    """What a worker answers over HTTP."""

    def __init__(
        self,
        watch: HealthWatch,
        webhook: Webhook | None = None,
        *,
        host: str = LOOPBACK,
        port: int = 0,
        request_s: float = REQUEST_S,
    ) -> None:
        reads: dict[str, Callable[[HealthWatch], Answer]] = {
            "/health": health_answer,
            "/metrics": metrics_answer,
        }
        handler = type("_Bound", (_Handler,), {"watch": watch, "webhook": webhook, "reads": reads})
        try:
            self._server = _server_at(host)((host, port), handler)
        except (OSError, OverflowError) as error:
            raise SubmitterError(
                "port_unavailable",
                f"Cannot listen at {host}:{port}: {error}",
                "Choose others with --health-host and --health-port.",
            ) from error
        self._server.request_s = request_s

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Answer while this is entered."""
        thread = threading.Thread(
            target=self._server.serve_forever, name="health-server", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()


class _Server(ThreadingHTTPServer):
    """Takes no more requests at once than it can have threads for."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    request_s = REQUEST_S

    def __init__(self, address: tuple[str, int], handler: Any) -> None:
        self._free = threading.BoundedSemaphore(MOST_AT_ONCE)
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """See `socketserver`; without asking who we are, which may take long where no DNS is."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "", self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """See `socketserver`."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """See `socketserver`."""
        # One timer for the whole request: a client that sends a byte now and then gets no more.
        end = threading.Timer(self.request_s, _cut, [request])
        end.daemon = True
        end.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            end.cancel()
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """See `socketserver`; a client that goes away is no event of ours."""
        log.debug("A request was not answered.", exc_info=True)


class _ServerV6(_Server):
    address_family = socket.AF_INET6


class _Handler(BaseHTTPRequestHandler):
    watch: HealthWatch
    webhook: Webhook | None
    reads: Mapping[str, Callable[[HealthWatch], Answer]]
    server_version = "Assay"
    sys_version = ""

    def do_GET(self) -> None:
        read = self.reads.get(self._path())
        self._send(read(self.watch) if read else _NOTHING)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        if self.webhook is None or self._path() != "/webhook":
            self._send(_NOTHING)
            return
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or len(length) > 9:
            self._send(in_json(HTTPStatus.LENGTH_REQUIRED, error="length_required"))
            return
        # One byte more than is taken: the webhook says itself what is too much.
        body = self.rfile.read(min(int(length), MOST_BYTES + 1))
        self._send(self.webhook.answer(self.headers.get(HEADER, ""), body))

    def _path(self) -> str:
        return self.path.partition("?")[0]

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """See `http.server`: at the lowest level, since probes come every few seconds."""
        log.debug(format, *args)


_NOTHING = in_json(HTTPStatus.NOT_FOUND, error="not_found")


def _server_at(host: str) -> type[_Server]:
    with suppress(ValueError):
        if isinstance(ip_address(host), IPv6Address):
            return _ServerV6
    return _Server


def _cut(request: socket.socket) -> None:
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)
