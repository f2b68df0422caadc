"""The pages of the model track in a real browser: on a phone and a desk, in light and dark."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from leaderboard.pages.shown.addresses import (
    model_address,
    model_pair_address,
    models_address,
    prompt_address,
    seeds_address,
)
from tests.leaderboard.pages.models.made_up import (
    EMPTY,
    HOSTILE_ID,
    IDS,
    JUDGES,
    SET,
    app_of,
    filled,
)
from tests.leaderboard.pages.skills.skills_fixture import NASTY
from tests.leaderboard.pages.test_accessibility_in_browser import broken_rules

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PAGES = {
    models_address(): "#judges",
    models_address(SET, skill="count", words="box", judge=JUDGES[1], models=",".join(IDS[:3])):
        "#board",
    models_address(EMPTY): ".as-empty",
    model_address(IDS[0]): "#images img",
    model_address(IDS[2], skill="count"): "#images .as-tile",
    model_pair_address(SET, IDS[0], IDS[1], skill="count"): "#deciding",
    prompt_address(SET, HOSTILE_ID): ".as-tile img",
    seeds_address(SET, judge=JUDGES[2]): ".as-bump",
}  # fmt: skip
"""Pages with something in them, and what is there when they are complete."""
SETTLED_MS = 400
OVERFLOWING = """() => [...document.querySelectorAll('.as-page td, .as-page dd, .as-page figcaption')]
  .filter(cell => getComputedStyle(cell).display !== 'none' && cell.scrollWidth > cell.clientWidth + 1)
  .map(cell => cell.textContent)"""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    app, options = app_of(filled())
    _, address, _ = app.launch(
        server_name="127.0.0.1", prevent_thread_lock=True, quiet=True, **options
    )
    yield str(address)
    app.close()


def opened(page: Page, address: str, shown: str = ".as-page h1") -> None:
    page.goto(address)
    expect(page.locator(shown).first).to_be_visible(timeout=20_000)
    page.wait_for_timeout(SETTLED_MS)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_every_page_fits_is_quiet_and_breaks_no_rule_of_accessibility(
    site: str, browser: Browser, width: int, scheme: str
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)  # type: ignore[arg-type]
    problems: list[str] = []
    page.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    for path, shown in PAGES.items():
        opened(page, f"{site}{path}", shown)
        page.evaluate("document.querySelectorAll('.as-page details').forEach(d => d.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert page.evaluate(OVERFLOWING) == [], path
        assert page.locator("h1").count() == 1, path
        assert broken_rules(page) == [], path
    assert problems == []
    page.close()


def test_a_form_leads_to_the_view_whose_link_restores_it(site: str, browser: Browser) -> None:
    page = browser.new_page()
    opened(page, f"{site}models")
    page.get_by_label("Words in the prompt").fill("box")
    page.get_by_label("Skill", exact=True).select_option("count")
    page.get_by_text("Only some models").click()
    page.get_by_label("Aurora XL").check()
    page.get_by_label("Daub").check()
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("group", name="Filters")).to_contain_text("2 of 5 models")
    assert re.search(r"skill=count", page.url) and page.url.count("models=") == 2
    expect(page.locator(".as-models tbody th.as-c-metric")).to_have_count(2)
    page.get_by_role("link", name="Remove 2 of 5 models").click()
    expect(page.locator(".as-models tbody th.as-c-metric")).to_have_count(5)
    expect(page.get_by_label("Words in the prompt")).to_have_value("box")
    page.close()


def test_from_a_figure_to_the_images_behind_it_and_to_one_prompt(
    site: str, browser: Browser
) -> None:
    page = browser.new_page()
    opened(page, f"{site}models")
    page.locator(".as-models tbody td a").nth(1).click()
    expect(page.locator("h1")).to_contain_text("Aurora XL")
    picture = page.locator("#images img").first
    expect(picture).to_be_visible()
    page.wait_for_function("() => document.querySelector('#images img').naturalWidth > 0")
    page.locator("#images h3 a").first.click()
    expect(page.get_by_role("navigation", name="Prompts")).to_be_visible()
    before = page.locator(".as-prompt").first.text_content()
    page.get_by_role("link", name="Next").click()
    expect(page.locator(".as-prompt").first).not_to_have_text(before or "")
    assert "skill=count" in page.url
    page.close()


def test_a_disagreement_leads_to_the_two_models(site: str, browser: Browser) -> None:
    page = browser.new_page()
    opened(page, f"{site}models", "#disagreements")
    page.locator("#disagreements").get_by_role("link", name="Compare the two").first.click()
    expect(page.locator(".as-verdict")).to_contain_text("is better")
    page.get_by_role("link", name="Swap the two").click()
    page.wait_for_url(re.compile(rf"a={IDS[1]}&b={IDS[0]}"))
    page.close()


def test_a_hostile_name_is_shown_as_it_was_typed(site: str, browser: Browser) -> None:
    page = browser.new_page()
    visible = NASTY.replace("\u202e", "")
    for path in (models_address(), model_address(IDS[2]), prompt_address(SET, HOSTILE_ID)):
        opened(page, f"{site}{path}")
        shown = page.locator("h1, .as-name, .as-prompt", has_text=visible).first
        expect(shown).to_be_visible()
        assert page.locator("img[src=x]").count() == 0
        assert page.locator("a[href^=javascript]").count() == 0
    page.close()
