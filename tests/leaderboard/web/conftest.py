"""Each made-up site, served once for all modules; pages that say what went wrong in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from leaderboard.publication.reader import View
from tests.conftest import BROWSER_PATIENCE_MS
from tests.kit import boards
from tests.kit.site import App, served
from tests.leaderboard.web.browser.views import RECORD_SHIFT
from tests.leaderboard.web.sites import SITES

Serve = Callable[[App], str]
Sites = Callable[[str], str]


@pytest.fixture(scope="session")
def view() -> View:
    """What pages see of the made-up boards. Tests leave it as it is."""
    return boards.view()


@pytest.fixture(scope="session")
def serve() -> Iterator[Serve]:
    """Serves an app until the end, and says where."""
    with ExitStack() as stack:
        yield lambda app: stack.enter_context(served(*app))


@pytest.fixture(scope="session")
def sites(serve: Serve) -> Sites:
    """Where a made-up site is served, which begins when it is first asked for. Tests only read it."""
    known: dict[str, str] = {}

    def address(name: str) -> str:
        if name not in known:
            known[name] = serve(SITES[name]())
        return known[name]

    return address


class Opener:
    """Opens pages of one width and scheme, and keeps what goes wrong in them."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self.problems: list[str] = []
        self.errors: list[str] = []
        """What the console of a page says is wrong, as of addresses that are not there."""

    def __call__(self, address: str, shown: str = "h1", width: int = 1280, **more: Any) -> Page:
        page = self._browser.new_page(viewport={"width": width, "height": 844}, **more)
        page.set_default_timeout(BROWSER_PATIENCE_MS)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("dialog", lambda dialog: self.problems.append(dialog.message))
        page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        page.add_init_script(RECORD_SHIFT)
        page.goto(address)
        expect(page.locator(shown).first).to_be_visible()
        return page


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Opener]:
    """Opens pages, in which no script may fail."""
    opener = Opener(browser)
    yield opener
    assert opener.problems == []
