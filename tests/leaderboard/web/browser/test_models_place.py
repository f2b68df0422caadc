"""The place of models in a browser: views, filters, sorting, going back, images, layout."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.leaderboard.views.model_track import IDS
from tests.leaderboard.web.conftest import Opener

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Sites = Callable[[str], str]
ROWS = ".as-models tbody th[scope=row]"
SHIFTS = """() => {
  window.asShifts = 0;
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) if (!one.hadRecentInput) window.asShifts += one.value;
  }).observe({ type: 'layout-shift', buffered: true });
}"""


def kept(page: Page) -> None:
    """Holds that the page was not loaded again since it was marked."""
    assert page.evaluate("window.asSame") is True


def test_filters_are_chosen_without_loading_the_page_and_the_link_restores_them(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(f"{sites('models')}models", "#board")
    page.evaluate("window.asSame = true")
    page.get_by_label("Words in the prompt").fill("box")
    page.wait_for_url(re.compile(r"words=box"))
    page.get_by_label("Skill", exact=True).select_option("count")
    page.wait_for_url(re.compile(r"skill=count&words=box"))
    expect(page.locator("thead")).to_contain_text(["few"])
    page.get_by_text("Only some models").click()
    page.get_by_role("checkbox", name="Aurora XL").check()
    page.wait_for_url(re.compile(rf"models={IDS[0]}$"))
    page.get_by_role("checkbox", name="Daub").check()
    filters = page.get_by_role("group", name="Filters")
    expect(filters).to_contain_text("2 of 5 models")
    expect(page.locator(ROWS)).to_have_count(2)
    page.get_by_role("link", name="Remove filter 2 of 5 models").click()
    expect(page.locator(ROWS)).to_have_count(5)
    expect(page.get_by_label("Words in the prompt")).to_have_value("box")
    expect(page).not_to_have_url(re.compile(r"[?&]models="))
    kept(page)
    page.reload()
    expect(page.get_by_label("Words in the prompt")).to_have_value("box")
    expect(page.get_by_role("group", name="Filters")).to_contain_text("skill: Counting")


def test_views_are_in_the_history_and_columns_sort_into_the_address(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(f"{sites('models')}models", "#board")
    page.evaluate("window.asSame = true")
    page.get_by_role("button", name="Counting").click()
    page.wait_for_url(re.compile(r"/models\?sort=-count$"))
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("Counting")
    page.get_by_role("tab", name="Seeds").click()
    expect(page.locator("#stability")).to_be_visible()
    expect(page).to_have_title(re.compile(r"^Seeds: "))
    page.get_by_role("tab", name="Gallery").click()
    expect(page.locator("#gallery article").first).to_be_visible()
    page.wait_for_url(re.compile(r"view=gallery"))
    page.go_back()
    expect(page.locator("#stability")).to_be_visible()
    expect(page.get_by_role("tab", name="Seeds")).to_have_attribute("aria-selected", "true")
    expect(page).to_have_title(re.compile(r"^Seeds: "))
    page.go_back()
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("Counting")
    kept(page)


def test_from_a_figure_to_the_images_behind_it_and_to_one_prompt(
    sites: Sites, open_page: Opener
) -> None:
    page = open_page(f"{sites('models')}models", "#board")
    page.locator(".as-models tbody td a").nth(1).click()
    expect(page.locator("h1")).to_contain_text("Aurora XL")
    expect(page.locator("#images img").first).to_be_visible()
    page.wait_for_function("() => document.querySelector('#images img').naturalWidth > 0")
    page.locator("#images h3 a").first.click()
    expect(page.get_by_role("navigation", name="Prompts")).to_be_visible()
    before = page.locator("#prompt .as-prompt").text_content()
    page.get_by_role("link", name="Next").click()
    expect(page.locator("#prompt .as-prompt")).not_to_have_text(before or "")
    page.wait_for_url(re.compile("view=prompt"))
    assert "skill=count" in page.url


def test_a_disagreement_leads_to_the_two_models(sites: Sites, open_page: Opener) -> None:
    page = open_page(f"{sites('models')}models", "#disagreements")
    page.locator("#disagreements").get_by_role("link", name="Compare the two").first.click()
    expect(page.locator(".as-two-said")).to_contain_text("is significantly better")
    page.get_by_role("link", name="Swap the two").click()
    page.wait_for_url(re.compile(rf"a={IDS[1]}&b={IDS[0]}"))
    page.get_by_label("Second", exact=True).select_option(IDS[3])
    page.wait_for_url(re.compile(rf"a={IDS[1]}&b={IDS[3]}"))


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("path", ["models", f"model?id={IDS[0]}"])
def test_nothing_moves_once_it_is_painted_and_the_page_does_not_scroll_sideways(
    sites: Sites, open_page: Opener, path: str, width: int
) -> None:
    open_page(f"{sites('models')}{path}", "section", width=width)  # The figures are kept then.
    page = open_page(f"{sites('models')}{path}", "section", width=width)
    page.evaluate(SHIFTS)
    expect(page.locator("#facts, #runs").first).to_be_attached()
    page.wait_for_timeout(500)
    assert page.evaluate("window.asShifts") < 0.05
    assert page.evaluate("document.documentElement.scrollWidth") <= width
