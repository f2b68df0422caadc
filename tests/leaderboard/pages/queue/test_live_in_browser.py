"""A running log that is followed, and an outage, as a browser shows them."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from leaderboard.governance.accounts import Account, Origin
from leaderboard.governance.signing_in import SignIn, Way
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.conftest import Serve
from tests.leaderboard.pages.failing_store import Switch, failing
from tests.leaderboard.pages.mine.own_submissions import QUEUED, give
from tests.leaderboard.pages.queue.running_submission import RUNNING, run_one
from tests.leaderboard.pages.synthetic import cards, fill

pytestmark = [pytest.mark.browser, pytest.mark.slow]
HERE = SignIn(Way.LOCAL, local="root")
ROOT = Account(origin=Origin.LOCAL, name="root")


def place(page: Page) -> int:
    """How far the log is from its end."""
    found = page.evaluate(
        "(() => { const log = document.querySelector('.as-running');"
        " return log.scrollHeight - log.clientHeight - log.scrollTop; })()"
    )
    return int(found)


@pytest.mark.parametrize("width", [1280, 390])
def test_a_running_log_is_followed_unless_its_reader_went_back(
    serve: Serve, browser: Browser, width: int
) -> None:
    store = run_one(fill(memory_store()), ROOT)
    page = browser.new_page(viewport={"width": width, "height": 800})
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    page.goto(f"{serve(store, cards(), HERE)}mine?submission={RUNNING}")
    log = page.locator(".as-running")
    expect(log).to_contain_text("batch 59")
    box = log.bounding_box()
    assert box is not None
    assert box["height"] <= 362
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.wait_for_function("document.querySelector('.as-running').dataset.placed === '1'")
    assert place(page) <= 1
    store.live.say(RUNNING, "".join(f"later {n}\n" for n in range(9)))
    expect(log).to_contain_text("later 8")
    page.wait_for_function("document.querySelector('.as-running').dataset.placed === '1'")
    assert place(page) <= 1
    page.evaluate("document.querySelector('.as-running').scrollTop = 100")
    page.wait_for_timeout(200)
    store.live.say(RUNNING, "the last\n<b>bold</b>\n")
    expect(log).to_contain_text("<b>bold</b>")
    page.wait_for_function("document.querySelector('.as-running').dataset.placed === '1'")
    assert page.evaluate("document.querySelector('.as-running').scrollTop") == 100
    assert log.locator("*").count() == 0
    assert wrong == []
    page.close()


def test_an_outage_is_told_acts_fail_in_words_and_all_goes_on_after_it(
    serve: Serve, browser: Browser
) -> None:
    switch = Switch()
    store = failing(give(fill(memory_store()), ROOT), switch)
    page = browser.new_page()
    address = serve(store, cards(), HERE)
    page.goto(f"{address}mine?submission={QUEUED}")
    expect(page.locator("#chosen")).to_contain_text("waiting-metric")
    band = page.locator(".as-band .as-notice")
    expect(band).to_have_count(0)
    switch.out = True
    expect(band).to_contain_text("shown as of 12:00 UTC", timeout=15_000)
    expect(page.locator("#chosen")).to_contain_text("waiting-metric")
    page.get_by_role("button", name="Withdraw", exact=True).click()
    expect(page.get_by_text("Something outside failed.")).to_be_visible()
    page.get_by_role("button", name="Yes, withdraw it").click()
    expect(page.get_by_text("Something outside failed.").first).to_be_visible()
    other = browser.new_page()
    other.goto(f"{address}queue")
    expect(other.locator(".as-band .as-notice")).to_contain_text("The store does not answer")
    expect(other.locator(".as-queue")).to_contain_text("waiting-metric")
    assert other.get_by_text("Error", exact=True).count() == 0
    switch.out = False
    expect(band).to_have_count(0, timeout=20_000)
    expect(other.locator(".as-band .as-notice")).to_have_count(0, timeout=20_000)
    page.get_by_role("button", name="Withdraw", exact=True).click()
    page.get_by_role("button", name="Yes, withdraw it").click()
    expect(other.locator(".as-queue")).to_contain_text("withdrawn", timeout=15_000)
    other.close()
    page.close()
