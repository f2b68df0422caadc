"""Stores on the Hub written for tests, and what the tests of stores ask of a repository."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from leaderboard.store.hub.budget import CommitBudget
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.maintenance import create
from leaderboard.store.interface import Changes, Repository
from tests.kit.hub.server import HubServer

NAME = "lab/assay"
PRIVATE = f"{NAME}-submissions"
NOWHERE = Path(os.devnull) / "nowhere"
"""A folder of a process that remembers nothing: everything is asked anew."""


def put(repository: Repository, changes: Changes) -> str:
    """Commit to the newest version."""
    return repository.commit(changes, parent=repository.head(), message="m")


def contents(repository: Repository) -> dict[str, bytes]:
    return {path: repository.read(path) for path in repository.list()}


def parts_of(
    hub: HubServer,
    folder: Path,
    *,
    token: str | None = None,
    fresh_for_s: float = 0.0,
    budget: CommitBudget | None = None,
    sleep: Callable[[float], object] = lambda s: time.sleep(min(s, 0.02)),
    pauses: Sequence[float] = (0.01, 0.01, 0.01),
) -> HubParts:
    """The repositories of a store, as one process has them; it rests only for moments."""
    return HubParts(
        NAME,
        folder,
        endpoint=hub.endpoint,
        token=token or hub.token,
        fresh_for_s=fresh_for_s,
        budget=budget,
        sleep=sleep,
        pauses=pauses,
    )


def created(hub: HubServer, folder: Path, **options: float) -> HubParts:
    """A new store."""
    parts = parts_of(hub, folder, **options)  # type: ignore[arg-type]
    list(create(parts))
    return parts


def as_the_hub(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the environment of this process name a Hub; the client read it when it was imported."""
    template = hub.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.endpoint)
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setenv("HF_TOKEN", hub.token)
