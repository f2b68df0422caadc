"""All pages in a real browser: on a phone and a desk, in light and dark."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from leaderboard.pages.page import all_pages
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.conftest import Serve
from tests.leaderboard.pages.synthetic import NASTY, cards, fill

pytestmark = pytest.mark.browser

SETTLED_MS = 500
"""Time for late requests and errors to show. The network is never idle: Gradio holds a stream."""

OVERFLOWING = """() => [...document.querySelectorAll('.as-board td:not(.as-c-axis), .as-queue td')]
  .filter(cell => cell.scrollWidth > cell.clientWidth + 1).map(cell => cell.textContent)"""
"""Cells whose content runs into the next one."""

PATHS = [page.path for page in all_pages()]


@pytest.fixture(scope="module")
def site(serve: Serve) -> str:
    return serve(fill(memory_store()), cards())


def opened(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.locator(".as-page h1").first).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_every_page_fits_is_quiet_and_asks_nobody_else(
    site: str, browser: Browser, width: int, scheme: str
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)  # type: ignore[arg-type]
    problems: list[str] = []
    page.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    page.on("request", lambda request: problems.extend(foreign(request.url, site)))
    for path in PATHS:
        opened(page, f"{site}{path}")
        page.wait_for_timeout(SETTLED_MS)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert page.evaluate("document.body.classList.contains('dark')") is (scheme == "dark")
        assert page.evaluate(OVERFLOWING) == [], path
        # `innerWidth` grows with content that does not fit, so the navigation is asked as well.
        expect(page.locator(".as-nav summary", has_text="About")).to_be_in_viewport()
    assert problems == []
    page.close()


def test_a_link_opens_its_view_and_choosing_changes_the_address(
    site: str, browser: Browser
) -> None:
    page = browser.new_page()
    opened(page, f"{site}boards?benchmark=ratings&skill=counting&measure=srcc~paper")
    expect(page.locator(".as-notice", has_text="is not reported for Counting")).to_be_visible()
    page.get_by_label("Benchmark", exact=True).click()
    page.get_by_role("option", name="Error graphs").click()
    expect(page.locator("h1")).to_have_text("Error graphs")
    page.wait_for_url(re.compile(r"/boards\?benchmark=graphs&measure=rank~paper~all$"))
    page.reload()
    expect(page.locator("h1")).to_have_text("Error graphs")
    expect(page.get_by_label("Download CSV", exact=True)).to_have_attribute(
        "href", "./v1/boards/graphs?benchmark=graphs&measure=rank~paper~all&format=csv"
    )
    page.close()


@pytest.mark.slow
def test_a_filter_ranks_anew_and_its_link_restores_it(site: str, browser: Browser) -> None:
    page = browser.new_page()
    opened(page, f"{site}boards?benchmark=ratings")
    ranking = page.locator(".as-board")
    rank = ranking.locator("tr", has_text="TIFA").locator(".as-range")
    expect(rank).to_have_attribute("title", re.compile(r"^Rank 8 of 10"))
    page.get_by_label("Metrics or submitters").fill("tifa, dsg, siglip")
    expect(rank).to_have_attribute("title", re.compile(r"^Rank 2 of 3"))
    expect(page.get_by_role("group", name="Filters")).to_contain_text("3 of 12 metrics")
    expect(page.locator(".as-heat tbody tr")).to_have_count(3)
    page.get_by_label("Hide trained on this benchmark").check()
    page.wait_for_url(re.compile(r"untrained=1&search=tifa,\+dsg,\+siglip$"))
    expect(page.get_by_label("Metrics or submitters")).to_have_value("tifa, dsg, siglip")
    page.reload()
    expect(rank).to_have_attribute("title", re.compile(r"^Rank 2 of 3"))
    expect(page.get_by_label("Hide trained on this benchmark")).to_be_checked()
    expect(page.get_by_label("Metrics or submitters")).to_have_value("tifa, dsg, siglip")
    page.get_by_role("button", name="Reset").click()
    expect(rank).to_have_attribute("title", re.compile(r"^Rank 8 of 10"))
    page.wait_for_url(re.compile(r"/boards\?benchmark=ratings&measure=srcc~paper$"))
    page.close()


@pytest.mark.slow
def test_several_skills_are_chosen_one_after_the_other_and_their_mean_is_shown(
    site: str, browser: Browser
) -> None:
    page = browser.new_page()
    opened(page, f"{site}boards?benchmark=ratings&measure=accuracy")
    for skill in ("Counting", "Colour"):
        page.get_by_label("Skills", exact=False).first.click()
        page.get_by_role("option", name=skill).click()
        expect(page.locator(".as-section h2").first).to_contain_text(skill)
    expect(page.locator(".as-section h2").first).to_contain_text("mean of Counting and Colour")
    page.wait_for_url(re.compile(r"skill=counting,colour&measure=accuracy~assay$"))
    page.reload()
    expect(page.locator(".as-section h2").first).to_contain_text("mean of Counting and Colour")
    page.close()


@pytest.mark.slow
def test_the_heatmap_follows_and_differences_can_be_reached_with_the_keyboard(
    site: str, browser: Browser
) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    opened(page, f"{site}boards?benchmark=ratings")
    expect(page.locator(".as-heat")).to_be_attached()
    region = page.get_by_role("region", name="Metric against metric")
    region.focus()
    expect(region).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator(".as-pairs tbody a").first).to_be_focused()
    assert region.evaluate("e => e.scrollWidth > e.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    expect(page.get_by_label("Download CSV of pairs")).to_have_attribute(
        "href", re.compile(r"^\./v1/boards/ratings/pairs\?.*format=csv$")
    )
    page.close()


@pytest.mark.slow
def test_a_link_into_the_about_page_goes_to_its_place(site: str, browser: Browser) -> None:
    page = browser.new_page()
    opened(page, f"{site}about#unused")
    expect(page.locator("#unused")).to_be_in_viewport()
    expect(page).to_have_title("About · Assay")
    page.locator(".as-page a", has_text="Ratings").first.click()
    expect(page.locator("#ratings")).to_be_in_viewport()
    page.close()


@pytest.mark.slow
def test_a_refused_form_keeps_what_was_filled_in(site: str, browser: Browser) -> None:
    page = browser.new_page()
    opened(page, f"{site}submit")
    expect(page.get_by_role("button", name="Submit module")).to_be_enabled()
    page.get_by_label("Signed as").first.fill("A group")
    page.get_by_role("button", name="Submit module").click()
    expect(page.get_by_role("alert")).to_contain_text("No archive is chosen")
    expect(page.get_by_label("Signed as").first).to_have_value("A group")
    page.close()


def test_a_hostile_name_is_shown_as_it_was_typed(site: str, browser: Browser) -> None:
    page = browser.new_page()
    opened(page, f"{site}boards?benchmark=ratings")
    visible = NASTY.replace("\u202e", "").replace("\x1b", "")
    expect(page.locator(".as-name", has_text=visible).first).to_be_visible()
    assert page.locator("img[src=x]").count() == 0
    page.close()


def foreign(address: str, site: str) -> list[str]:
    parts = urlsplit(address)
    if parts.scheme in {"data", "blob"} or parts.netloc == urlsplit(site).netloc:
        return []
    return [f"asked {address}"]
