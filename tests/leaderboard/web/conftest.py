"""A browser for the tests that open pages, and each made-up site served once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.kit.site import served
from tests.leaderboard.web.sites import SITES, App

PATIENCE_MS = 30_000
"""For what a page is expected to show, on a machine that has other work."""
Serve = Callable[[App], str]


@pytest.fixture(scope="session")
def serve() -> Iterator[Serve]:
    """Serves an app until the end, and says where."""
    with ExitStack() as stack:
        yield lambda app: stack.enter_context(served(*app))


@pytest.fixture(scope="session")
def sites(serve: Serve) -> Callable[[str], str]:
    """Where a made-up site is served, which begins when it is first asked for."""
    known: dict[str, str] = {}

    def address(name: str) -> str:
        if name not in known:
            known[name] = serve(SITES[name]())
        return known[name]

    return address


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """A browser without a window; its event loop would be in the way of later modules' own."""
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield found
        found.close()


class Opener:
    """Opens pages of one width and scheme, which say what went wrong in them."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self.opened: list[Page] = []
        self.problems: list[str] = []

    def __call__(self, address: str, shown: str = "h1", width: int = 1280, **more: Any) -> Page:
        page = self._browser.new_page(viewport={"width": width, "height": 844}, **more)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("dialog", lambda dialog: self.problems.append(dialog.message))
        self.opened.append(page)
        page.goto(address)
        expect(page.locator(shown).first).to_be_visible()
        return page


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Opener]:
    """Opens pages; they are closed after the test, in which no script may have failed."""
    opener = Opener(browser)
    yield opener
    for page in opener.opened:
        page.close()
    assert opener.problems == []
