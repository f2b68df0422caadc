"""Generations are checked and sent in a real browser, by the desk that takes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from evaluator.submission.receiving.desk import SubmissionDesk
from leaderboard.desk import Gate
from leaderboard.ledger.ledger import Ledger
from leaderboard.pages.site import create_app, launch_options
from leaderboard.records import Kind
from leaderboard.store.interface import Store
from leaderboard.store.memory import memory_store
from tests.evaluator.submission.generations.made_images import SET, SETS, made
from tests.leaderboard.pages.conftest import LOCAL
from tests.leaderboard.pages.synthetic import cards

pytestmark = [pytest.mark.browser, pytest.mark.slow]
WAIT_MS = 20_000


@pytest.fixture(scope="module")
def store() -> Store:
    return memory_store()


@pytest.fixture(scope="module")
def site(store: Store) -> Iterator[str]:
    desk = SubmissionDesk(store, {}, None, lambda: Gate(True), store.clock, prompt_sets=SETS)
    app = create_app(store, desk, cards(), clock=store.clock, sign_in=LOCAL)
    _, address, _ = app.launch(
        server_name="127.0.0.1", prevent_thread_lock=True, quiet=True, **launch_options(LOCAL)
    )
    yield str(address)
    app.close()


def opened(browser: Browser, site: str, width: int = 1280, scheme: str = "light") -> Page:
    page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(f"{site}submit")
    page.get_by_role("tab", name="Generations").click()
    # The form can be used once the page knows who asks.
    expect(page.get_by_role("button", name="Submit generations")).to_be_enabled(timeout=WAIT_MS)
    return page


def choose(page: Page, path: Path) -> None:
    page.locator("input[type=file]").last.set_input_files(str(path))
    expect(page.locator(".file-preview").last).to_be_visible(timeout=WAIT_MS)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_all_that_is_wrong_is_listed_and_fits(
    site: str, browser: Browser, tmp_path: Path, width: int, scheme: str
) -> None:
    one = made()
    for name in list(one.files)[:3]:
        del one.files[name]
    one.rows["p3", 2]["prompt"] = "<img src=x onerror=alert(1)>"
    page = opened(browser, site, width, scheme)
    told: list[str] = []
    page.on("dialog", lambda dialog: told.append(dialog.message))
    page.on("pageerror", lambda error: told.append(str(error)))
    choose(page, one.zipped(tmp_path / "bad.zip"))
    page.get_by_role("button", name="Check", exact=True).last.click()
    expect(page.get_by_text("4 problems to mend.")).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_text("3 missing, 1 wrong_prompt")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert told == []
    page.close()


def test_parquet_is_named_in_the_form_and_sent(
    site: str, browser: Browser, store: Store, tmp_path: Path
) -> None:
    page = opened(browser, site)
    choose(page, made().parquet(tmp_path / "images.parquet"))
    page.get_by_text("Parquet without assay.toml").click()
    page.get_by_label("Prompt set").click()
    page.get_by_role("option", name=SET.name).click()
    page.get_by_label("Name of the model").fill("painter")
    page.get_by_role("button", name="Check", exact=True).last.click()
    expect(page.get_by_text("Nothing is wrong with")).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_text("8 of 8 images of demo_prompts")).to_be_visible()
    page.get_by_role("button", name="Submit generations").click()
    expect(page.get_by_text("is in.")).to_be_visible(timeout=WAIT_MS)
    [status] = Ledger(store).statuses()
    assert (status.submission.kind, status.submission.name) == (Kind.GENERATIONS, "painter")
    page.close()
