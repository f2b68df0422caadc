"""Stores on the Hub of the tests."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from leaderboard.store.hub.budget import CommitBudget
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.maintenance import create
from leaderboard.store.interface import Store
from tests.kit.hub.repositories import Repository
from tests.kit.hub.server import HubServer, running_hub
from tests.kit.store import memory_store

NAME = "lab/assay"
PRIVATE = f"{NAME}-submissions"
NOWHERE = Path(os.devnull) / "nowhere"
"""A folder of a process that remembers nothing: everything is asked anew."""


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


@cache
def _new_repositories() -> Mapping[str, Repository]:
    """The repositories that `create` makes; for all tests of this process."""
    with running_hub() as hub:
        list(create(parts_of(hub, NOWHERE)))
        return dict(hub.repositories)


def created(hub: HubServer, folder: Path, **options: Any) -> HubParts:
    """A new store."""
    hub.add_copies(_new_repositories())
    return parts_of(hub, folder, **options)


def store_of(parts: HubParts, **more: Any) -> Store:
    """The store that keeps its files in these repositories, and its heartbeats in memory."""
    return replace(memory_store(), public=parts.public, private=parts.private, **more)


def as_the_hub(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the environment of this process name a Hub; the client read it when it was imported."""
    template = hub.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.endpoint)
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setenv("HF_TOKEN", hub.token)
