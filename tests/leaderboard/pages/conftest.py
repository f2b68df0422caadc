"""Fixtures of the tests that open pages in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest
from playwright.sync_api import Browser, sync_playwright

from benchmarks.schema import Card
from leaderboard.pages.site import create_app, launch_options
from leaderboard.store.interface import Store
from tests.leaderboard.pages.synthetic import NOW, StubDesk

Serve = Callable[[Store, Mapping[str, Card]], str]


@pytest.fixture(scope="module")
def serve() -> Iterator[Serve]:
    """Serves a store and says where; it ends with the module."""
    opened = []

    def start(store: Store, cards: Mapping[str, Card]) -> str:
        app = create_app(store, StubDesk(), cards, clock=lambda: NOW)
        opened.append(app)
        _, address, _ = app.launch(
            server_name="127.0.0.1", prevent_thread_lock=True, quiet=True, **launch_options()
        )
        return str(address)

    yield start
    for app in opened:
        app.close()


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """A browser without a window."""
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield found
        found.close()
