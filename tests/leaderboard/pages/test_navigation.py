"""The navigation: every page once, the current one marked, and all of it by keyboard."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Browser, expect

from leaderboard.pages.footer import footer
from leaderboard.pages.navigation import DIRECT, groups, navigation, navigation_script
from leaderboard.pages.page import Page, all_pages
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.conftest import Serve
from tests.leaderboard.pages.synthetic import cards, fill

pytestmark = pytest.mark.slow

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def page_named(path: str, *, listed: bool = True) -> Page:
    return Page(path or "Overview", path, 1, lambda _: None, in_navigation=listed)


def test_every_page_of_the_navigation_is_in_one_group() -> None:
    pages = all_pages()
    found = [page.path for group in groups(pages) for page in group.pages]
    assert sorted(found) == sorted(page.path for page in pages if page.in_navigation)


def test_few_pages_are_one_press_away_and_a_new_one_joins_the_last_group() -> None:
    found = groups([page_named(path) for path in ("", "boards", "submit", "new")])
    assert [(group.title, [page.path for page in group.pages]) for group in found] == [
        ("", ["", "boards"]), ("Submit", ["submit"]), ("About", ["new"]),
    ]  # fmt: skip
    assert len(DIRECT) <= 7


def test_a_page_that_is_not_listed_is_not_linked() -> None:
    assert "items" not in navigation([page_named("boards"), page_named("items", listed=False)])


def test_nothing_ends_the_script_too_early() -> None:
    script = navigation_script([page_named("boards")])
    assert script.count("</") == 1
    assert script.endswith("</script>")


def test_the_footer_says_how_recent_the_page_is() -> None:
    assert "As of 2026-03-01 00:00 UTC" in footer(NOW, NOW)
    assert "Not read yet." in footer(None, NOW)


# In a browser.


@pytest.fixture(scope="module")
def site(serve: Serve) -> str:
    return serve(fill(memory_store()), cards())


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_the_current_page_is_marked_and_pages_have_landmarks(
    site: str, browser: Browser, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 844})
    for path, name in (("", "Overview"), ("boards?benchmark=graphs", "Boards"), ("queue", "Queue")):
        page.goto(f"{site}{path}")
        expect(page.locator("h1")).to_have_count(1)
        current = page.locator(".as-nav a[aria-current=page]")
        expect(current).to_have_count(1)
        assert (current.text_content() or "") == name
        for landmark in ("banner", "main", "contentinfo"):
            expect(page.get_by_role(landmark)).to_have_count(1)
        assert page.locator("main").locator(".as-nav").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


@pytest.mark.browser
def test_groups_open_and_close_by_keyboard_and_the_skip_link_leads_to_the_content(
    site: str, browser: Browser
) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(f"{site}boards?benchmark=graphs")
    expect(page.locator("h1")).to_have_count(1)
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    assert re.search(r"/boards\?benchmark=graphs", page.url)
    about = page.locator(".as-nav summary", has_text="About")
    about.focus()
    page.keyboard.press("Enter")
    link = page.locator(".as-nav").get_by_role("link", name="About", exact=True)
    expect(link).to_be_in_viewport()
    page.keyboard.press("Escape")
    expect(link).to_be_hidden()
    expect(about).to_be_focused()
    page.close()


@pytest.mark.browser
def test_pins_and_chips_change_the_view_and_the_address_without_loading_the_page_again(
    site: str, browser: Browser
) -> None:
    page = browser.new_page()
    page.goto(f"{site}boards?benchmark=ratings&kind=metric&columns=plcc~paper")
    page.evaluate("window.asSame = true")
    row = page.locator(".as-board tr", has_text="TIFA")
    row.get_by_role("link", name="Pin TIFA").click()
    expect(page.locator(".as-board tbody").first).to_contain_text("TIFA")
    page.wait_for_url(re.compile(r"pin=made-up-0008%2FTIFA"))
    expect(row.get_by_role("link", name="Unpin TIFA")).to_be_focused()
    page.get_by_role("link", name="Remove run by Assay").click()
    expect(page.get_by_role("group", name="Filters")).to_have_count(0)
    expect(page.get_by_label("Entries")).to_have_value("All entries")
    assert "kind=" not in page.url
    assert "columns=plcc~paper" in page.url
    assert page.evaluate("window.asSame") is True
    page.close()
