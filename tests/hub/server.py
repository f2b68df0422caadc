"""A Hub on localhost that the real client talks to, with faults on demand.

It answers what `huggingface_hub` 2.4 asks when it reads and writes repositories and starts jobs,
with the same paths, headers and error codes. Large files are kept behind a second port, as the Hub
keeps them in its content network, so that the client has to drop its token on the way.

To try things by hand: `python -m tests.hub.server --port 8700`, and HF_ENDPOINT as it says.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import unquote

from tests.hub.accounts import Account
from tests.hub.clock import ServerClock
from tests.hub.contents import LargeFiles, StoredFile
from tests.hub.faults import Fault, Faults
from tests.hub.handler import listen
from tests.hub.jobs import Jobs
from tests.hub.limits import Limit, commit_limit, request_limit
from tests.hub.messages import Request
from tests.hub.repositories import Repository
from tests.hub.routes import content_network, hub
from tests.hub.tally import Tally


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
    """Repositories and plain web files, and what was asked for.

    Attributes:
        repositories: data sets by name; models and spaces with `models/` or `spaces/` before it.
        web: path (with `/web/` in front in its address) to content.
        token: of an account that may do everything everywhere.
        accounts: by token; see `enroll`.
        page: entries a listing tells at a time.
        commits_page: entries the history tells at a time.
        clock: the server's own; commits, limits and `Date` go by it.
        faults: in store.
        served: every request so far.
        tally: requests and commits, counted.
        commit_limit: set its `quota` to limit the commits of an hour.
        request_limit: set its `quota` to limit the requests of five minutes.
        jobs: what was started; its `hook` says what becomes of it.
        errors: where the server itself failed; raised when it stops.
    """

    repositories: dict[str, Repository] = field(default_factory=dict)
    web: dict[str, bytes] = field(default_factory=dict)
    token: str = "hf_open_sesame"
    page: int = 1000
    commits_page: int = 50
    clock: ServerClock = field(default_factory=ServerClock)
    faults: Faults = field(default_factory=Faults)
    served: list[Served] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    commit_limit: Limit = field(default_factory=commit_limit)
    request_limit: Limit = field(default_factory=request_limit)
    large: LargeFiles = field(default_factory=LargeFiles)
    lock: threading.RLock = field(default_factory=threading.RLock)
    errors: list[str] = field(default_factory=list)
    endpoint: str = ""
    network: str = ""

    def __post_init__(self) -> None:
        self.accounts = {self.token: Account("keeper", everywhere=True)}
        self.jobs = Jobs(self.clock)

    def add(self, name: str, files: Mapping[str, bytes], *, gated: bool = False) -> Repository:
        """A repository with one commit."""
        repository = Repository(name, gated=gated, large=self.large)
        self.repositories[name] = repository
        repository.commit(files)
        return repository

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

    def note(self, *facts: str | int) -> Served:
        """Remember a request."""
        served = Served(*facts)  # type: ignore[arg-type]
        self.served.append(served)
        return served

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
    front = listen(state, hub, state.note, port)
    back = listen(state, content_network, state.note)
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
