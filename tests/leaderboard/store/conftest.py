"""A Hub on this machine, for the stores that need one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub.utils import _http

from leaderboard.store.hub.creating import create
from leaderboard.store.hub.hub_store import HubParts
from tests.hub.server import HubServer, running_hub
from tests.leaderboard.store.grouping_rig import Room
from tests.leaderboard.store.hub_rig import NAME
from tests.processes import running

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with running_hub() as server:
        yield server


@pytest.fixture
def room() -> Room:
    """Where transactions come together."""
    return Room()


@pytest.fixture
def hub_apart(tmp_path: Path) -> Iterator[HubParts]:
    """A new store on a Hub in a process of its own, so that its memory is not counted here."""
    command = [sys.executable, "-m", "tests.hub.server", "--port", "0"]
    with running(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        told = dict(
            server.stdout.readline().strip().removeprefix("export ").split("=", 1) for _ in range(2)
        )
        parts = HubParts(
            NAME, tmp_path / "apart", endpoint=told["HF_ENDPOINT"], token=told["HF_TOKEN"]
        )
        list(create(parts))
        yield parts


@pytest.fixture
def no_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client of the Hub rests for seconds between its own tries of an upload; not here."""

    class _Time:
        sleep = staticmethod(lambda seconds: None)

    monkeypatch.setattr(_http, "time", _Time)
