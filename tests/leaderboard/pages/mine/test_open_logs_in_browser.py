"""A log that somebody reads is not closed under their eyes when the page renews itself."""

from __future__ import annotations

from datetime import timedelta

import pytest
from playwright.sync_api import Browser, Page, expect

from leaderboard.governance.signing_in import SignIn, Way
from leaderboard.ledger.ledger import Ledger
from leaderboard.records import Event
from leaderboard.states import State
from leaderboard.store.interface import Store
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.conftest import Serve
from tests.leaderboard.pages.mine.own_submissions import ADA, FAILED, give
from tests.leaderboard.pages.synthetic import NOW, cards, fill

pytestmark = [pytest.mark.browser, pytest.mark.slow]
HERE = SignIn(Way.LOCAL, local="root")


@pytest.mark.parametrize("path", ["queue?submission=", "mine?all=1&submission="])
def test_an_open_log_stays_open_and_where_it_was(serve: Serve, browser: Browser, path: str) -> None:
    store = give(fill(memory_store()), ADA)
    page = browser.new_page()
    page.goto(f"{serve(store, cards(), HERE)}{path}{FAILED}")
    log = page.locator(".as-history details").first
    log.locator("summary").click()
    scroll(page, 120)
    # Renewed as it is, and renewed with something new in it.
    for place in range(2):
        happen(store, place)
        expect(page.locator(".as-history li")).to_have_count(6 + place)
        expect(log).to_have_attribute("open", "")
        assert page.evaluate("document.querySelector('.as-history pre').scrollTop") == 120
    log.locator("summary").click()
    happen(store, 2)
    expect(page.locator(".as-history li")).to_have_count(8)
    expect(log).not_to_have_attribute("open", "")
    page.close()


def scroll(page: Page, to: int) -> None:
    expect(page.locator(".as-history pre").first).to_be_visible()
    page.evaluate(f"document.querySelector('.as-history pre').scrollTop = {to}")
    page.wait_for_function("[...window.asKept.values()].includes(120)")


def happen(store: Store, place: int) -> None:
    """Add an event, so that the history is drawn anew."""
    states = (State.QUEUED, State.CLAIMED, State.SCORING)
    event = Event(at=NOW + timedelta(seconds=place), state=states[place], by="worker-1")
    Ledger(store).append(FAILED, [event])
