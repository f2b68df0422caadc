"""Starts boxes of any backend, asks what is in them, and sees what is left when they have ended."""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.errors import AssayError
from evaluator.isolation.backend import Backend
from evaluator.isolation.bubblewrap import NamespaceSandbox
from evaluator.isolation.container_engine import BOX_LABEL, Engine
from evaluator.isolation.containers import Containers, ContainerSandbox
from evaluator.isolation.job import Job, Limits
from evaluator.isolation.session import ScorerSession
from tests.evaluator.isolation import inquiry
from tests.evaluator.isolation.boxes import png
from tests.evaluator.isolation.conformance_scorers import Ending
from tests.evaluator.isolation.inquiry import SECRET, SMALL

_SOON_S = 30.0


@dataclass(frozen=True)
class Answered:
    """What a scorer answered from inside.

    Attributes:
        values: question to answer.
        log: what it printed.
        peak_bytes: memory its box was seen to hold.
        visitors: how many connections reached this machine's sockets.
    """

    values: Mapping[str, float]
    log: str
    peak_bytes: int
    visitors: int

    def of(self, group: Mapping[str, str], wanted: float = 0.0) -> list[str]:
        """Questions of a group that were answered otherwise than wanted."""
        return [what for what in group if self.values[what] != wanted]


@dataclass(frozen=True)
class Ended:
    """How a scorer ended: the code and message for its author, and what it left."""

    of: Ending
    code: str
    message: str
    remains: list[str]


def started(backend: Backend, source: str, limits: Limits, stack: ExitStack) -> ScorerSession:
    """A box for the text of a scorer, which is removed with the stack."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-submission-")))
    folder.chmod(0o755)
    (folder / "scorer.py").write_text(source)
    session = backend.start(Job(folder, limits=limits))
    keep_namespace(session, stack)
    return session


def keep_namespace(session: ScorerSession, stack: ExitStack) -> None:
    """Keep the number of a box's namespace until the stack is closed.

    The kernel gives the number of a namespace that is gone to the next one, whose processes would
    then be taken for what this box left.
    """
    if isinstance(session._box, NamespaceSandbox):
        stack.callback(os.close, os.dup(session._box.namespace_fd))


def remains(session: ScorerSession) -> list[str]:
    """What is left of a box that has ended."""
    box = session._box
    left = [f"process {pid}" for pid in box.pids()]
    if box.exit_code(0) is None:
        left.append("a client")
    if isinstance(box, ContainerSandbox) and box.engine.container(box.name) is not None:
        left.append(f"container {box.name}")
    return left


def all_answered(backend: Backend, submissions: ExitStack) -> Answered:
    """The answers to all questions, out of one box."""
    name = f"\0assay-test-{os.getpid()}-{backend.name}"
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv(SECRET, "token")
        listening = [stack.enter_context(made) for made in _listening(name)]
        source = inquiry.inquiry(
            port=listening[0].getsockname()[1],
            abstract=name,
            servers=_name_servers(),
            sockets=_engine_sockets(backend),
        )
        asked = [what for group, _ in inquiry.questions_and_answers() for what in group]
        with started(backend, source, SMALL, submissions) as session:
            pairs = [(0, "a cat")] * len(asked)
            values = session.score([png()], pairs)
        visitors = sum(map(_visitors, listening))
    by_question = dict(zip(asked, map(float, values), strict=True))
    return Answered(by_question, session.log, session.peak_memory_bytes, visitors)


def _listening(name: str) -> list[socket.socket]:
    """Sockets of this machine that a box must not reach: two of one port, and an abstract one."""
    four = socket.create_server(("127.0.0.1", 0))
    made = [four]
    if socket.has_ipv6:
        port = four.getsockname()[1]
        made.append(socket.create_server(("::1", port), family=socket.AF_INET6))
    unix = socket.socket(socket.AF_UNIX)
    unix.bind(name)
    unix.listen()
    return [*made, unix]


def _visitors(listening: socket.socket) -> int:
    listening.setblocking(False)
    try:
        listening.accept()[0].close()
    except BlockingIOError:
        return 0
    return 1


def _name_servers() -> list[str]:
    lines = Path("/etc/resolv.conf").read_text().splitlines()
    return [line.split()[1] for line in lines if line.startswith("nameserver")]


def _engine_sockets(backend: Backend) -> list[str]:
    usual = ["/run/docker.sock", "/var/run/docker.sock", "/run/podman/podman.sock"]
    if not isinstance(backend, Containers):
        return usual
    own = [word.removeprefix("unix://") for word in backend.engine.options if "unix://" in word]
    return [*usual, *own]


def ended(backend: Backend, ending: Ending, stack: ExitStack) -> Ended:
    """Ask until the scorer has ended."""
    session = started(backend, ending.source, ending.limits, stack)
    try:
        with session:
            for _ in range(9):
                session.score([png()], [(0, "a cat")])
    except AssayError as error:
        return Ended(ending, error.code, error.message, remains(session))
    return Ended(ending, "answered", "", remains(session))


def soon(holds: Callable[[], bool]) -> bool:
    """Whether something holds, or does so in a while: a busy machine takes its time."""
    deadline = time.monotonic() + _SOON_S
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def boxes_known_to(engine: Engine) -> list[str]:
    """Numbers of the containers that boxes are or were."""
    return engine.call("ps", "--all", "--quiet", "--filter", f"label={BOX_LABEL}=1").split()
