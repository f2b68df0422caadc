"""A Hub on localhost that the real client talks to: read only, with faults on demand.

It answers what `huggingface_hub` 2.4 asks when it reads datasets, with the same paths, headers and
error codes. Large files are redirected to a second port, as the Hub redirects to its content
network, so that the client has to drop its token on the way.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.hub.faults import Fault, Faults
from tests.hub.repositories import Repository
from tests.hub.routes import Reply, Request, content_network, hub


@dataclass
class Served:
    """One request as it was answered; `sent` counts the bytes of the body."""

    method: str
    target: str
    status: int
    range: str
    token: str
    sent: int = 0


@dataclass
class HubServer:
    """Repositories and plain web files, and what was asked for.

    Attributes:
        repositories: by name.
        web: path (with `/web/` in front in its address) to content.
        token: the one that opens gated and private repositories.
        page: entries a listing tells at a time.
        faults: in store.
        served: every request so far.
    """

    repositories: dict[str, Repository] = field(default_factory=dict)
    web: dict[str, bytes] = field(default_factory=dict)
    token: str = "hf_open_sesame"
    page: int = 1000
    faults: Faults = field(default_factory=Faults)
    served: list[Served] = field(default_factory=list)
    endpoint: str = ""
    network: str = ""

    def add(self, name: str, files: Mapping[str, bytes], *, gated: bool = False) -> Repository:
        """A repository with one commit."""
        repository = self.repositories[name] = Repository(name, gated=gated)
        repository.commit(files)
        return repository

    def spoil(self, target: str, **what: object) -> Fault:
        """Spoil the next requests whose path contains a text; see `Fault`."""
        return self.faults.add(Fault(target, **what))  # type: ignore[arg-type]

    def web_address(self, name: str) -> str:
        return f"{self.endpoint}/web/{name}"

    def sent(self, target: str = "") -> int:
        """Bytes of content sent so far for paths containing a text, listings left out."""
        return sum(
            each.sent
            for each in self.served
            if each.method == "GET" and target in each.target and "/api/" not in each.target
        )

    def asked(self, target: str, method: str = "GET") -> list[Served]:
        """Requests for paths containing a text."""
        return [each for each in self.served if each.method == method and target in each.target]


Answer = Callable[[HubServer, Request], Reply]


@contextmanager
def running_hub() -> Iterator[HubServer]:
    """A server on free ports, for as long as the block runs."""
    state = HubServer()
    front = _listen(state, hub)
    back = _listen(state, content_network)
    state.endpoint = f"http://127.0.0.1:{front.server_port}"
    state.network = f"http://127.0.0.1:{back.server_port}"
    try:
        yield state
    finally:
        state.faults.release()
        for server in (front, back):
            server.shutdown()
            server.server_close()


def _listen(state: HubServer, answer: Answer) -> ThreadingHTTPServer:
    handler = type("Handler", (_Handler,), {"state": state, "answer": staticmethod(answer)})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: HubServer

    @staticmethod
    def answer(state: HubServer, request: Request) -> Reply:
        raise NotImplementedError

    def do_GET(self) -> None:
        self._serve()

    def do_HEAD(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base's name)
        return

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        request = Request(self.command, self.path, dict(self.headers), self.rfile.read(length))
        fault = self.state.faults.take(self.path)
        if fault and fault.status:
            reply = Reply(fault.status, dict(fault.headers))
        else:
            reply = self.answer(self.state, request)
        served = Served(
            self.command, self.path, reply.status, request.header("Range"), request.token
        )
        self.state.served.append(served)
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if "Content-Length" not in reply.headers:
            self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        if self.command != "HEAD":
            self._send(reply.body, fault, served)

    def _send(self, body: bytes, fault: Fault | None, served: Served) -> None:
        stop = len(body)
        if fault and fault.cut_after is not None:
            stop = min(stop, fault.cut_after)
        if fault and fault.hang_after is not None:
            stop = min(stop, fault.hang_after)
        try:
            for start in range(0, stop, 65536):
                piece = body[start : min(start + 65536, stop)]
                self.wfile.write(piece)
                served.sent += len(piece)
            self.wfile.flush()
            if fault and fault.hang_after is not None:
                fault.released.wait(60)
        except OSError:  # the client went away
            self.close_connection = True
        if stop < len(body):
            self.close_connection = True
