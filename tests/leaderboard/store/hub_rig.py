"""Stores on the Hub written for tests, as the tests of this folder use them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from leaderboard.store.hub.creating import create
from leaderboard.store.hub.hub_store import HubParts
from leaderboard.store.hub.spending import Budget, Spending
from tests.hub.server import HubServer

NAME = "lab/assay"
NOWHERE = Path(os.devnull) / "nowhere"
"""A folder of a process that remembers nothing: everything is asked anew."""


def parts_of(
    hub: HubServer,
    folder: Path,
    *,
    token: str | None = None,
    fresh_for_s: float = 0.0,
    budget: Budget | None = None,
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
        spending=Spending(budget),
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
