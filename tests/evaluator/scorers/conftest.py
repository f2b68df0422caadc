"""Fixtures of scorers: a judge behind an API."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.evaluator.scorers.chat_server import (
    KEY,
    ChatRooms,
    ChatServer,
    chat_rooms,
    endpoints_file,
)


@pytest.fixture(scope="session")
def rooms() -> Iterator[ChatRooms]:
    """The HTTP server of all judges behind an API."""
    with chat_rooms() as started:
        yield started


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that a judge would have waited, were it not for the test."""
    from evaluator.scorers.models.chat_endpoint import ChatEndpoint

    waited: list[float] = []
    patient = partial(ChatEndpoint, sleep=waited.append)
    monkeypatch.setattr("evaluator.scorers.families.endpoint_judge.ChatEndpoint", patient)
    return waited


@pytest.fixture
def served(
    rooms: ChatRooms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rests: list[float]
) -> ChatServer:
    """An honest chat server, which the file of endpoints names `here`."""
    server = rooms.add()
    path = endpoints_file(tmp_path, server.address, key_variable="JUDGE_KEY")
    monkeypatch.setenv("ASSAY_ENDPOINTS", str(path))
    monkeypatch.setenv("JUDGE_KEY", KEY)
    monkeypatch.setenv("HF_TOKEN", "hf_of_somebody")
    return server
