"""A Hub on localhost that the real client talks to, with faults on demand.

It answers what `huggingface_hub` 2.4 asks when it reads and writes repositories and starts jobs,
with the same paths, headers and error codes. Large files are kept behind a second port, as the Hub
keeps them in its content network, so that the client has to drop its token on the way.

To try things by hand: `python -m tests.kit.hub.server --port 8700`, and HF_ENDPOINT as it says.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import hmac
import re
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

from tests.kit.hub.accounts import Account
from tests.kit.hub.answers import content_network, hub
from tests.kit.hub.clock import CommitLimit, ServerClock, Tally
from tests.kit.hub.faults import Fault, Faults
from tests.kit.hub.jobs import Jobs
from tests.kit.hub.messages import Reply, Request, error
from tests.kit.hub.repositories import Repository, StoredFile

Answer = Callable[["HubServer", Request], Reply]


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that went away are nothing to tell."""


def listen(state: HubServer, answer: Answer, port: int = 0) -> ThreadingHTTPServer:
    """Answer on a port of this machine, in threads, until it is shut down."""
    methods = {f"do_{name}": Handler.serve for name in ("GET", "HEAD", "POST", "PUT", "DELETE")}
    attributes = {"state": state, "answer": staticmethod(answer), **methods}
    server = _Listener(("127.0.0.1", port), type("Handler", (Handler,), attributes))
    threading.Thread(target=server.serve_forever, args=(0.005,), daemon=True).start()
    return server


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    state: HubServer

    @staticmethod
    def answer(state: HubServer, request: Request) -> Reply:
        raise NotImplementedError

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base's name)
        return

    def date_time_string(self, timestamp: float | None = None) -> str:
        return self.state.clock.header()

    def serve(self) -> None:
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
        return Reply(fault.status, dict(fault.headers), fault.body) if fault.status else reply

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
        served = Served(self.command, self.path, status, request.header("Range"), request.token)
        self.state.served.append(served)
        return served

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


@dataclass
class Served:
    """One request as it was answered (0: not at all); `sent` counts the bytes of the body."""

    method: str
    target: str
    status: int
    range: str
    token: str
    sent: int = 0


@dataclass
class HubServer:
    """Repositories and plain web files, and what was asked for."""

    # data sets by name; models and spaces with `models/` or `spaces/` before it
    repositories: dict[str, Repository] = field(default_factory=dict)
    # path (with `/web/` in front in its address) to content
    web: dict[str, bytes] = field(default_factory=dict)
    token: str = "hf_open_sesame"  # of an account that may do everything everywhere
    page: int = 1000  # entries a listing tells at a time
    commits_page: int = 50  # entries the history tells at a time
    # the server's own; commits, limits and `Date` go by it
    clock: ServerClock = field(default_factory=ServerClock)
    faults: Faults = field(default_factory=Faults)  # in store
    served: list[Served] = field(default_factory=list)  # every request so far
    tally: Tally = field(default_factory=Tally)  # requests and commits, counted
    # set its `quota` to limit the commits of an hour
    commit_limit: CommitLimit = field(default_factory=CommitLimit)
    # contents kept apart from git, by SHA-256
    large: dict[str, StoredFile] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    # where the server itself failed; raised when it stops
    errors: list[str] = field(default_factory=list)
    endpoint: str = ""
    network: str = ""

    def __post_init__(self) -> None:
        self.accounts = {self.token: Account("keeper", everywhere=True)}
        self.jobs = Jobs(self.clock)

    def add(
        self,
        name: str,
        files: Mapping[str, bytes],
        *,
        kind: str = "datasets",
        gated: bool = False,
    ) -> Repository:
        """A repository of data, or of another kind, with one commit."""
        repository = Repository(name, kind, gated=gated, large=self.large)
        self.repositories[self.key(kind, name)] = repository
        repository.commit(files)
        return repository

    def add_copies(self, repositories: Mapping[str, Repository]) -> None:
        """Repositories as they are on another server; their commits count here, but for the first."""
        for name, repository in repositories.items():
            self.repositories[name] = repository.copy(self.large)
            for _ in range(1, len(repository.commits)):
                self.tally.note_commit(repository.name, self.clock.now())

    def enroll(self, token: str, account: Account) -> str:
        """Make a token known; returns it."""
        self.accounts[token] = account
        return token

    def revoke(self, token: str) -> None:
        """Know a token no more, from the next request on."""
        self.accounts.pop(token, None)

    def environment(self, token: str | None = None) -> dict[str, str]:
        """Variables for another process that is to use this Hub."""
        return {
            "HF_ENDPOINT": self.endpoint,
            "HF_TOKEN": self.token if token is None else token,
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
        }

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

    def key(self, kind: str, name: str) -> str:
        """Where a repository is kept."""
        return name if kind == "datasets" else f"{kind}/{name}"

    def find(self, kind: str, name: str) -> Repository | None:
        return self.repositories.get(self.key(kind, name))

    def sign(self, text: str) -> str:
        """What opens one address of the second port, without a token."""
        return hmac.new(self.token.encode(), text.encode(), hashlib.sha256).hexdigest()[:32]

    def slip_in(self, request: Request) -> None:
        """Somebody else's commit, to the branch that a request is about to change."""
        found = re.fullmatch(r"/api/(\w+)/([^/]+/[^/]+)/[\w-]+/([^/]+)", request.path)
        repository = self.find(found[1], found[2]) if found else None
        if found is None or repository is None:
            return
        with repository.lock:
            now = self.clock.now()
            card = StoredFile(f"# Edited at {now.isoformat()}\n".encode(), lfs=False)
            branch = unquote(found[3])
            repository.change(
                {"README.md": card}, branch=branch, title="Edit", author="else", date=now
            )
            self.tally.note_commit(repository.name, now)


@contextmanager
def running_hub(port: int = 0) -> Iterator[HubServer]:
    """A server on free ports, or on a given one, for as long as the block runs."""
    state = HubServer()
    front = listen(state, hub, port)
    back = listen(state, content_network)
    state.endpoint = f"http://127.0.0.1:{front.server_port}"
    state.network = f"http://127.0.0.1:{back.server_port}"
    try:
        yield state
    finally:
        state.faults.release()
        state.jobs.end_all()
        for server in (front, back):
            server.shutdown()
            server.server_close()
    assert not state.errors, "\n".join(state.errors)


def main() -> None:
    """Run it by hand until it is interrupted."""
    parser = argparse.ArgumentParser(description="A Hub of this machine, in memory.")
    parser.add_argument("--port", type=int, default=8700)
    with running_hub(parser.parse_args().port) as state:
        for name, value in state.environment().items():
            print(f"export {name}={value}", flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            print("stopped")


if __name__ == "__main__":
    main()
