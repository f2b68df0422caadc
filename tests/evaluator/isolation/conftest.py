"""Boxes, submissions written on the spot, and small images."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from evaluator.isolation.availability import PlainProcess
from evaluator.isolation.backend import Backend
from evaluator.isolation.bubblewrap import Bubblewrap
from evaluator.isolation.containers import Containers, docker, gvisor
from evaluator.isolation.job import Job, Limits
from evaluator.isolation.session import ScorerSession
from tests.conftest import no_isolation
from tests.evaluator.isolation import engines
from tests.evaluator.isolation.asking import keep_namespace
from tests.evaluator.isolation.boxes import SHORT, Open, Submit

pytest.register_assert_rewrite("tests.evaluator.isolation.suite")


@pytest.fixture(scope="session")
def bubblewrap() -> Bubblewrap:
    """The backend for strangers' code, where this machine has it."""
    if no_isolation():
        pytest.skip(no_isolation())
    return Bubblewrap()


@pytest.fixture
def submit(tmp_path: Path) -> Submit:
    """Writes a submission: the text of `scorer.py`, and other files by name."""

    def write(source: str, **others: str) -> Path:
        folder = tmp_path / "submission"
        folder.mkdir(exist_ok=True)
        (folder / "scorer.py").write_text(textwrap.dedent(source))
        for name, text in others.items():
            (folder / name.replace("__", ".")).write_text(textwrap.dedent(text))
        return folder

    return write


@pytest.fixture(params=["bubblewrap", "plain"])
def backend(request: pytest.FixtureRequest) -> Backend:
    """Both backends: a bundled scorer must behave the same in either."""
    if request.param == "plain":
        return PlainProcess()
    found: Bubblewrap = request.getfixturevalue("bubblewrap")
    return found


@pytest.fixture(scope="class")
def submissions() -> Iterator[ExitStack]:
    """Removes what was written, once the tests of a class are over."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def opened(bubblewrap: Bubblewrap, submit: Submit) -> Iterator[Open]:
    """Starts a box for the text of a scorer; every box has ended when the test has."""
    with ExitStack() as stack:

        def start(
            source: str, limits: Limits = SHORT, *, weights: str | None = None
        ) -> ScorerSession:
            session = bubblewrap.start(Job(submit(source), weights=weights, limits=limits))
            keep_namespace(session, stack)
            stack.callback(session.close)
            return session

        yield start


@pytest.fixture(scope="session")
def docker_host() -> Iterator[str]:
    """The socket of a Docker daemon of the tests' own."""
    with engines.docker_daemon() as host:
        yield host


@pytest.fixture(scope="session")
def docker_backend(docker_host: str) -> Containers:
    """Boxes by Docker."""
    return docker(engines.client_environment(), docker_host)


@pytest.fixture(scope="session")
def gvisor_backend(docker_host: str) -> Containers:
    """Boxes by Docker with gVisor below."""
    engines.require_tools("runsc")
    return gvisor(engines.client_environment(), docker_host)


@pytest.fixture(scope="session")
def podman_backend() -> Iterator[Containers]:
    """Boxes by Podman, with folders of the tests' own."""
    with engines.podman_engine() as engine:
        yield Containers(engine, "podman")
