"""How requests come in and replies go out, with what goes wrong on the way."""

from __future__ import annotations

import contextlib
import threading
import traceback
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from tests.hub.faults import Fault
from tests.hub.messages import Reply, Request, error

if TYPE_CHECKING:
    from tests.hub.server import HubServer, Served

Answer = Callable[["HubServer", Request], Reply]


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that went away are nothing to tell."""


def listen(
    state: HubServer, answer: Answer, note: Callable[..., Served], port: int = 0
) -> ThreadingHTTPServer:
    """Answer on a port of this machine, in threads, until it is shut down."""
    given = {"state": state, "answer": staticmethod(answer), "note": staticmethod(note)}
    server = _Listener(("127.0.0.1", port), type("Handler", (Handler,), given))
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    state: HubServer

    @staticmethod
    def answer(state: HubServer, request: Request) -> Reply:
        raise NotImplementedError

    @staticmethod
    def note(*facts: str | int) -> Served:
        raise NotImplementedError

    def do_GET(self) -> None:
        self._serve()

    def do_HEAD(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_PUT(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base's name)
        return

    def date_time_string(self, timestamp: float | None = None) -> str:
        return self.state.clock.header()

    def _serve(self) -> None:
        fault = self.state.faults.take(self.path, self.command)
        if fault and fault.cut_upload_after is not None:
            self.rfile.read(min(fault.cut_upload_after, self._length()))
            self._note(Request(self.command, self.path, dict(self.headers)), 0)
            self.close_connection = True
            return
        request = Request(self.command, self.path, dict(self.headers), self._body())
        reply = self._answered(request, fault)
        served = self._note(request, reply.status if reply else 0)
        if reply is None:
            self.close_connection = True
            return
        self._reply(reply, fault, served)

    def _answered(self, request: Request, fault: Fault | None) -> Reply | None:
        """What is to be sent; None for a connection closed without a word."""
        if fault is None:
            return self._carried_out(request)
        fault.released.wait(fault.wait_s)
        if fault.conflict:
            self.state.slip_in(request)
        reply = Reply(0) if fault.before else self._carried_out(request)
        fault.released.wait(fault.reply_after_s)
        if fault.drop:
            return None
        return Reply(fault.status, dict(fault.headers)) if fault.status else reply

    def _carried_out(self, request: Request) -> Reply:
        try:
            return self.answer(self.state, request)
        except Exception:  # noqa: BLE001 (told when the server stops, so that no test hides it)
            told = traceback.format_exc()
            self.state.errors.append(f"{request.method} {request.target}\n{told}")
            return error(500, "Internal Error - the test Hub itself failed")

    def _length(self) -> int:
        return int(self.headers.get("Content-Length", 0))

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", "").lower():
            body = self.rfile.read(self._length())
            if len(body) < self._length():
                raise ConnectionAbortedError("cut in mid-body: that is no request")
            return body
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(pieces)

    def _note(self, request: Request, status: int) -> Served:
        return self.note(self.command, self.path, status, request.header("Range"), request.token)

    def _reply(self, reply: Reply, fault: Fault | None, served: Served) -> None:
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if "Content-Length" not in reply.headers:
            self.send_header("Content-Length", str(len(reply.body)))
        with contextlib.suppress(OSError):  # the client went away
            self.end_headers()
            if self.command != "HEAD":
                self._send(reply.body, fault, served)
            return
        self.close_connection = True

    def _send(self, body: bytes, fault: Fault | None, served: Served) -> None:
        stop = len(body)
        if fault and fault.cut_after is not None:
            stop = min(stop, fault.cut_after)
        if fault and fault.hang_after is not None:
            stop = min(stop, fault.hang_after)
        if stop < len(body):
            self.close_connection = True
        for start in range(0, stop, 65536):
            piece = body[start : min(start + 65536, stop)]
            served.sent += len(piece)  # Before a client that has them all can ask for the count.
            self.wfile.write(piece)
        self.wfile.flush()
        if fault and fault.hang_after is not None:
            fault.released.wait(60)
