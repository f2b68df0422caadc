"""The item browser in a real browser: by keyboard, on a phone, with images that arrive."""

from __future__ import annotations

from collections.abc import Iterator

import gradio as gr
import pytest
from playwright.sync_api import Browser, Page

from benchmarks.registry import load_registry
from leaderboard.pages.site import create_app, launch_options
from leaderboard.publication.case_files import CaseFiles
from leaderboard.service.picture_routes import routes
from leaderboard.service.pictures import Pictures
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.conftest import LOCAL, Serve
from tests.leaderboard.pages.items.looked_at import NOISY, RIGHT, entry_id, filled
from tests.leaderboard.pages.synthetic import NOW, StubDesk, cards

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def address(serve: Serve) -> str:
    return serve(filled(), cards())


@pytest.fixture(scope="module")
def with_images() -> Iterator[str]:
    """The demo's benchmarks with what people said, and no metric yet."""
    registry, store = load_registry(), memory_store()
    files = CaseFiles(registry, None).missing(store.public, ["demo_ts2"])
    store.public.commit(files, parent=store.public.head(), message="cases")
    shown = {"demo_ts2": registry["demo_ts2"].card}
    pictures = Pictures(registry, None)
    app: gr.Blocks = create_app(
        store, StubDesk(store=store), shown, clock=lambda: NOW, sign_in=LOCAL, pictures=pictures
    )
    _, found, _ = app.launch(
        server_name="127.0.0.1",
        prevent_thread_lock=True,
        quiet=True,
        **launch_options(LOCAL, routes(pictures)),
    )
    yield str(found)
    app.close()


def opened(browser: Browser, address: str, query: str, **context: object) -> Page:
    page = browser.new_page(**context)  # type: ignore[arg-type]
    page.goto(f"{address}items{query}")
    page.wait_for_selector(".as-page h1:has-text('Items of')")
    return page


def overflow(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def test_a_visitor_holds_two_metrics_against_each_other_by_keyboard(
    browser: Browser, address: str
) -> None:
    page = opened(browser, address, f"?benchmark=ratings&a={entry_id(NOISY)}")
    page.wait_for_selector("text=Where it fails, worst first")
    page.get_by_label("Metric B").select_option(entry_id(RIGHT))
    page.get_by_label("Show", exact=True).first.select_option("disagreements")
    page.get_by_role("button", name="Show").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Where the two disagree")
    assert "b=made-up-0000" in page.url
    page.locator(".as-case h3 a").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Which metrics failed here")
    assert "case=p" in page.url
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_overflows_on_a_phone(browser: Browser, address: str, scheme: str) -> None:
    query = f"?benchmark=ratings&a={entry_id(NOISY)}&b={entry_id(RIGHT)}"
    page = opened(browser, address, query, viewport=PHONE, color_scheme=scheme)
    assert overflow(page) <= 0
    page.close()


def test_images_arrive_and_are_described_by_their_prompt(
    browser: Browser, with_images: str
) -> None:
    page = opened(browser, with_images, "?benchmark=demo_ts2")
    image = page.locator(".as-tile img").first
    image.scroll_into_view_if_needed()
    page.wait_for_function("document.querySelector('.as-tile img').naturalWidth > 0")
    assert (image.get_attribute("alt") or "").startswith("Image 1: ")
    assert page.get_by_text("Nobody has been scored").is_visible()
    page.close()
