"""A Hub on this machine, for the stores that need one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from huggingface_hub.utils import _http

from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.maintenance import create
from leaderboard.store.hub.repository import HubRepository
from tests.kit.hub.server import HubServer
from tests.kit.hub_store import NAME, created
from tests.kit.processes import running
from tests.leaderboard.store.dying import Dying, dying_writers


@pytest.fixture
def parts(hub: HubServer, tmp_path: Path) -> HubParts:
    """A new store on the Hub."""
    return created(hub, tmp_path / "mine")


@pytest.fixture
def private(parts: HubParts) -> HubRepository:
    """Its repository of uploads, which is one of the Hub's and nothing else."""
    return parts.private


@pytest.fixture
def hub_apart(tmp_path: Path) -> Iterator[HubParts]:
    """A new store on a Hub in a process of its own, so that its memory is not counted here."""
    command = [sys.executable, "-m", "tests.kit.hub.server", "--port", "0"]
    root = Path(__file__).resolve().parents[3]
    with running(command, cwd=root, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        lines = [server.stdout.readline().strip().removeprefix("export ") for _ in range(2)]
        variables = dict(line.split("=", 1) for line in lines)
        endpoint, token = variables["HF_ENDPOINT"], variables["HF_TOKEN"]
        parts = HubParts(NAME, tmp_path / "apart", endpoint=endpoint, token=token)
        list(create(parts))
        yield parts


@pytest.fixture
def no_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client of the Hub rests for seconds between its own tries of an upload; not here."""
    monkeypatch.setattr(_http, "time", SimpleNamespace(sleep=lambda seconds: None))


@pytest.fixture(scope="session")
def dying() -> Iterator[Dying]:
    """What starts writers that are killed at one of their steps."""
    with dying_writers() as start:
        yield start


@pytest.fixture
def dies(hub: HubServer, tmp_path: Path, dying: Dying) -> Callable[[str, int], int]:
    """How somebody ends who acts on the store on the Hub and is killed before one request."""

    def ended(what: str, last: int) -> int:
        folder = tmp_path / f"dying-{last}"
        return dying("dying_hub_writer", last, what, folder, hub.endpoint, hub.token)

    return ended
