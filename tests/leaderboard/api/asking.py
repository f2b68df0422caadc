"""The API over a made-up store, asked in this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.testclient import TestClient

from leaderboard.api.routes import application, routes
from leaderboard.api.source import Source
from leaderboard.publication.reader import Reader
from leaderboard.store.interface import Store
from leaderboard.views.addresses import params_of
from leaderboard.views.boards import BoardQuery, Choice, resolve
from leaderboard.views.compare_query import CompareQuery
from leaderboard.web.page import Context
from leaderboard.web.pages.compare_page import compare_place
from tests.kit.boards import NOW, StubDesk, cards
from tests.leaderboard.views.example_fixture import filled

OPERATIONS: dict[str, dict[str, Any]] = {
    path: methods["get"] for path, methods in application().openapi()["paths"].items()
}
"""Routes of tables, below `/v1`, to what the document says of them."""


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

    def rows(self, address: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.table(address)["rows"]
        return found

    def refused(self, address: str, status: int) -> str:
        """The code of a refusal in the one shape."""
        answer = self.client.get(address)
        assert answer.status_code == status, answer.text
        error = answer.json()["error"]
        assert set(error) == {"code", "message", "hint"}
        return str(error["code"])

    def choice(self, link: str) -> Choice:
        """What the page of the boards shows for a query."""
        return resolve(BoardQuery.from_params(params_of(link)), self.source.reader.view().boards)

    def items_page(self, **state: str) -> str:
        """The examples of the Compare place, as HTML."""
        own = self.source
        context = Context(own.reader, own.store, own.cards, lambda: NOW, desk=StubDesk())
        query = CompareQuery.from_params({"view": "examples", **state})
        return compare_place(context).answer(query).html


def asking(store: Store | None = None, of: dict[str, Any] | None = None) -> Asking:
    """An API over a store; without one, over the made-up one with cases.

    Args:
        store: what is read.
        of: its benchmarks by name.
    """
    store = filled() if store is None else store
    shown = cards() if of is None else of
    reader = Reader(store, shown, clock=lambda: NOW)
    return asking_of(Source(reader, store, shown, lambda: NOW, wait_s=0.2))


def asking_of(source: Source) -> Asking:
    app = Starlette(routes=routes(source))
    return Asking(source, TestClient(app, "http://made.up", raise_server_exceptions=False))
