"""The API over a made-up store, asked in this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.testclient import TestClient

from leaderboard.api.routes import routes
from leaderboard.api.source import Source
from leaderboard.pages.reading import Reader
from leaderboard.store.interface import Store
from tests.leaderboard.pages.items.looked_at import filled
from tests.leaderboard.pages.synthetic import NOW, cards


@dataclass(frozen=True)
class Asking:
    """An API and who asks it."""

    source: Source
    client: TestClient

    def table(self, address: str) -> dict[str, Any]:
        """A table as JSON."""
        answer = self.client.get(address)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def refused(self, address: str, status: int) -> str:
        """The code of a refusal in the one shape."""
        answer = self.client.get(address)
        assert answer.status_code == status, answer.text
        error = answer.json()["error"]
        assert set(error) == {"code", "message", "hint"}
        return str(error["code"])


def asking(store: Store | None = None, of: dict[str, Any] | None = None) -> Asking:
    """An API over a store; without one, over the made-up one with cases.

    Args:
        store: what is read.
        of: its benchmarks by name.
    """
    store = filled() if store is None else store
    shown = cards() if of is None else of
    source = Source(Reader(store, shown, clock=lambda: NOW), store, shown, lambda: NOW, wait_s=0.2)
    app = Starlette(routes=routes(source))
    return Asking(source, TestClient(app, "http://made.up", raise_server_exceptions=False))
