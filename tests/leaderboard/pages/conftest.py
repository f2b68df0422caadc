"""Fixtures of the tests that open pages in a real browser."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from benchmarks.schema import Card
from leaderboard.api.routes import routes
from leaderboard.api.source import Source
from leaderboard.governance.signing_in import SignIn, Way
from leaderboard.pages.reading import Reader
from leaderboard.pages.site import create_app, launch_options
from leaderboard.store.interface import Store
from tests.leaderboard.pages.synthetic import NOW, StubDesk

PATIENCE_MS = 30_000
"""For what a page is expected to show, on a machine that has other work."""
LOCAL = SignIn(Way.LOCAL, local="ada")


class Serve(Protocol):
    """Serves a store, for visitors of this machine unless told otherwise, and says where."""

    def __call__(
        self, store: Store, cards: Mapping[str, Card], sign_in: SignIn = LOCAL, /
    ) -> str: ...


@pytest.fixture(scope="module")
def serve() -> Iterator[Serve]:
    """Serves a store and says where; it ends with the module."""
    opened = []

    def start(store: Store, cards: Mapping[str, Card], sign_in: SignIn = LOCAL) -> str:
        desk = StubDesk(store=store)
        reader = Reader(store, cards, clock=lambda: NOW)
        source = Source(reader, store, cards, lambda: NOW)
        app = create_app(store, desk, cards, clock=lambda: NOW, sign_in=sign_in, source=source)
        opened.append(app)
        _, address, _ = app.launch(
            server_name="127.0.0.1",
            prevent_thread_lock=True,
            quiet=True,
            **launch_options(sign_in, routes(source), source),
        )
        return str(address)

    yield start
    for app in opened:
        app.close()


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """A browser without a window."""
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield found
        found.close()
